"""What is run on a machine, run here: a toy of a node, faults, switches, and nothing left in the end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from harness.core.topology import Node, Role
from harness.core.waiting import wait_for
from harness.providers.ssh import text
from harness.providers.ssh.text import MachinePaths

NODE = Node("b1", Role.BROKER, 1, "10.0.0.1")

#: Instead of Kafka: waits while it is held, prints its environment, and ends when it is asked to.
TOY = """\
while [ -e "$KAFKA_TRIAL_HELD" ]; do sleep 0.02; done
trap 'exit 143' TERM
echo "$1 $NODE_ID $KAFKA_TRIAL_JAVA $KAFKA_TRIAL_SETTINGS"
echo data >"$KAFKA_TRIAL_DATA/one"
while :; do sleep 0.05; done
"""


def run(script: str) -> str:
    done = subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[MachinePaths]:
    """A node's directory at a path whose name a shell would read otherwise."""
    paths = MachinePaths(f"{tmp_path}/it's $HOME; x")
    home = tmp_path / "ka'f ka"
    home.mkdir()
    (home / "start").write_text(TOY)
    run(text.claim(paths.data, "{}"))
    keeper = text.keeper(paths, NODE, "/opt/my java", str(home), {"NODE_ID": "1", "HEAP": "-Xmx1m"})
    Path(paths.node, "keeper").write_text(keeper)
    yield paths
    run(text.remove_node(paths))


def state(paths: MachinePaths) -> str:
    return run(text.process(paths)).strip()


def gone(number: int) -> bool:
    """Whether a process has ended, though its parent may not have noticed."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def running(word: str) -> list[str]:
    """The command lines of processes that have such a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(path.read_text(errors="replace").replace("\0", " "))
    return [line for line in found if word in line]


def becomes(paths: MachinePaths, wanted: str) -> None:
    wait_for(lambda: state(paths), f"it to be {wanted}", 10, good=lambda now: now == wanted, every=0.02)


def logs(paths: MachinePaths, wanted: str) -> None:
    wait_for(lambda: wanted in Path(paths.node, "log").read_text(), f"the log to have {wanted}", 10, every=0.02)


def test_a_node_is_a_process_group_that_is_started_paused_stopped_and_killed(paths: MachinePaths) -> None:
    assert state(paths) == "exited"
    run(text.priority(-10) + text.start(paths, held=False))
    assert state(paths) == "running"
    logs(paths, f"broker 1 /opt/my java {paths.node}/node.properties")
    number = Path(paths.node, "pid").read_text().split()[0]
    assert os.getpriority(os.PRIO_PROCESS, int(number)) == 0
    assert os.getpgid(int(number)) == int(number)
    run(text.signal(paths, "STOP"))
    becomes(paths, "stopped")
    run(text.signal(paths, "CONT"))
    becomes(paths, "running")
    run(text.start(paths, held=False))
    assert Path(paths.node, "pid").read_text().split()[0] == number
    run(text.signal(paths, "KILL"))
    becomes(paths, "exited")
    assert run(text.exit_code(paths)).strip() == "137"
    assert run(text.last_words(paths)).startswith("137\nbroker 1 ")
    run(text.start(paths, held=False))
    logs(paths, "broker")
    run(text.stop(paths, grace=10))
    assert state(paths) == "exited"
    assert run(text.exit_code(paths)).strip() == "143"


def test_one_that_does_not_end_is_killed_when_its_time_is_over(paths: MachinePaths) -> None:
    run(text.start(paths, held=False))
    run(text.signal(paths, "STOP"))
    becomes(paths, "stopped")
    run(text.stop(paths, grace=0))
    assert run(text.exit_code(paths)).strip() == "137"


def test_a_node_that_is_held_waits_until_it_is_released(paths: MachinePaths) -> None:
    run(text.start(paths, held=True))
    assert state(paths) == "running"
    assert Path(paths.node, "log").read_text() == ""
    run(text.release(paths))
    logs(paths, "broker 1")


def test_a_node_whose_keeper_ends_before_it_began_is_not_awaited(paths: MachinePaths) -> None:
    Path(paths.node, "keeper").write_text("exit 1\n")
    with pytest.raises(AssertionError, match="it does not start"):
        run(text.start(paths, held=False))


def test_a_process_of_another_boot_or_start_is_not_taken_for_the_nodes(paths: MachinePaths) -> None:
    run(text.start(paths, held=False))
    pid = Path(paths.node, "pid")
    number, born, boot = pid.read_text().split()
    for other in (f"{number} {int(born) + 1} {boot}", f"{number} {born} another-boot", f"{os.getpid()} {born} {boot}"):
        pid.write_text(other + "\n")
        assert state(paths) == "exited"
        with pytest.raises(AssertionError, match="its process is not there"):
            run(text.signal(paths, "KILL"))
    pid.write_text(f"{number} {born} {boot}\n")
    assert state(paths) == "running"


