"""Two sets of runs side by side."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.core.errors import HistoryError
from harness.core.verdict import Expectation, Judgement, Standing, Verdict
from harness.history.run_file import State
from harness.report import write as write_reports
from harness.suite.comparing import CaseFigures, changes, compare, figures, grown, judged_differently, worse
from harness.suite.measure import choose, measured
from harness.suite.results import Before, Result, RunOutcome, SuiteFile
from harness.suite.stored import Runs, Stored, by_case, listed, of_suite, read_run
from tests.report.verdicts import lost, verdict
from tests.suite.fakes import case, record, suite_file

SAME = CaseFigures(
    4, 4, {"valid": 4}, 0.0, 5.0, 1.0, 0.1, 1.0, frozenset(), frozenset(), recovered=frozenset({"cut", "kill"})
)


def judged(store: Path, scenario: str, seed: int = 1, found: Verdict | None = None, moment: str = "20260101") -> Stored:
    directory = record(store, scenario, seed, moment=moment)
    run = read_run(directory)
    write_reports(directory, found or verdict(), run.file)
    return read_run(directory)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"as_expected": 3}, ["as expected: 4 of 4 before, 3 of 4 now"]),
        ({"runs": 8, "as_expected": 8}, []),
        ({"runs": 2, "as_expected": 2}, []),
        ({"anomalies": frozenset({"lost"})}, ["lost: not found before"]),
        (
            {"anomalies": frozenset({"lost"}), "violations": frozenset({"lost"})},
            ["lost: a violation now, not found before"],
        ),
        ({"unavailable": 9.9}, []),
        ({"unavailable": 10.1}, ["longest without an acknowledgement: 5.0 s before, 10.1 s now"]),
        ({"unavailable": None}, []),
        ({"recovery": 5.9}, []),
        ({"recovery": 6.1}, ["first acknowledgement after a heal: 1.0 s before, 6.1 s now"]),
        ({"p50": 3.0}, []),
        ({"p50": 3.2}, ["median time to an acknowledgement: 100 ms before, 3.2 s now"]),
        ({"p99": 5.9}, []),
        ({"p99": 6.1}, ["99th percentile of the time to an acknowledgement: 1.0 s before, 6.1 s now"]),
        ({"loss": 0.5}, ["acknowledged writes that are lost: 0.0% before, 50.0% now"]),
        ({"loss": 0.009}, []),
        ({"loss": 0.5, "named": frozenset({"lost"})}, []),
        ({"loss": None}, []),
        ({"anomalies": frozenset({"lost"}), "named": frozenset({"lost"})}, []),
        (
            {"anomalies": frozenset({"lost"}), "undecided": frozenset({"lost"})},
            ["lost: not found before"],
        ),
        (
            {"anomalies": frozenset({"lost"}), "violations": frozenset({"lost"}), "named": frozenset({"lost"})},
            ["lost: a violation now, not found before"],
        ),
        (
            {
                "anomalies": frozenset({"lost"}),
                "violations": frozenset({"lost"}),
                "named": frozenset({"lost"}),
                "violating": True,
            },
            [],
        ),
        ({"never": frozenset({"cut"})}, ["first acknowledgement after a heal of cut: none now"]),
        ({"never": frozenset({"isolate"})}, []),
    ],
)
def test_each_worse_figure_is_named(changed: dict[str, object], says: list[str]) -> None:
    assert list(worse(SAME, replace(SAME, **changed), tolerance=1.5)) == says  # type: ignore[arg-type]


def test_a_permitted_loss_that_became_a_violation_is_worse() -> None:
    old = replace(SAME, anomalies=frozenset({"lost"}))
    new = replace(old, violations=frozenset({"lost"}))
    assert list(worse(old, new, 1.5)) == ["lost: a violation now, permitted before"]
    assert list(worse(new, old, 1.5)) == []


def test_undecided_is_worse_than_permitted_and_not_than_a_violation() -> None:
    lost_ = frozenset({"lost"})
    permitted, undecided = replace(SAME, anomalies=lost_, named=lost_), replace(SAME, anomalies=lost_, undecided=lost_)
    violated = replace(SAME, anomalies=lost_, violations=lost_)
    assert list(worse(permitted, replace(undecided, named=lost_), 1.5)) == ["lost: undecided now, permitted before"]
    assert list(worse(undecided, undecided, 1.5)) == []
    assert list(worse(violated, undecided, 1.5)) == []
    assert list(worse(undecided, violated, 1.5)) == ["lost: a violation now, undecided before"]


def test_more_loss_is_a_note_where_the_scenario_names_it_and_worse_where_not() -> None:
    lost_ = frozenset({"lost"})
    before, line = (
        replace(SAME, anomalies=lost_, loss=0.4),
        "acknowledged writes that are lost: 40.0% before, 90.0% now",
    )
    now = replace(before, loss=0.9)
    assert (list(worse(before, now, 1.5)), list(grown(before, now, 1.5))) == ([line], [])
    named = replace(now, named=lost_)
    assert (list(worse(before, named, 1.5)), list(grown(before, named, 1.5))) == ([], [line])
    for less in (0.3, 0.5):
        assert [*worse(before, replace(now, loss=less), 1.5), *grown(before, replace(now, loss=less), 1.5)] == []


#: Figures of two runs of one scenario with the same settings and the same outcome, on one machine.
BY_CHANCE = {
    "delivery/at-least-once": ({"p50": 0.1, "p99": 0.868}, {"p50": 0.186, "p99": 1.352}),
    "at-least-once, busy": (
        {"unavailable": 1.013, "p50": 0.1, "p99": 0.868},
        {"unavailable": 5.345, "p50": 0.598, "p99": 4.307},
    ),
    "jepsen-2013/unclean-election": ({"p50": 0.316}, {"p50": 2.507}),
    "lose-messages/leader-wiped": ({"recovery": 5.05, "p50": 1.377}, {"recovery": 8.578, "p50": 3.914}),
    "lose-messages/slow-followers-clean-acks-1": ({"loss": 0.011}, {"loss": 0.024, "named": frozenset({"lost"})}),
    "lose-messages/slow-followers-unclean": ({"p99": 7.16}, {"p99": 10.942}),
}


@pytest.mark.parametrize("scenario", BY_CHANCE)
def test_chance_differences_between_two_runs_are_reported_but_not_worse(scenario: str) -> None:
    before, now = (replace(SAME, **changed) for changed in BY_CHANCE[scenario])  # type: ignore[arg-type]
    assert list(worse(before, now, 1.5)) == []
    assert list(grown(before, now, 1.5)) or scenario == "delivery/at-least-once"


def test_a_real_slowing_down_is_worse() -> None:
    """Writes that wait for followers which lag ten seconds behind."""
    before = replace(SAME, unavailable=1.3, p50=0.1, p99=0.868)
    now = replace(before, unavailable=10.4, p50=5.2, p99=10.3)
    assert list(worse(before, now, 1.5)) == [
        "longest without an acknowledgement: 1.3 s before, 10.4 s now",
        "median time to an acknowledgement: 100 ms before, 5.2 s now",
        "99th percentile of the time to an acknowledgement: 868 ms before, 10.3 s now",
    ]


def test_without_a_judged_run_before_only_fewer_expected_runs_are_worse() -> None:
    """A crashed run found no anomaly, so it is no baseline."""
    crashed = figures(Runs(crashed=1))
    found = replace(
        SAME, runs=1, anomalies=frozenset({"lost"}), violations=frozenset({"lost"}), never=frozenset({"cut"})
    )
    assert list(worse(crashed, replace(found, as_expected=0), 1.5)) == []
    never = replace(SAME, runs=1, as_expected=0, verdicts={"unknown": 1})
    assert list(worse(never, crashed, 1.5)) == ["crashed now, was judged before"]
    assert list(worse(crashed, crashed, 1.5)) == []
    assert list(worse(replace(SAME, anomalies=frozenset()), replace(found, as_expected=1), 1.5)) == [
        "lost: a violation now, not found before",
        "first acknowledgement after a heal of cut: none now",
    ]


def service(first_ack: dict[str, int | None]) -> dict[str, object]:
    each = ({"fault": name, "first_ack_after_heal_ns": ns} for name, ns in first_ack.items())
    return {"partitions": [], "after_faults": [{"first_ack_after_injection_ns": None, **one} for one in each]}


def test_a_fault_after_which_most_runs_never_recovered_is_reported(tmp_path: Path) -> None:
    back, gone = service({"cut": 10**9, "end": None}), service({"cut": None, "end": None})
    runs = [judged(tmp_path, "a", seed, verdict(availability=of)) for seed, of in enumerate([back, gone, gone])]
    old, new = figures(Runs(runs[:1])), figures(Runs(runs))
    assert (old.recovered, old.never) == ({"cut"}, {"end"})
    assert (new.recovered, new.never) == (frozenset(), {"cut", "end"})
    [reported] = compare({"a": Runs(runs[:1])}, {"a": Runs(runs)}, 1.5)
    assert reported.worse == ["first acknowledgement after a heal of cut: none now"]
    [chance] = compare({"a": Runs(runs[:1])}, {"a": Runs(runs[:2])}, 1.5)
    assert chance.worse == []


def test_an_anomaly_that_the_scenario_allows_is_never_worse(tmp_path: Path) -> None:
    """`expect.allowed` names anomalies that may occur by chance; any other new anomaly is worse."""
    clean, found = judged(tmp_path, "a", 1), judged(tmp_path, "a", 2, verdict(Judgement.INVALID))
    found.file.expect = Expectation(allowed=["lost"], standing=Standing.PERMITTED)
    assert [one.worse for one in compare({"a": Runs([clean])}, {"a": Runs([found])}, 1.5)] == [[]]
    found.file.expect = Expectation(allowed=["duplicated"])
    [reported] = compare({"a": Runs([clean])}, {"a": Runs([found])}, 1.5)
    assert reported.worse[0] == "lost: not found before"


def test_the_figures_of_a_run_are_its_verdicts_and_its_latency(tmp_path: Path) -> None:
    found = figures(Runs([judged(tmp_path, "a", found=verdict(Judgement.INVALID, anomalies={"lost": lost()}))]))
    assert (found.runs, found.as_expected, found.verdicts) == (1, 1, {"invalid": 1})
    assert found.loss == pytest.approx(520 / 987)
    assert found.unavailable == 6.0
    assert found.recovery is None
    assert (found.anomalies, found.violations) == ({"lost"}, set())
    assert found.p50 is not None
    assert found.p50 >= 0
    violated = judged(tmp_path, "b", found=verdict(anomalies={"lost": lost(Standing.VIOLATION)}))
    assert figures(Runs([violated])).violations


def test_of_a_damaged_history_the_verdict_is_compared(tmp_path: Path) -> None:
    run = judged(tmp_path, "a")
    for part in (run.directory / "history" / "sends").iterdir():
        part.write_bytes(b"torn")
    found = figures(Runs([run]))
    assert (found.verdicts, found.p50, found.unavailable) == ({"valid": 1}, None, 6.0)
    assert found.torn == [
        f"{run.directory}: its history is damaged, only its verdict is compared: `kafka-trial check {run.directory}`"
    ]
    assert figures(Runs([judged(tmp_path, "b")])).torn == []


def test_other_verdicts_and_anomalies_are_named_even_if_they_are_not_worse() -> None:
    lossy = replace(
        SAME, verdicts={"valid": 1, "invalid": 3}, anomalies=frozenset({"lost", "vanished"}), named=frozenset({"lost"})
    )
    assert list(worse(SAME, lossy, 1.5)) == ["vanished: not found before"]
    assert list(judged_differently(SAME, lossy)) == [
        "verdict: valid before, invalid and valid now",
        "found only now: lost",
    ]
    crashed = replace(lossy, verdicts={"crashed": 4}, anomalies=frozenset())
    assert not [*judged_differently(lossy, crashed), *judged_differently(crashed, lossy)]
    assert list(judged_differently(lossy, SAME)) == [
        "verdict: invalid and valid before, valid now",
        "found only before: lost, vanished",
    ]
    assert not list(judged_differently(lossy, replace(lossy, verdicts={"invalid": 3, "valid": 2})))


def test_settings_and_versions_that_differ_are_named_and_descriptions_are_not(tmp_path: Path) -> None:
    old, new = judged(tmp_path, "a"), judged(tmp_path, "b")
    old.file.scenario = {"claim": "x", "topic": {"min.insync.replicas": 1}, "timeline": [{"wait": "5s"}]}
    new.file.scenario = {
        "claim": "y",
        "topic": {"min.insync.replicas": 2},
        "timeline": [{"wait": "5s"}, {"heal": "all"}],
    }
    old.file.versions, new.file.versions = {"kafka": "3.9.2"}, {"kafka": "4.3.1"}
    assert list(changes(old, new)) == [
        "timeline.1.heal: not there → all",
        "topic.min.insync.replicas: 1 → 2",
        "kafka: 3.9.2 → 4.3.1",
    ]


def test_of_a_store_the_newest_judged_run_of_each_scenario_is_compared(tmp_path: Path) -> None:
    judged(tmp_path, "a", 1)
    newest = judged(tmp_path, "a", 2, moment="20260202")
    newest.file.origin_unix_ns = 4 * 10**18
    newest.file.write(newest.directory)
    record(tmp_path, "a", 3)
    judged(tmp_path, "b", 4)
    found = by_case(tmp_path, print)
    assert {name: [run.file.seed for run in runs.judged] for name, runs in found.items()} == {"a": [2], "b": [4]}


def test_of_a_suite_the_runs_of_each_case_are_compared(tmp_path: Path) -> None:
    first = judged(tmp_path, "a", 1), judged(tmp_path, "a", 2)
    file = suite_file(case("a (one)"), case("a (one)", 2), case("a (two)"))
    for run, stored in zip(file.runs, first, strict=False):
        run.judged(verdict())
        run.directory = str(stored.directory.relative_to(tmp_path))
    directory = tmp_path / "suite-some-1"
    directory.mkdir()
    file.write(directory)
    assert {name: len(runs.judged) for name, runs in by_case(directory, print).items()} == {"a (one)": 2, "a (two)": 0}


def suite_of(store: Path, number: int, *runs: tuple[str, Stored], suite: str = "some") -> None:
    """A suite in a store: by their names, the cases that these runs are of."""
    names = [name for name, _ in runs]
    cases = [case(name, names[: at + 1].count(name)) for at, name in enumerate(names)]
    file = suite_file(*cases, began=float(number), suite=suite)
    for result, (_, run) in zip(file.runs, runs, strict=True):
        result.judged(verdict())
        result.directory = str(run.directory.relative_to(store))
    directory = store / f"suite-some-{number}"
    directory.mkdir()
    file.write(directory)


def test_of_a_store_the_runs_of_a_suite_are_its_cases(tmp_path: Path) -> None:
    """A scenario in two variants, each twice: neither is the scenario itself, nor stands for the other."""
    runs = [judged(tmp_path, "a", seed) for seed in range(5)]
    suite_of(tmp_path, 1, ("a (one)", runs[0]), ("a (one)", runs[1]), ("a (two)", runs[2]))
    suite_of(tmp_path, 2, ("a (two)", runs[3]), suite="another")
    found = by_case(tmp_path, print)
    seeds = {name: [run.file.seed for run in of.judged] for name, of in found.items()}
    assert seeds == {"a (one)": [0, 1], "a (two)": [3], "a": [4]}


@pytest.mark.parametrize("torn_by", ["a write", "a removal"])
def test_an_unreadable_run_is_worse_and_no_older_run_replaces_it(torn_by: str, tmp_path: Path) -> None:
    before, again, now, beside = (judged(tmp_path, "a", seed) for seed in range(4))
    suite_of(tmp_path, 1, ("a (one)", before), ("a (two)", before))
    suite_of(tmp_path, 2, ("a (one)", now), ("a (two)", again), ("a (two)", beside))
    for torn in (now, beside):
        path = torn.directory / "verdict.json"
        path.write_text("{") if torn_by == "a write" else path.unlink()
    said: list[str] = []
    for folder in (tmp_path / "suite-some-2", tmp_path):
        reported = compare(by_case(tmp_path / "suite-some-1", print), by_case(folder, said.append), 1.5)
        assert [(one.name, list(one.worse), list(one.changed)) for one in reported] == [
            (
                "a (one)",
                ["its runs cannot be read now, could before"],
                ["1 of the runs now cannot be compared: they cannot be read"],
            ),
            ("a (two)", [], ["1 of the runs now cannot be compared: they cannot be read"]),
        ]
    why = "not a verdict of this version" if torn_by == "a write" else "its verdict is gone"
    assert len(said) == 4
    assert all(f"{why}: `kafka-trial check {tmp_path}/a/" in line for line in said)
    assert len(by_case(tmp_path, said.append, baseline=True)["a (one)"].judged) == 1, "of before: that can be read"


def test_a_measure_whose_verdict_is_gone_is_reported_and_nothing_is_compared_with_it(tmp_path: Path) -> None:
    before, now = (judged(tmp_path, "a", seed) for seed in range(2))
    measure = choose(before.directory, {"a"}, tmp_path, print)
    assert measure is not None
    suite_of(tmp_path, 1, ("a", now))
    (before.directory / "verdict.json").unlink()
    directory = tmp_path / "suite-some-1"
    said: list[str] = []
    [reported] = measured(SuiteFile.read(directory), measure, directory, 1.5, said.append)
    assert (reported.old, list(reported.worse)) == (None, [])
    assert reported.changed == ["1 of the runs before cannot be compared: they cannot be read"]
    assert said == [
        f"{before.directory}: its verdict is gone: `kafka-trial check {before.directory}`",
        f"a: not compared: the runs of {before.directory} to compare it with can no longer be read",
    ]
    assert not measure.compared


def test_removed_runs_of_a_suite_are_reported_and_the_others_compared(tmp_path: Path) -> None:
    runs = [judged(tmp_path, "a", seed) for seed in range(3)]
    suite_of(tmp_path, 1, ("a (one)", runs[0]), ("a (two)", runs[1]), ("a (two)", runs[2]))
    for run in runs[:2]:
        shutil.rmtree(run.directory)
    found = by_case(tmp_path / "suite-some-1", print)
    assert found["a (one)"] == Runs(removed=1, noted=(True,))
    assert ([run.file.seed for run in found["a (two)"].judged], found["a (two)"].removed) == ([2], 1)
    reported = compare(found, {name: Runs([runs[2]]) for name in found}, 1.5)
    assert [(one.name, one.worse, list(one.changed)) for one in reported] == [
        ("a (one)", [], ["1 of the runs before cannot be compared: removed since"]),
        ("a (two)", [], ["1 of the runs before cannot be compared: removed since"]),
    ]
    assert reported[0].old is None
    shutil.rmtree(runs[2].directory)
    with pytest.raises(HistoryError, match="suite-some-1: the runs of this suite were removed since: name another"):
        by_case(tmp_path / "suite-some-1", print)


def test_a_suite_of_which_a_run_was_removed_keeps_its_other_cases_in_its_store(tmp_path: Path) -> None:
    runs = [judged(tmp_path, "a", seed) for seed in range(2)]
    suite_of(tmp_path, 1, ("a (one)", runs[0]), ("a (two)", runs[1]))
    shutil.rmtree(runs[0].directory)
    found = by_case(tmp_path, print)
    assert {name: [run.file.seed for run in of.judged] for name, of in found.items()} == {"a (one)": [], "a (two)": [1]}


def test_a_run_of_a_suite_that_lost_run_json_was_not_removed(tmp_path: Path) -> None:
    runs = [judged(tmp_path, "a", seed) for seed in range(2)]
    suite_of(tmp_path, 1, ("a (one)", runs[0]), ("a (two)", runs[1]))
    (runs[0].directory / "run.json").rename(runs[0].directory / "seal.json")
    said: list[str] = []
    assert by_case(tmp_path / "suite-some-1", said.append)["a (one)"] == Runs(unreadable=1, noted=(True,))
    assert [line.partition(":")[0] for line in said] == [str(runs[0].directory / "run.json")]


def test_a_suite_that_cannot_be_read_is_reported_and_its_runs_count_as_alone(tmp_path: Path) -> None:
    suite_of(tmp_path, 1, ("a", judged(tmp_path, "a")))
    path = tmp_path / "suite-some-1" / "suite.json"
    path.write_text("{")
    said: list[str] = []
    assert by_case(tmp_path, said.append).keys() == {"a"}
    assert [line.partition(" (")[0] for line in said] == [f"{path}: not a suite file of this version"]


def test_a_run_that_cannot_be_read_is_reported_and_the_rest_is_compared(tmp_path: Path) -> None:
    runs = [judged(tmp_path, "a", seed) for seed in range(3)]
    suite_of(tmp_path, 1, ("a (one)", runs[0]), ("a (one)", runs[1]))
    apart = judged(tmp_path, "b")
    for run in (runs[0], apart):
        (run.directory / "verdict.json").write_text('{"schema": 0}')
    said: list[str] = []
    found = by_case(tmp_path, said.append)
    assert {name: [run.file.seed for run in of.judged] for name, of in found.items()} == {
        "a (one)": [1],
        "a": [2],
        "b": [],
    }
    assert [line.partition(": ")[0] for line in said] == [f"{run.directory}/verdict.json" for run in (runs[0], apart)]
    said.clear()
    assert [run.file.seed for run in by_case(tmp_path / "suite-some-1", said.append)["a (one)"].judged] == [1]
    assert len(said) == 1


@pytest.mark.parametrize("baseline", [False, True])
def test_a_case_that_the_newest_suite_no_longer_has_is_not_a_case_of_the_store(baseline: bool, tmp_path: Path) -> None:
    runs = [judged(tmp_path, name, seed) for seed, name in enumerate("abcb")]
    suite_of(tmp_path, 1, ("a", runs[0]), ("b", runs[1]))
    suite_of(tmp_path, 2, ("b", runs[1]), suite="another")
    suite_of(tmp_path, 3, ("c", runs[2]))
    found = by_case(tmp_path, print, baseline)
    assert {name: [run.file.seed for run in of.judged] for name, of in found.items()} == {"b": [3], "c": [2]}
    assert listed(tmp_path) == {("some",): {"c"}, ("another",): {"b"}}
    directory = tmp_path / "suite-some-3"
    file = SuiteFile.read(directory)
    file.worse = {"a": ["gone"]}
    file.write(directory)
    assert listed(tmp_path, baseline)["some",] == ({"a", "c"} if baseline else {"c"})
    assert listed(directory, baseline) == {("some",): {"c"}}
    assert ("a" in by_case(tmp_path, print, baseline)) is baseline


def test_a_case_that_is_not_judged_any_more_is_worse_and_a_new_one_is_not(tmp_path: Path) -> None:
    run = Runs([judged(tmp_path, "a")])
    [gone] = compare({"a": run}, {}, 1.5)
    [fresh] = compare({}, {"a": run}, 1.5)
    assert gone.worse == ["it was run before, and is not any more"]
    assert fresh.worse == []


def test_a_case_that_a_budget_left_out_hides_no_older_run_of_it(tmp_path: Path) -> None:
    run = judged(tmp_path, "a", 1)
    suite_of(tmp_path, 1, ("a (one)", run))
    later = suite_file(case("a (one)"), began=2.0)
    later.runs[0].outcome = RunOutcome.NOT_STARTED
    (tmp_path / "suite-some-2").mkdir()
    later.write(tmp_path / "suite-some-2")
    assert of_suite(tmp_path / "suite-some-2", print) == {"a (one)": Runs()}
    found = by_case(tmp_path, print)
    assert [one.directory for one in found["a (one)"].judged] == [run.directory]
    [reported] = compare(of_suite(tmp_path / "suite-some-2", print), found, 1.5)
    assert (reported.old, reported.worse) == (None, [])


def test_a_run_that_crashed_is_not_as_expected_and_never_makes_a_suite_better(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("a", 2), case("a", 3))
    runs = [judged(tmp_path, "a", 1), judged(tmp_path, "a", 2, found=verdict(Judgement.INVALID, expected=False))]
    for run, stored in zip(file.runs, runs, strict=False):
        run.judged(verdict(expected=stored.file.seed == 1))
        run.directory = str(stored.directory.relative_to(tmp_path))
    file.runs[1].outcome = file.runs[2].outcome = RunOutcome.CRASHED
    directory = tmp_path / "suite-some-1"
    directory.mkdir()
    file.write(directory)
    found = of_suite(directory, print)["a"]
    assert (len(found.judged), found.crashed) == (1, 2)
    [reported] = compare({"a": Runs([runs[0]] * 2)}, {"a": found}, 1.5)
    assert reported.worse == ["as expected: 2 of 2 before, 1 of 3 now"]
    [all_crashed] = compare({"a": found}, {"a": Runs(crashed=1)}, 1.5)
    assert all_crashed.worse == ["as expected: 1 of 3 before, 0 of 1 now"]


def test_of_a_store_a_newer_run_that_crashed_stands_for_its_scenario_but_in_a_baseline(tmp_path: Path) -> None:
    good = judged(tmp_path, "a", 1)
    judged(tmp_path, "b", 1)
    crashed = read_run(record(tmp_path, "a", 2, State.CRASHED, moment="20260202"))
    crashed.file.origin_unix_ns = 4 * 10**18
    crashed.file.write(crashed.directory)
    assert by_case(tmp_path, print)["a"] == Runs(crashed=1)
    assert by_case(tmp_path, print, baseline=True)["a"] == Runs((good,))


def test_a_crashed_suite_does_not_hide_older_runs_from_a_comparison(tmp_path: Path) -> None:
    run = judged(tmp_path, "a", 1)
    suite_of(tmp_path, 1, ("a (one)", run))
    later = suite_file(case("a (one)"), case("b"), began=2.0)
    for result in later.runs:
        result.outcome = RunOutcome.CRASHED
    (tmp_path / "suite-some-2").mkdir()
    later.write(tmp_path / "suite-some-2")
    assert by_case(tmp_path, print, baseline=True) == {"a (one)": Runs((run,))}
    suite_of(tmp_path, 3, ("a (one)", judged(tmp_path, "a", 2)))
    later.write(tmp_path / "suite-some-2")
    assert [one.file.seed for one in by_case(tmp_path, print, baseline=True)["a (one)"].judged] == [2]


def test_a_scenario_that_can_no_longer_run_is_worse(tmp_path: Path) -> None:
    run = Runs([judged(tmp_path, "a")])
    file = suite_file(case("a"), case("b"))
    file.runs[0].outcome = file.runs[1].outcome = RunOutcome.CANNOT_RUN
    (tmp_path / "suite-some-1").mkdir()
    file.write(tmp_path / "suite-some-1")
    now = of_suite(tmp_path / "suite-some-1", print)
    assert [one.worse for one in compare({"a": run}, now, 1.5)] == [["cannot run now, was run before"], []]
    assert [one.worse for one in compare(now, {"a": run, "b": run}, 1.5)] == [[], []]


def test_the_worse_come_first(tmp_path: Path) -> None:
    good, bad = judged(tmp_path, "a"), judged(tmp_path, "b", found=verdict(Judgement.INVALID, expected=False))
    compared = compare({"a": Runs([good]), "b": Runs([good])}, {"a": Runs([good]), "b": Runs([bad])}, 1.5)
    assert [one.name for one in compared] == ["b", "a"]


def test_a_suite_without_a_judged_run_is_worse_and_no_baseline(tmp_path: Path) -> None:
    run = Runs([judged(tmp_path / "old", "a")])
    for number, (outcome, worse_) in enumerate(
        [
            (RunOutcome.CRASHED, "as expected: 1 of 1 before, 0 of 1 now"),
            (RunOutcome.CANNOT_RUN, "cannot run now, was run before"),
        ]
    ):
        store = tmp_path / str(number)
        file = suite_file(case("a"), ended=1.0)
        file.runs[0].outcome = outcome
        directory = store / "suite-some-1"
        directory.mkdir(parents=True)
        file.write(directory)
        for folder in (store, directory):
            assert [one.worse for one in compare({"a": run}, by_case(folder, print), 1.5)] == [[worse_]]
            with pytest.raises(HistoryError, match="no judged run here"):
                by_case(folder, print, baseline=True)
        suite_of(store, 0, ("a", judged(store, "a")))
        assert [one.worse for one in compare({"a": run}, by_case(store, print), 1.5)] == [[worse_]], "an older one"


def test_a_store_without_a_judged_run_is_refused_with_a_remedy(tmp_path: Path) -> None:
    record(tmp_path, "a", 1)
    with pytest.raises(HistoryError, match="no judged run here: `kafka-trial check"):
        by_case(tmp_path, print)
    with pytest.raises(HistoryError, match="no such directory"):
        by_case(tmp_path / "nowhere", print)


def test_a_verdict_that_is_none_is_one_line(tmp_path: Path) -> None:
    run = judged(tmp_path, "a")
    path = run.directory / "verdict.json"
    written = json.loads(path.read_text())
    torn = (
        {"partitions": [{"longest_unavailable": {"lasted_ns": "x"}}]},
        {"partitions": ["x"]},
        {"longest_unavailable": {"lasted_ns": math.nan}},
        {"after_faults": [{"fault": None}]},
        {"after_faults": [{"fault": "cut", "first_ack_after_heal_ns": []}]},
    )
    for document in ({}, *({**written, "availability": service} for service in torn)):
        path.write_text(json.dumps(document))
        with pytest.raises(HistoryError, match=r"verdict.json: not a verdict of this version: `kafka-trial check"):
            read_run(run.directory)
    path.write_text(json.dumps({**written, "availability": {}}))
    assert read_run(run.directory).verdict is not None


def test_a_result_knows_its_case() -> None:
    assert Result.of(case("a")).name == "a"
    assert SuiteFile.model_validate(suite_file(case("a")).model_dump(by_alias=True)).runs[0].name == "a"


@pytest.mark.parametrize("count", ["crashed", "removed", "unreadable", "cannot_run"])
def test_a_measure_of_more_runs_than_any_suite_has_is_none(count: str) -> None:
    assert Before.model_validate({count: 1_000_000})
    for number in (-1, 10**30):
        with pytest.raises(ValidationError):
            Before.model_validate({count: number})


def test_runs_that_could_not_run_beside_one_that_did_are_worse_and_those_not_made_are_named(tmp_path: Path) -> None:
    every = [judged(tmp_path, "a", seed) for seed in range(5)]
    [one] = compare({"a": Runs(every)}, {"a": Runs(every[:1], cannot_run=4)}, 1.5)
    assert one.worse == ["4 of 5 runs could not run now, 0 of 5 before"]
    [same] = compare({"a": Runs(every[:1], cannot_run=1)}, {"a": Runs(every[:2], cannot_run=2)}, 1.5)
    assert same.worse == []
    [rest] = compare({"a": Runs(every)}, {"a": Runs(every[:1], waiting=4)}, 1.5)
    left = "4 of the runs now cannot be compared: not judged yet, or interrupted"
    assert (rest.worse, rest.changed[:1]) == ([], [left])
