"""The lab itself: machines that are up, lose their power, hang, and come back."""

import pytest

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for
from harness.providers.ssh.machine import Machine

from .conftest import lab

pytestmark = [pytest.mark.lab, pytest.mark.core]


def state_of(name: str) -> str:
    """What ``scripts/lab status`` says of a machine."""
    reported = {line.split()[0]: " ".join(line.split()[2:]) for line in lab("status").splitlines()}
    return reported[name]


def test_a_machine_without_power_loses_data_its_kernel_had_not_written(machines: dict[str, Machine]) -> None:
    machine = machines["m4"]
    before = machine.run("cat /proc/sys/kernel/random/boot_id", "look")
    machine.run("echo kept >/root/synced; sync; echo lost >/root/cached", "write")
    lab("kill", "4")
    assert state_of("m4") == "down"
    assert state_of("m1") == "up"
    with pytest.raises(ClusterError, match="m4: "):
        machine.run("true", "look")
    lab("up", "4")
    assert state_of("m4") == "up"
    assert machine.run("cat /proc/sys/kernel/random/boot_id", "look") != before
    assert machine.run(
        "cat /root/synced; cat /root/cached 2>/dev/null || true; rm -f /root/synced /root/cached", "look"
    ) == ("kept\n")


def test_a_machine_that_is_frozen_answers_nobody_until_it_is_thawed(machines: dict[str, Machine]) -> None:
    lab("freeze", "m4")
    assert state_of("m4") == "up, silent"
    lab("thaw", "m4")
    wait_for(lambda: state_of("m4"), "it to answer", 20, good=lambda state: state == "up")
    assert machines["m4"].run("echo on", "look") == "on\n"


def test_lab_up_leaves_a_running_machine_alone(machines: dict[str, Machine]) -> None:
    booted = machines["m1"].run("cat /proc/sys/kernel/random/boot_id", "look")
    lab("up", "4")
    assert machines["m1"].run("cat /proc/sys/kernel/random/boot_id", "look") == booted