def test_a_wipe_counts_the_files_it_deletes(paths: MachinePaths) -> None:
    run(text.start(paths, held=False))
    logs(paths, "broker")
    wait_for(lambda: Path(paths.files, "one").exists(), "data", 10, every=0.02)
    run(text.signal(paths, "KILL"))
    becomes(paths, "exited")
    assert run(text.wipe(paths)).strip() == "1"
    assert run(text.wipe(paths)).strip() == "0"


def test_a_helper_runs_until_it_is_stopped_or_replaced(paths: MachinePaths) -> None:
    run(text.start_helper(paths, "ab12", "trap '' TERM; while :; do sleep 1; done"))
    first = int(Path(paths.node, "helpers/ab12").read_text().split()[0])
    assert not gone(first)
    assert run(text.helper(paths, "ab12")) == "running\n"
    run(text.start_helper(paths, "ab12", "exec sleep 100"))
    wait_for(lambda: gone(first), "the first to end", 10, every=0.02)
    second = int(Path(paths.node, "helpers/ab12").read_text().split()[0])
    run(text.stop_helper(paths, "ab12"))
    wait_for(lambda: gone(second), "the second to end", 10, every=0.02)
    assert list(Path(paths.node, "helpers").iterdir()) == []
    assert run(text.helper(paths, "ab12")) == "exited\n"
    run(text.stop_helper(paths, "ab12"))


def test_a_helper_that_was_killed_has_exited(paths: MachinePaths) -> None:
    run(text.start_helper(paths, "ab12", "exec sleep 100"))
    os.kill(int(Path(paths.node, "helpers/ab12").read_text().split()[0]), signal.SIGKILL)
    wait_for(lambda: run(text.helper(paths, "ab12")) == "exited\n", "the helper to end", 10, every=0.02)


def test_a_switch_undoes_a_change_that_nobody_takes_back(paths: MachinePaths, tmp_path: Path) -> None:
    undone = tmp_path / "un done"
    run(text.arm(paths, "ab12", f"echo undone >>'{undone}'", 0.5))
    assert not undone.exists()
    wait_for(undone.exists, "the switch", 10, every=0.02)
    wait_for(lambda: not list(Path(paths.node, "switches").iterdir()), "nothing of it to be left", 10, every=0.02)
    assert undone.read_text() == "undone\n"


def test_one_that_is_disarmed_does_nothing(paths: MachinePaths, tmp_path: Path) -> None:
    undone, meant = tmp_path / "undone", tmp_path / "meant"
    run(text.arm(paths, "ab12", f"echo undone >>'{undone}'", 0.3))
    run(text.arm(paths, "cd34", f"echo undone >>'{meant}'", 0.6))
    run(text.disarm(paths, "ab12"))
    wait_for(meant.exists, "the other", 10, every=0.02)
    assert not undone.exists()
    run(text.disarm(paths, "ab12"))


def test_one_that_is_disarmed_at_once_leaves_no_process(paths: MachinePaths) -> None:
    """It may not lead a group of its own yet, or be about to start the program that waits."""
    for number in range(20):
        pause = ": | :\n" * (number % 5)
        run(text.arm(paths, "ab12", "false", 4321.5) + pause + text.disarm(paths, "ab12"))
    wait_for(lambda: running("4321.5"), "all to have ended", 10, good=lambda there: not there, every=0.02)
    assert list(Path(paths.node, "switches").iterdir()) == []


def test_an_undo_that_fails_is_tried_again(paths: MachinePaths, tmp_path: Path) -> None:
    able, undone = tmp_path / "able", tmp_path / "undone"
    run(text.arm(paths, "ab12", f"test -e '{able}'\necho undone >>'{undone}'", 0.1))
    wait_for(lambda: Path(paths.node, "switches/ab12.sh").exists(), "it to be armed", 5)
    able.touch()
    wait_for(undone.exists, "the next try", 10, every=0.05)


def test_the_switch_of_a_pause_is_over_where_the_process_is(paths: MachinePaths) -> None:
    run(text.start(paths, held=False))
    run(text.signal(paths, "STOP"))
    run(text.arm(paths, text.PROCESS_SWITCH, text.go_on(paths), 0.3))
    run(text.signal(paths, "KILL"))
    wait_for(lambda: not list(Path(paths.node, "switches").iterdir()), "nothing of it to be left", 10, every=0.02)
    run(text.start(paths, held=False))
    run(text.signal(paths, "STOP"))
    becomes(paths, "stopped")
    run(text.arm(paths, text.PROCESS_SWITCH, text.go_on(paths), 0.1))
    becomes(paths, "running")


