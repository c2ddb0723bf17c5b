"""Queues of tc: their text, and what their counters mean."""

import dataclasses
import json
import os
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from harness.core.topology import Plane
from nemesis.mechanisms import iptables, netem, nfqueue, tc
from nemesis.mechanisms.mechanism import Mechanism

from .conftest import B2
from .namespaces import possible

TAG = "0123abcd"
CLASS = f"4b54:{tc.minor(TAG)}"


@pytest.mark.parametrize(
    ("mechanism", "queue"),
    [
        (netem.Delay(0.25), "netem limit 100000 delay 250ms"),
        (netem.Delay(10.0, 0.05), "netem limit 100000 delay 10000ms 50ms"),
        (netem.Delay(1.0, 0.05, "pareto"), "netem limit 100000 delay 1000ms 50ms distribution pareto"),
        (netem.Lose(0.02), "netem limit 100000 loss 2%"),
        (netem.Delay(1.0, 0.05, "uniform"), "netem limit 100000 delay 1000ms 50ms"),
        (netem.Lose(0.02, 0.25), "netem limit 100000 loss gemodel 1.5% 73.5%"),
        (netem.Reorder(0.25, 0.01), "netem limit 100000 delay 10ms reorder 25%"),
        (netem.Duplicate(0.05), "netem limit 100000 duplicate 5%"),
        (netem.Corrupt(0.005), "netem limit 100000 corrupt 0.5%"),
    ],
)
def test_a_queue_is_written_as_netem_reads_it(
    mechanism: netem.Delay | netem.Lose | netem.Reorder | netem.Duplicate | netem.Corrupt, queue: str
) -> None:
    assert mechanism.queue == queue


@pytest.mark.parametrize(("rate", "burst"), [(5_000, 3028), (1_000_000_000, 12_500_000)])
def test_a_tenth_of_a_second_of_a_rate_may_pass_at_once_and_two_frames_at_least(rate: int, burst: int) -> None:
    assert tc.Limit(rate).queue.startswith(f"tbf rate {rate}bit burst {burst} limit ")


def test_a_limit_shapes_a_planes_packets_both_ways() -> None:
    text = tc.Limit(10_000, Plane.REPLICATION).apply(B2, TAG)
    assert "show to 10.0.0.2/32" in text
    for device in ("$dev", "kt-ifb"):
        assert f"\nclass add dev {device} parent 4b54: classid {CLASS} htb rate 10gbit" in text
        assert f"handle {tc.minor(TAG)}: tbf rate 10000bit burst 3028 " in text
        for end in ("sport", "dport"):
            assert f"match ip {end} 9094 0xffff" in text


def test_a_queue_for_all_traffic_matches_every_packet() -> None:
    assert "u32 match u32 0 0 flowid" in netem.Delay(1.0).apply(B2, TAG)


@pytest.mark.parametrize(
    ("packets", "size", "one_by_one"),
    [
        (40, 3_920, 32),  # Pings.
        (5535, 8_000_000, 122),  # 144 pieces of TCP, seen on a veth pair.
        (1000, 1_500_000, 22),  # Full packets of UDP would all count one by one: counters show no difference.
        (10_000, 5_900_000, 90),  # 100 pieces of a hundred small segments each.
        (10, 0, 10),
        (0, 0, 0),
    ],
)
def test_each_large_tcp_packet_counts_at_least_once(packets: int, size: int, one_by_one: int) -> None:
    counted = netem.Duplicate(0.5).read(B2, TAG, queues(packets=packets, bytes=size))
    assert counted is not None
    assert counted.facts["one_by_one"] == one_by_one
    assert bool(counted.packets) is (one_by_one * 0.5 > 14)


@pytest.mark.parametrize("mechanism", [netem.Delay(1.0), tc.Limit(1000), iptables.Lose(0.5), nfqueue.Delay(1.0)])
def test_a_rule_that_cannot_be_listed_does_not_count_as_removed(mechanism: Mechanism, tmp_path: Path) -> None:
    """The kernel's tables may be locked: a switch that took the removal for done would not try again."""
    for tool in ("iptables", "iptables-save", "tc"):
        (tmp_path / tool).write_text("#!/bin/sh\nexit 4\n")
        (tmp_path / tool).chmod(0o755)
    node = dataclasses.replace(B2, address="127.0.0.1")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-euc", mechanism.remove(node, TAG)], env={"PATH": path}, check=False)
    assert done.returncode != 0


