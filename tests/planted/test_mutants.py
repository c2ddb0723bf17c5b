"""A checker that is wrong is found out: whatever is turned round or left out, other sets than the planted are found."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS, DELIVERY, GROUPS, LOG_ORDER_READER, TRANSACTIONS, WITHOUT_FINAL_READ
from checkers.checker import Checker, RecordChecker
from harness.core.anomalies import Anomaly
from tests.checkers.test_groups import INVERSIONS
from tests.checkers.test_groups import inverted as inverted_of_group
from tests.checkers.test_transactions import inverted as inverted_inside
from tests.planted import judging
from tests.planted.judging import KINDS, Kind

_SEEDS = range(2)
_SEEN = "(acknowledged | failed | undecided | found | delivered | whole | damaged)"

#: Conditions made a little too wide or too narrow: the checker, the condition, and its replacement.
_BOUNDARIES = (
    ("real_time_order", "rule", "after_sent_ns > acknowledged_ns", "after_sent_ns >= acknowledged_ns"),
    ("skipped", "rule", "offset >= passed_from", "offset > passed_from"),
    ("skipped", "rule", "offset < passed_to", "offset <= passed_to"),
    ("lost", "candidates", "complete", "true"),
    ("vanished", "candidates", "complete", "true"),
    ("misplaced", "candidates", "keyed", "false"),
)


def inverted(checker: Checker) -> Checker:
    """A checker that finds only records that it should not find."""
    if checker in TRANSACTIONS:
        return inverted_inside(checker)
    if checker in GROUPS:
        return inverted_of_group(*INVERSIONS["behind"])
    if checker.rule != "true":
        return replace(checker, rule=f"not ({checker.rule})")
    assert isinstance(checker, RecordChecker)
    return replace(checker, candidates=f"{_SEEN} & ~({checker.candidates})", foreign="0L", in_order=None)


def called(checker: Checker, how: str) -> Anomaly:
    """Its anomaly under a name of its own, so that its findings are kept apart."""
    return replace(checker.anomaly, name=f"{checker.anomaly.name}__{how}")


def mutants(checkers: Iterable[Checker]) -> Iterator[Checker]:
    """Every mutant of these checkers, each with a name that shows its checker."""
    for checker in checkers:
        yield replace(inverted(checker), anomaly=called(checker, "inverted"))
        for n, (anomaly, where, right, wrong) in enumerate(_BOUNDARIES):
            if checker.anomaly.name == anomaly and right in (condition := getattr(checker, where)):
                yield replace(checker, **{where: condition.replace(right, wrong), "anomaly": called(checker, f"{n}")})


def unchanged(checker: Checker) -> Checker:
    """The checker itself, with no more than a name like a mutant's."""
    return replace(checker, anomaly=called(checker, "unchanged"))


#: Which checkers are tried on which kind of histories.
TRIED = dict(
    zip(
        KINDS,
        (
            (*DELIVERY, *LOG_ORDER_READER),
            TRANSACTIONS,
            GROUPS,
            WITHOUT_FINAL_READ,
        ),
        strict=True,
    )
)
_CASES = [
    pytest.param(kind, mutant, id=f"{kind.name}: {mutant.anomaly.name}")
    for kind, checkers in TRIED.items()
    for mutant in mutants(checkers)
]


@pytest.fixture(scope="module")
def noticed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """By kind of histories: the mutants, and the unchanged, that find other than what is planted."""
    reported = {}
    for kind, checkers in TRIED.items():
        run = tmp_path_factory.mktemp("mutants")
        planted = judging.plant(kind, _SEEDS)
        wanted = judging.expected(planted)
        judging.write(run, kind, planted)
        tried = (*mutants(checkers), *map(unchanged, checkers))
        found = judging.judge(run, spark, tried)
        reported[kind.name] = {
            one.anomaly.name for one in tried if found.get(one.anomaly.name) != wanted[one.anomaly.name.split("__")[0]]
        }
    return reported


@pytest.mark.parametrize(("kind", "mutant"), _CASES)
def test_a_checker_that_is_wrong_is_found_out(kind: Kind, mutant: Checker, noticed: dict[str, set[str]]) -> None:
    assert mutant.anomaly.name in noticed[kind.name]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_checker_that_only_has_another_name_is_not(kind: Kind, noticed: dict[str, set[str]]) -> None:
    assert noticed[kind.name].isdisjoint(unchanged(checker).anomaly.name for checker in TRIED[kind])


def test_every_checker_has_a_mutant_and_every_boundary_is_a_condition_that_is_there() -> None:
    assert len(_CASES) == len(CHECKERS) + len(WITHOUT_FINAL_READ) + len(_BOUNDARIES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_checker_that_is_switched_off_is_found_out(kind: Kind) -> None:
    """A checker that finds nothing misses the anomalies that are planted in every history."""
    for history in judging.plant(kind, _SEEDS):
        planted = judging.expected([history])
        assert {anomaly for plot in kind.plots for anomaly in plot.finds} <= planted.keys()
        assert {checker.anomaly.name for checker in TRIED[kind]} <= planted.keys()