def test_removing_a_node_undoes_ends_and_deletes_all_and_says_so(paths: MachinePaths, tmp_path: Path) -> None:
    undone = tmp_path / "undone"
    run(text.start(paths, held=False))
    run(text.arm(paths, "ab12", f"echo undone >>'{undone}'", 1000))
    run(text.arm(paths, text.PROCESS_SWITCH, text.start(paths, held=False), 1000))
    run(text.start_helper(paths, "ab12", "exec sleep 1000"))
    numbers = [
        int(Path(paths.node, file).read_text().split()[0])
        for file in ("pid", "switches/ab12", f"switches/{text.PROCESS_SWITCH}", "helpers/ab12")
    ]
    assert run(text.remove_node(paths)).split() == ["fault", "process", "node"]
    assert undone.read_text() == "undone\n"
    for number in numbers:
        wait_for(lambda number=number: gone(number), f"process {number} to end", 10, every=0.02)
    assert run(text.remove_node(paths)) == ""
    assert run(text.remove_kafka(paths.data)) == ""
    assert not Path(paths.data).exists()


def test_a_fault_that_cannot_be_undone_stays_known(paths: MachinePaths, tmp_path: Path) -> None:
    run(text.arm(paths, "ab12", f"test -e '{tmp_path}/able' || {{ echo 'no such rule' >&2; exit 1; }}", 1000))
    with pytest.raises(AssertionError, match="a fault is not undone: no such rule"):
        run(text.remove_node(paths))
    (tmp_path / "able").touch()
    assert run(text.remove_node(paths)).split() == ["fault", "node"]


def test_a_disk_that_is_full_is_no_other_node(tmp_path: Path) -> None:
    data = tmp_path / "full"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=2,mode=755", "tmpfs", data], check=True)
    try:
        with pytest.raises(AssertionError, match="No space left on device"):
            run(text.claim(str(data), "{}"))
    finally:
        subprocess.run(["umount", data], check=True)


def test_a_machine_has_one_node_at_a_time_and_a_directory_of_its_own(paths: MachinePaths, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="another node is there"):
        run(text.claim(paths.data, "{}"))
    foreign = tmp_path / "it's $(id) srv"
    foreign.mkdir()
    (foreign / "kafka").mkdir()
    with pytest.raises(AssertionError, match=r"srv has other things in it: name a directory of kafka-trial's own"):
        run(text.claim(str(foreign), "{}"))
    assert run(text.remove_kafka(str(foreign))) == ""
    assert (foreign / "kafka").is_dir()


def test_the_node_of_another_run_is_left_alone(paths: MachinePaths) -> None:
    owner, late = '{"run": "a/b \\\\ c"}', '{"run": "a/late"}'
    Path(paths.node, "owner").write_text(f"{owner}\n")
    ours, other = MachinePaths(paths.data, owner), MachinePaths(paths.data, late)
    run(text.start(ours, held=False))
    for script in (
        text.signal(other, "KILL"),
        text.stop(other, 1),
        text.start(other, held=True),
        text.release(other),
        text.wipe(other),
        text.arm(other, "ab12", "echo", 1000),
        text.start_helper(other, "ab12", "sleep 1000"),
    ):
        with pytest.raises(AssertionError, match="its machine has the node of another run now"):
            run(script)
    assert run(text.remove_node(other)) == ""
    assert state(ours) == "running"
    assert run(text.remove_node(ours)).split() == ["process", "node"]


def test_a_node_that_is_gone_takes_nothing_of_a_late_run(paths: MachinePaths) -> None:
    run(text.remove_node(paths))
    with pytest.raises(AssertionError, match="cd"):
        run(text.start(MachinePaths(paths.data, "{}"), held=True))
    assert run(text.remove_node(MachinePaths(paths.data, "{}"))) == ""


def names(directory: str | Path) -> list[str]:
    return sorted(path.name for path in Path(directory).iterdir())