@pytest.mark.parametrize("tag", ["00000000", "ffffffff", "0000efff", "deadbeef"])
def test_a_class_has_a_number_that_tc_allows(tag: str) -> None:
    assert 0x10 <= int(tc.minor(tag), 16) < 0x4B54
    assert f"4b54:{tc.minor(tag)}" in netem.Lose(0.5).remove(B2, tag)


def queues(**mine: int) -> str:
    counters = {"packets": 0, "bytes": 0, "drops": 0, "qlen": 0, "overlimits": 0, "requeues": 0}
    return json.dumps(
        [
            {"handle": "0:", **counters, "packets": 99},
            {"handle": "4b54:", **counters, "packets": 99, "overlimits": 99},
            {"handle": f"{tc.minor(TAG)}:", **counters, **mine},
        ]
    )


def test_only_the_injections_own_queues_count() -> None:
    counted = netem.Delay(1.0).read(B2, TAG, queues(packets=5, bytes=500, overlimits=2))
    assert counted is not None
    counters = {"packets": 5, "bytes": 500, "drops": 0, "waiting": 0, "overlimits": 2, "requeues": 0}
    assert counted.facts == {"by": "netem", "of": "what leaves", **counters}
    assert counted.wrong is None


@pytest.mark.parametrize(
    "mechanism", [netem.Delay(1.0), netem.Lose(0.5), tc.Limit(1000)], ids=lambda m: type(m).__name__
)
def test_a_queue_that_is_not_there_counts_nothing(mechanism: netem.Delay | netem.Lose | tc.Limit) -> None:
    assert mechanism.read(B2, TAG, "") is None
    assert mechanism.read(B2, TAG, "[]") is None
    assert mechanism.read(B2, "00000000", queues(packets=5)) is None


@pytest.mark.parametrize(
    ("mechanism", "counters", "hit"),
    [
        (tc.Limit(1000), {"packets": 5, "overlimits": 2}, 2),
        (tc.Limit(1000), {"packets": 5, "qlen": 3}, 3),
        (tc.Limit(1000), {"packets": 5}, 0),
        (netem.Delay(1.0), {"packets": 5}, 5),
        (netem.Delay(1.0), {"qlen": 5}, 5),
        (netem.Delay(1.0), {"overlimits": 5}, 0),
        (netem.Lose(0.5), {"packets": 50, "drops": 1}, 1),
        (netem.Lose(0.5), {"packets": 50}, 0),
        (netem.Duplicate(0.5), {"packets": 28}, 0),
        (netem.Duplicate(0.5), {"packets": 30}, 15),
        (netem.Corrupt(0.05), {"packets": 300}, 15),
        (netem.Corrupt(0.05), {"packets": 200}, 0),
    ],
)
def test_packets_that_it_acted_on_are_those_held_back_or_late_or_lost(
    mechanism: netem.Delay | netem.Lose | tc.Limit | netem.Reorder | netem.Duplicate | netem.Corrupt,
    counters: dict[str, int],
    hit: int,
) -> None:
    counted = mechanism.read(B2, TAG, queues(**counters))
    assert counted is not None
    assert counted.packets == hit


@pytest.mark.parametrize(
    ("mechanism", "counters", "says"),
    [
        (netem.Corrupt(0.05), {"packets": 300}, None),
        (netem.Corrupt(0.05), {"packets": 200}, "of 200 packets perhaps none was hit"),
        (netem.Corrupt(0.05), {"packets": 0}, None),
        (netem.Duplicate(0.5), {"packets": 28}, "of 28 packets perhaps none was hit"),
        (netem.Reorder(0.5, 0.01), {"packets": 9}, None),
        (
            netem.Reorder(0.5, 0.01),
            {"packets": 9, "requeues": 2},
            "packets were let go at once, and none was seen to overtake",
        ),
    ],
)
def test_the_evidence_says_if_perhaps_no_packet_was_hit(
    mechanism: netem.Reorder | netem.Duplicate | netem.Corrupt, counters: dict[str, int], says: str | None
) -> None:
    counted = mechanism.read(B2, TAG, queues(**counters))
    assert counted is not None
    assert counted.wrong == says


