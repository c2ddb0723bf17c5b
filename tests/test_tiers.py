"""Processes of tests beside each other: each test runs once, and every failure is reported."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.core.waiting import wait_for
from tests.tiers import LOWLY, TIERS, beside


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(("codes", "code"), [((0, 0, 0), 0), ((1, 0, 0), 1), ((0, 2, 0), 2), ((0, 0, 3), 3)])
def test_any_that_fails_fails_all_and_all_are_shown(
    codes: tuple[int, ...], code: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    commands = [python(f"print({name}, flush=True); exit({n})") for name, n in enumerate(codes)]
    assert beside(*commands) == code
    assert capfdbinary.readouterr().out == b"0\n1\n2\n"


@pytest.mark.parametrize("code", [0, 1])
def test_each_has_temporary_files_of_its_own_which_are_kept_if_any_failed(
    code: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    reported = "import os; root = os.environ['PYTEST_DEBUG_TEMPROOT']; print(root, os.listdir(root), flush=True)"
    assert beside(python(reported), python(f"{reported}; exit({code})")) == code
    one, other = (line.split() for line in capfdbinary.readouterr().out.decode().splitlines())
    assert (one[1], other[1]) == ("[]", "[]")
    assert one[0] != other[0]
    kept = Path(one[0]).parent
    assert kept == Path(other[0]).parent
    assert kept.exists() is (code != 0)
    shutil.rmtree(kept, ignore_errors=True)


def test_they_run_at_once(tmp_path: Path) -> None:
    """Each waits for the next."""
    pipes = [str(tmp_path / name) for name in ("one", "two")]
    for pipe in pipes:
        os.mkfifo(pipe)
    one, two = ((f"open({pipe!r}, 'w').close()", f"open({pipe!r}).close()") for pipe in pipes)
    assert beside(*map(python, (one[0], f"{one[1]}; {two[0]}", two[1]))) == 0


def test_each_test_is_in_one_part() -> None:
    spark, *others = (command[command.index("-m", command.index("pytest")) + 1 :] for command in TIERS["fast"])
    *some, rest = others
    assert {marked for marked, *_ in others} == {f"not {spark[0]}"}
    assert spark[1:] == ()
    paths = [path for _, *own in some for path in own]
    assert rest[1:] == tuple(f"--ignore={path}" for path in paths)
    assert all(Path(path).exists() for path in paths)


def test_the_core_runs_each_marker_that_fast_leaves_out_except_lab_and_long() -> None:
    left_out = set(re.findall(r"not (\w+)", " ".join(TIERS["fast"][0])))
    of_core = " ".join(command[command.index("-m", command.index("pytest")) + 1] for command in TIERS["core"])
    assert left_out - set(re.findall(r"(?<!not )\b(\w+)", of_core)) == {"lab", "long"}


def test_a_lowly_command_runs_with_low_priority() -> None:
    group = Path("/proc/self/autogroup")
    code = f"import os; print(os.nice(0), open('{group}').read() if os.path.exists('{group}') else 'nice 19')"
    said = subprocess.run([*LOWLY, *python(code)], capture_output=True, text=True, check=True, start_new_session=True)
    assert said.stdout.split()[0] == "19"
    assert "nice 19" in said.stdout
    assert said.stderr == ""


def test_nothing_that_a_part_started_outlives_the_whole(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    starts = f"import subprocess; print(subprocess.Popen(['sleep', '600']).pid, file=open({str(pipe)!r}, 'w')); exit(3)"
    assert beside(python(f"print(open({str(pipe)!r}).read())"), python(starts)) == 3
    child = int(capfdbinary.readouterr().out)
    wait_for(lambda: not psutil.pid_exists(child), "it is gone", within=10)


def test_a_tier_that_is_ended_ends_its_parts(tmp_path: Path) -> None:
    waits = python(
        "import os, pathlib, signal, time; signal.signal(signal.SIGINT, signal.default_int_handler);"
        f" pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch(); time.sleep(600)"
    )
    tier = subprocess.Popen(python(f"from tests.tiers import main; main({[waits, waits]})"), stderr=subprocess.DEVNULL)
    wait_for(lambda: len(list(tmp_path.iterdir())), "both run", within=30, good=lambda count: count == 2)
    parts = [int(path.name) for path in tmp_path.iterdir()]
    tier.terminate()
    assert tier.wait(timeout=30) == 143
    wait_for(lambda: not any(map(psutil.pid_exists, parts)), "they are gone", within=10)


def test_each_test_of_the_proof_is_in_one_part() -> None:
    proof = [command for command in TIERS["core"] if "proof and core" in " ".join(command)]
    assert [command[-1].removeprefix("--ignore=") for command in proof] == ["tests/simulated"] * 2
    assert len({command[-1] for command in proof}) == len(proof)
