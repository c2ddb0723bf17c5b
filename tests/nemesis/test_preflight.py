"""What the kernel lacks is said in one line, before anything is started."""

from collections.abc import Mapping
from typing import ClassVar

import pytest

from harness.core.errors import ClusterError
from nemesis.catalogue import FAULTS
from nemesis.fault import Needs
from nemesis.preflight import NEEDS, Kernel, lacking, needed_by

from .controls import WRITTEN


def without(*missing: str) -> object:
    def try_script(script: str) -> str:
        if any(script == NEEDS[name].script for name in missing):
            raise ClusterError("trial failed: Error: Specified qdisc kind is unknown.")
        return ""

    return try_script


def test_a_kernel_that_has_all_lacks_nothing() -> None:
    assert lacking([(frozenset(NEEDS),)], without()) == []  # type: ignore[arg-type]


def test_a_kernel_without_netem_is_reported_in_one_line() -> None:
    (line,) = lacking([(frozenset({"netem", "htb"}),)], without("netem"))  # type: ignore[arg-type]
    assert line.startswith("this kernel has no sch_netem (tc: Specified qdisc kind is unknown): `duplicate`")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("need", "says"),
    [
        ("netem", "`duplicate` and `corrupt` need it"),
        ("htb", "`duplicate`, `corrupt` and `throttle` need it"),
        ("tbf", "`throttle` needs it"),
        ("ifb", "`throttle` needs it"),
        ("iptables", "`partition` and `isolate` need it; `flaky` needs it, or htb and netem"),
        (
            "nfqueue",
            "`slow` with a correlation needs it; `slow`, `reorder` and `flaky` with a correlation need it, or htb and "
            "netem",
        ),
    ],
)
def test_the_catalogue_says_which_faults_need_a_feature(need: str, says: str) -> None:
    assert needed_by(need) == says


def test_every_feature_is_needed_by_a_fault() -> None:
    assert [need for need in NEEDS if not needed_by(need)] == []


class Jam(FAULTS["throttle"]):  # type: ignore[misc]
    """A fault that another catalogue has, too."""

    forms: ClassVar[Mapping[str, Needs]] = {"at night": (frozenset({"htb"}), frozenset({"tbf"}))}


def test_a_fault_that_is_added_is_named_among_those_that_need_a_feature() -> None:
    assert needed_by("tbf", {**FAULTS, "jam": Jam}) == "`throttle` and `jam` need it; `jam` at night needs it, or htb"


def test_a_missing_feature_is_named_in_words_that_fit_containers_and_machines() -> None:
    (line,) = lacking([(frozenset({"iptables"}),)], without("iptables"))  # type: ignore[arg-type]
    assert line.startswith("iptables does not work in a network namespace here (iptables: ")
    assert [need for need, row in NEEDS.items() if "container" in row.missing + row.get] == []


def test_nothing_is_tried_that_is_not_needed() -> None:
    tried: list[str] = []
    lacking([(frozenset({"htb"}),), (frozenset({"htb"}),), ()], tried.append)
    assert tried == [NEEDS["htb"].script]


def test_of_alternatives_one_is_enough() -> None:
    either = (frozenset({"netem", "htb"}), frozenset({"iptables"}))
    assert lacking([either], without("netem")) == []  # type: ignore[arg-type]
    assert lacking([either], without("iptables")) == []  # type: ignore[arg-type]
    (line,) = lacking([either, either], without("netem", "iptables"))  # type: ignore[arg-type]
    assert line.startswith(NEEDS["iptables"].missing)


def test_of_alternatives_the_one_that_a_fault_uses_here_is_named_and_how_to_get_the_better() -> None:
    either = (frozenset({"netem", "htb"}), frozenset({"nfqueue"}))
    assert Kernel(without()).means(either) == "by htb and netem"  # type: ignore[arg-type]
    said = Kernel(without("netem")).means(either)  # type: ignore[arg-type]
    assert said.startswith("by nfqueue; this kernel has no sch_netem (tc: Specified qdisc kind is unknown): modprobe")
    assert "linux-modules-extra-$(uname -r)" in said
    assert Kernel(without("netem", "nfqueue")).means(either) == ""  # type: ignore[arg-type]
    assert Kernel(without()).means((frozenset({"htb"}),)) == ""  # type: ignore[arg-type]
    assert Kernel(without()).means(()) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "missing", "reported"),
    [
        ("slow", (), "by htb and netem; with a correlation by nfqueue"),
        ("slow", ("nfqueue",), "by htb and netem; with a correlation not at all: this kernel has no netfilter queue ("),
        ("slow", ("netem",), "by nfqueue; this kernel has no sch_netem ("),
        ("flaky", (), "by htb and netem"),
        ("flaky", ("netem",), "by iptables; this kernel has no sch_netem ("),
        ("throttle", (), ""),
    ],
)
def test_the_mechanism_of_each_form_of_a_fault_is_named(kind: str, missing: tuple[str, ...], reported: str) -> None:
    lacks, said = Kernel(without(*missing)).report(FAULTS[kind])  # type: ignore[arg-type]
    assert lacks == []
    assert said.startswith(reported)
    # A form that acts as the simplest one does is not mentioned.
    differs = {("slow", ()), ("flaky", ("netem",))}
    assert said.endswith("; with a correlation by nfqueue") == ((kind, missing) in differs)
    assert said == reported or missing


def test_a_fault_that_cannot_act_at_all_is_reported_once() -> None:
    lacks, said = Kernel(without("netem", "nfqueue")).report(FAULTS["slow"])  # type: ignore[arg-type]
    assert [line.partition(" (")[0] for line in lacks] == ["this kernel has no netfilter queue"]
    assert said.startswith("with a correlation not at all")


def test_each_thing_is_tried_once_whatever_is_asked() -> None:
    tried: list[str] = []
    kernel = Kernel(tried.append)
    for _ in range(2):
        assert kernel.lacking([(frozenset({"htb"}),)]) == []
        assert kernel.lacking([(frozenset({"tbf"}),)]) == []
        assert kernel.means((frozenset({"htb"}), frozenset({"tbf"}))) == "by htb"
    assert tried == [NEEDS["htb"].script, NEEDS["tbf"].script]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_need_of_the_catalogue_can_be_tried(kind: str) -> None:
    needs = FAULTS[kind].model_validate(WRITTEN[kind]).needs
    assert frozenset().union(*needs) <= set(NEEDS)