@pytest.mark.parametrize(
    ("seen", "overtook"),
    [
        # (The queue's packets that left, those let go at once, and those that wait, look by look.)
        ([(50, 3, 0), (60, 13, 0)], 0),
        ([(50, 3, 4), (52, 5, 4)], 2),
        ([(50, 3, 4), (54, 5, 4)], 2),
        ([(50, 3, 4), (56, 5, 4)], 0),
        ([(50, 3, 4), (55, 5, 4)], 0),
        ([(50, 3, 1), (51, 4, 1)], 0),
        ([(50, 3, 4), (50, 3, 5)], 0),
        ([(50, 3, 4), (51, 4, 4), (90, 20, 0), (91, 21, 4), (93, 23, 2)], 3),
        ([(50, 3, 4)], 0),
    ],
)
def test_packets_sent_at_once_overtook_if_others_waited_before_and_after(
    seen: list[tuple[int, int, int]], overtook: int
) -> None:
    listing = "\n".join(queues(packets=left, requeues=at_once, qlen=waiting) for left, at_once, waiting in seen)
    counted = netem.Reorder(0.5, 0.01).read(B2, TAG, listing)
    assert counted is not None
    assert (counted.packets, counted.facts["seen_overtaking"]) == (overtook, overtook)
    assert counted.facts["requeues"] == seen[-1][1]


def test_a_queue_that_reorders_is_gone_where_the_last_look_has_none() -> None:
    mechanism = netem.Reorder(0.5, 0.01)
    assert mechanism.read(B2, TAG, f"{queues(requeues=3, qlen=4)}\n[]") is None
    assert mechanism.read(B2, TAG, "") is None


@pytest.mark.parametrize("mechanism", [netem.Delay(1.0), netem.Reorder(0.5, 0.01)], ids=lambda m: type(m).__name__)
def test_a_delay_or_reordering_that_dropped_packets_is_reported(mechanism: netem.Delay | netem.Reorder) -> None:
    counted = mechanism.read(B2, TAG, queues(packets=50, requeues=5, drops=2))
    assert counted is not None
    assert counted.wrong == "2 packets were lost, for there was no room"


@pytest.mark.parametrize(
    ("mechanism", "seconds"), [(netem.Delay(0.25), 2), (netem.Delay(10, 1), 15), (netem.Delay(200), 60)]
)
def test_a_queue_of_late_packets_is_removed_when_they_have_gone(mechanism: netem.Delay, seconds: int) -> None:
    remove = mechanism.remove(B2, TAG)
    steps = [remove.index(f"tc {step} del dev $d") for step in ("filter", "class")]
    assert steps[0] < remove.index(f" -le {seconds} ]") < steps[1]
    assert "tc qdisc change" not in remove


def test_a_limit_lets_all_go_at_once_before_it_is_removed() -> None:
    remove = tc.Limit(10_000).remove(B2, TAG)
    assert remove.index(f"handle {tc.minor(TAG)}: tbf rate 10gbit") < remove.index("while [ ")


def probe(modules: Path) -> str:
    """That of netem, which looks for loaded modules there."""
    return netem.Delay(1.0).probe.replace("/sys/module", str(modules))


@pytest.mark.parametrize(
    ("lacks", "asked", "can"),
    [("nothing", 5, True), ("netem", 4, False), ("u32", 5, False), ("htb", 1, False)],
)
def test_netem_is_taken_where_all_is_had_that_its_queue_stands_on(
    lacks: str, asked: int, can: bool, tmp_path: Path
) -> None:
    command = tmp_path / "tc"
    command.write_text(
        f'#!/bin/sh\ndo_it() {{ echo "$*" >>{tmp_path}/asked; case "$*" in *{lacks}*) exit 2 ;; esac; }}\n'
        'if [ "$1" != -batch ]; then do_it "$@"; exit; fi\nwhile read -r line; do do_it "$line"; done\n'
    )
    command.chmod(0o755)
    script = f"if {{ {probe(tmp_path)}; }}; then echo yes; else echo no; fi"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-euc", script], env={"PATH": path}, capture_output=True, text=True, check=True)
    lines = (tmp_path / "asked").read_text().splitlines()
    assert (done.stdout.strip(), len(lines)) == ("yes" if can else "no", asked)
    assert lines[-1] == ("qdisc del dev lo root" if lacks != "htb" else "qdisc add dev lo root handle 1: htb")