@contextmanager
def full(directory: Path, options: str) -> Iterator[Path]:
    """A file system that is as good as full."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,{options}", "tmpfs", directory], check=True)
    try:
        yield directory
    finally:
        wait_for(lambda: not within(directory), f"the processes in {directory} end", 20, every=0.05)
        subprocess.run(["umount", directory], check=True)


def within(directory: Path) -> list[psutil.Process]:
    """The processes whose working directory is in it."""
    everyone = psutil.process_iter(["cwd"])
    return [one for one in everyone if (cwd := one.info["cwd"]) and Path(cwd).is_relative_to(directory)]


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system is root's to mount")
@pytest.mark.parametrize("inodes", [2, 3, 4, 5, 6])
def test_a_claim_that_a_full_disk_broke_off_leaves_nobodys_node(inodes: int, tmp_path: Path) -> None:
    """Otherwise the next run would find the node of another run, and only `cleanup --force` would remove that."""
    with full(tmp_path / "full", f"size=1m,nr_inodes={inodes}") as data:
        with pytest.raises(AssertionError, match="No space left on device"):
            run(text.claim(str(data), "{}"))
        assert not (data / "node").exists()
        assert set(names(data)) <= {text.MARK}


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system is root's to mount")
def test_a_write_to_a_full_disk_fails_with_its_reason(tmp_path: Path) -> None:
    with (
        full(tmp_path / "full", "size=16k") as data,
        pytest.raises(AssertionError, match="No space left on device"),
    ):
        run(text.written(str(data / "node.properties"), "x" * 100_000))


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system is root's to mount")
def test_a_switch_for_which_there_is_no_room_leaves_the_earlier_one(tmp_path: Path) -> None:
    undone = tmp_path / "undone"
    with full(tmp_path / "full", "size=64k") as data:
        paths = MachinePaths(str(data))
        run(text.claim(paths.data, "{}") + text.arm(paths, "ab12", f"echo undone >'{undone}'", 1.0))
        with pytest.raises(AssertionError, match="No space left on device"):
            run(text.arm(paths, "ab12", f": {'x' * 100_000}\n", 1000.0))
        wait_for(undone.exists, "the earlier switch", 20, every=0.05)


def test_a_written_file_has_exactly_the_given_content(tmp_path: Path) -> None:
    content = "a 'b' $HOME `id` \\n \\ %s\n\n'EOF'\n"
    run(text.written(f"{tmp_path}/it's", content))
    assert (tmp_path / "it's").read_text() == content


def test_a_node_has_its_owners_name_from_its_first_moment_on(paths: MachinePaths) -> None:
    run(text.remove_node(paths))
    run(text.claim(paths.data, '{"run": "it\'s \\\\ $HOME"}'))
    assert Path(paths.node, "owner").read_text() == '{"run": "it\'s \\\\ $HOME"}\n'
    with pytest.raises(AssertionError, match="another node is there"):
        run(text.claim(paths.data, "{}"))
    assert Path(paths.node, "owner").read_text() == '{"run": "it\'s \\\\ $HOME"}\n'
    assert names(paths.data) == [text.MARK, text.NODE]


def test_of_claims_at_once_one_is_had_whole(tmp_path: Path) -> None:
    data = f"{tmp_path}/data"
    claims = [
        subprocess.Popen(["sh", "-euc", text.claim(data, str(number))], stderr=subprocess.DEVNULL)
        for number in range(8)
    ]
    won = [number for number, one in enumerate(claims) if one.wait() == 0]
    assert won == [int(Path(data, "node/owner").read_text())]
    assert names(f"{data}/node") == ["data", "helpers", "owner", "switches"]
    assert names(data) == [text.MARK, text.NODE]


def test_kafka_is_not_removed_from_under_a_node_that_came_meanwhile(paths: MachinePaths) -> None:
    Path(paths.data, text.KAFKA, "4.3.1").mkdir(parents=True)
    assert run(text.remove_kafka(paths.data)) == ""
    assert Path(paths.data, text.KAFKA, "4.3.1").is_dir()
    run(text.remove_node(paths))
    assert run(text.remove_kafka(paths.data)) == "kafka\n"


def test_a_directory_that_was_there_is_left_there(tmp_path: Path) -> None:
    """Such as an empty /srv: it is filled, and emptied, and not ours to remove."""
    there, made = tmp_path / "there", tmp_path / "made"
    there.mkdir()
    for data in (there, made):
        run(text.claim(str(data), "{}"))
        run(text.remove_node(MachinePaths(str(data))))
        run(text.remove_kafka(str(data)))
    assert names(there) == []
    assert not made.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="who else may have a directory is root's to say")
@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_directory_that_others_can_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    """Root runs what is in it: who made /tmp/x first, or may write there, would be root."""
    data = tmp_path / "data"
    (data / text.KAFKA).mkdir(parents=True)
    (data / text.MARK).touch()
    data.chmod(mode)
    os.chown(data, 65534 if mode == 0o755 else 0, 65534)
    with pytest.raises(AssertionError, match=r"others than root may write to .*/data: name another `data`"):
        run(text.claim(str(data), "{}"))
    assert names(data) == [text.MARK, text.KAFKA]
