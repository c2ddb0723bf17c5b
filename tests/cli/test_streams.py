"""Whoever watched is gone: a pipe is closed, a terminal hangs up. In a process of its own, as a shell starts it."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cli import codes
from harness.report import write as write_reports
from harness.suite.stored import read_run
from tests.report.verdicts import verdict
from tests.suite.fakes import record

#: The program, with a run that tells its phases one by one as it is let: by a line on standard input each.
CHILD = """
import sys
from pathlib import Path
from harness.cli.backends import Backends
from harness.cli.main import main
from tests.report.verdicts import verdict

def run(scenario, store, seed, display, keep):
    store.mkdir()
    try:
        for number, _ in enumerate(sys.stdin):
            display.phase(f"phase {number}")
            (store / str(number)).touch()
    except KeyboardInterrupt:
        display.phase("heal")
        (store / "healed").touch()
        raise
    (store / "over").touch()
    return store, verdict()

main(sys.argv[1:], Backends(run=run))
"""


def test_a_character_that_the_locale_lacks_is_an_escape(tmp_path: Path) -> None:
    """A missing figure is printed as a dash, which ASCII does not have."""
    run = record(tmp_path, "a", 1)
    write_reports(run, verdict(), read_run(run).file)
    child = [sys.executable, "-c", "from harness.cli.main import main; main()", "compare", str(run), str(run)]
    for encoding, reported in (("ascii", "\\u2013"), ("utf-8", "–")):
        done = subprocess.run(child, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False)
        assert (done.returncode, reported in done.stdout.decode(), done.stderr) == (codes.MET, True, b"")


@contextmanager
def program(store: Path, ignored: int | None = None, **pipes: int) -> Iterator[subprocess.Popen[str]]:
    """A run that waits for its lines."""
    scenario = store.with_name("mine.yaml")
    scenario.write_text("name: mine\n")
    # (Where these tests are run by nohup, they inherit that SIGHUP is ignored.)
    handled = {signal.SIGHUP: signal.SIG_DFL, **({} if ignored is None else {ignored: signal.SIG_IGN})}
    before = {number: signal.signal(number, how) for number, how in handled.items()}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, "run", str(scenario), "--store", str(store), "--json"],
        stdin=subprocess.PIPE,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes},
    )
    for number, how in before.items():
        signal.signal(number, how)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def go_on(child: subprocess.Popen[str], lines: int = 1) -> None:
    assert child.stdin is not None
    child.stdin.write("\n" * lines)
    child.stdin.flush()


def lose_stderr(child: subprocess.Popen[str]) -> None:
    """Close the pipe of its stderr once its first phase was shown there."""
    assert child.stderr is not None
    go_on(child)
    assert "== phase 0" in child.stderr.readline()
    child.stderr.close()
    child.stderr = None


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_a_closed_pipe_on_stderr_ends_the_display_and_not_the_run(store: Path) -> None:
    with program(store) as child:
        lose_stderr(child)
        go_on(child, lines=3)
        out, _ = child.communicate(timeout=60)
    assert child.returncode == codes.MET
    assert (store / "3").exists()
    assert (store / "over").exists()
    assert '"verdict":"valid"' in out


def test_a_closed_pipe_on_stdout_has_an_exit_code_of_its_own_when_the_run_is_over(store: Path) -> None:
    with program(store) as child:
        assert child.stdout is not None
        child.stdout.close()
        child.stdout = None
        _, err = child.communicate(timeout=60)
    assert child.returncode == codes.OUTPUT_CLOSED
    assert (store / "over").exists()
    assert err == "kafka-trial: standard output cannot be written: Broken pipe\n"


def test_a_full_disk_under_stdout_says_so(store: Path) -> None:
    with Path("/dev/full").open("w") as full, program(store, stdout=full.fileno()) as child:
        _, err = child.communicate(timeout=60)
    assert child.returncode == codes.OUTPUT_CLOSED
    assert err == "kafka-trial: standard output cannot be written: No space left on device\n"


def test_with_both_pipes_closed_the_run_comes_to_its_end_all_the_same(store: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with program(store, stdout=writing, stderr=writing) as child:
        os.close(writing)
        go_on(child, lines=2)
        child.communicate(timeout=60)
    assert child.returncode == codes.OUTPUT_CLOSED
    assert (store / "over").exists()


@pytest.mark.parametrize(
    ("interruption", "ignored"),
    [(signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGHUP, None), (signal.SIGINT, signal.SIGINT)],
    ids=["SIGINT", "SIGTERM", "SIGHUP", "SIGINT in the background of a script"],
)
def test_a_signal_interrupts_and_acquired_resources_are_released(
    interruption: int, ignored: int | None, store: Path
) -> None:
    with program(store, ignored) as child:
        assert child.stderr is not None
        go_on(child)
        assert "== phase 0" in child.stderr.readline()
        child.send_signal(interruption)
        _, err = child.communicate(timeout=60)
    assert child.returncode == codes.CRASHED
    assert (store / "healed").exists()
    assert not (store / "over").exists()
    assert err.splitlines()[-1] == "kafka-trial: interrupted"


def test_a_terminal_that_hangs_up_interrupts_a_run_whose_stderr_is_gone(store: Path) -> None:
    with program(store) as child:
        lose_stderr(child)
        child.send_signal(signal.SIGHUP)
        child.communicate(timeout=60)
    assert child.returncode == codes.CRASHED
    assert (store / "healed").exists()


def test_a_terminal_that_is_gone_ends_the_live_display_and_not_the_run(store: Path) -> None:
    ours, theirs = pty.openpty()
    with program(store, stderr=theirs) as child:
        os.close(theirs)
        go_on(child)
        assert os.read(ours, 1000)
        os.close(ours)
        go_on(child, lines=3)
        child.communicate(timeout=60)
    assert child.returncode == codes.MET
    assert (store / "over").exists()


def test_nohup_is_heeded(store: Path) -> None:
    with program(store, ignored=signal.SIGHUP) as child:
        assert child.stderr is not None
        go_on(child)
        assert "== phase 0" in child.stderr.readline()
        child.send_signal(signal.SIGHUP)
        go_on(child)
        child.communicate(timeout=60)
    assert child.returncode == codes.MET
    assert (store / "over").exists()


CHECKING = """
import sys
from harness.cli.main import main
from tests.cli.conftest import judging
main(sys.argv[1:], judging())
"""


def test_check_whose_stdout_is_closed_has_that_code_and_not_that_of_an_anomaly(stored: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", CHECKING, "check", str(stored)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writing)
    assert done.returncode == codes.OUTPUT_CLOSED
    assert done.stderr == "kafka-trial: standard output cannot be written: Broken pipe\n"
    assert (stored / "verdict.json").exists(), "what was judged is stored"


@pytest.mark.parametrize(
    ("closing", "code", "command"),
    [
        ("2>&-", codes.MET, "check"),
        (">&-", codes.OUTPUT_CLOSED, "check"),
        (">&-", codes.OUTPUT_CLOSED, "runs"),
        (">&-", codes.OUTPUT_CLOSED, "scenarios"),
        (">&- 2>&-", codes.OUTPUT_CLOSED, "check"),
    ],
)
def test_an_output_that_was_closed_before_is_one_that_takes_nothing(
    closing: str, code: int, command: str, stored: Path
) -> None:
    paths = [] if command == "scenarios" else [stored]
    program = [sys.executable, "-c", CHECKING, command, *paths]
    shell = ["sh", "-c", f'exec "$@" {closing}', "sh", *program]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=60, check=False)
    reported = "kafka-trial: standard output cannot be written: Bad file descriptor\n"
    assert (done.returncode, done.stderr) == (code, reported if closing == ">&-" else "")
    assert (closing == "2>&-") is bool(done.stdout)


def test_an_output_that_was_closed_before_is_inherited() -> None:
    """Where no other file has its number, it has it at once, and no copy is made."""
    program = (
        "import os\nfrom harness.cli.streams import closed\n"
        "closed(1, os.O_RDONLY)\nos.write(2, b'%d' % os.get_inheritable(1))"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, program], stderr=subprocess.PIPE, timeout=60, check=False
    )
    assert done.stderr == b"1"