@pytest.mark.parametrize("loaded", [3, 2])
def test_kernel_modules_that_are_loaded_are_not_probed(loaded: int, tmp_path: Path) -> None:
    for module in ("sch_htb", "sch_netem", "cls_u32")[:loaded]:
        (tmp_path / module).mkdir()
    (tmp_path / "tc").write_text(f"#!/bin/sh\n: >{tmp_path}/asked\nexit 2\n")
    (tmp_path / "tc").chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-euc", probe(tmp_path)], env=environment, check=False)
    assert (done.returncode == 0, (tmp_path / "asked").exists()) == ((True, False) if loaded == 3 else (False, True))


@pytest.mark.skipif(not possible(), reason="making network namespaces needs root, iproute2 and iptables")
def test_an_ingress_queue_of_the_machines_own_is_left_to_it() -> None:
    limit = tc.Limit(10_000)
    made = (
        "ip link add v0 type veth peer name v1\n"
        f"ip addr add {B2.address}/24 dev v0\nip link set v0 up\nip link set v1 up\n"
        "tc qdisc add dev v0 handle ffff: ingress\n"
        "tc filter add dev v0 parent ffff: protocol ip prio 7 u32 match u32 0 0 flowid :1\n"
    )
    tried = "".join(f"sh -euc {shlex.quote(step(B2, TAG))} || true\n" for step in (limit.apply, limit.remove))
    listed = "tc qdisc show\ntc filter show dev v0 parent ffff:\nip -o link\n"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-euc", made + tried + listed], capture_output=True, text=True, check=True
    )
    assert "v0 has an ingress queue that is not ours" in done.stderr
    assert "qdisc ingress ffff: dev v0" in done.stdout
    assert "pref 7 u32" in done.stdout
    assert "htb" not in done.stdout
    assert "kt-ifb" not in done.stdout


@pytest.mark.skipif(not possible(), reason="making network namespaces needs root, iproute2 and iptables")
def test_four_commands_set_up_a_throttle_and_leave_existing_parts_alone(tmp_path: Path) -> None:
    """On a small machine the start of a program costs as much as its whole work."""
    for tool in ("ip", "tc"):
        real = shutil.which(tool)
        (tmp_path / tool).write_text(f'#!/bin/sh\necho {tool} "$@" >>{tmp_path}/ran\nexec {real} "$@"\n')
        (tmp_path / tool).chmod(0o755)
    limit, other = tc.Limit(80_000, Plane.REPLICATION), tc.Limit(80_000, Plane.CLIENT)
    made = f"ip link add v0 type veth peer name v1\nip addr add {B2.address}/24 dev v0\nip link set v0 up\n"
    marks = [f"echo {each} >>{tmp_path}/ran\n" for each in ("first", "again", "other", "gone")]
    steps = (limit.apply(B2, TAG), limit.apply(B2, TAG), other.apply(B2, "fedcba98"))
    listed = "tc qdisc show dev v0\ntc qdisc show dev kt-ifb\n"
    gone = "".join(f"sh -euc {shlex.quote(one.remove(B2, tag))}\n" for one, tag in ((limit, TAG), (other, "fedcba98")))
    script = made + "".join(
        f"{mark}sh -euc {shlex.quote(step)}\n" for mark, step in zip(marks, (*steps, listed + gone), strict=True)
    )
    done = subprocess.run(
        ["unshare", "--net", "sh", "-euc", f"{script}echo left\ntc qdisc show\nip -o link\n"],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    ran = (tmp_path / "ran").read_text()
    first, again, others = (
        ran.split(f"{one}\n")[1].split(f"{two}\n")[0].splitlines()
        for one, two in pairwise(("first", "again", "other", "gone"))
    )
    assert [len(first), len(again)] == [4, 3]
    assert not any("add" in line.split() for line in again)
    assert len(others) == 4
    there, left = done.stdout.split("left\n")
    for number in (tc.minor(TAG), tc.minor("fedcba98")):
        assert there.count(f"qdisc tbf {number}: ") == 2
    assert "htb" not in left
    assert "kt-ifb" not in left
