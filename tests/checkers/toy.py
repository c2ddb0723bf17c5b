"""An anomaly of a test's own, that nothing else in the tree knows: acknowledged records have an even number."""

from pyspark.sql import DataFrame

from checkers.anomalies.records import OF_SEND
from checkers.checker import RecordChecker
from checkers.scan.record_bits import Candidates
from harness.core.anomalies import Anomaly, Promise

EVEN = Anomaly(
    "even",
    "records have an even number",
    Promise("no promise at all", "this test"),
    is_loss=True,
    of_acknowledged=True,
    fate="even",
)


def acknowledged(candidates: Candidates) -> DataFrame:
    """Every acknowledged record.

    Returns: OF_SEND
    """
    return candidates.sends().selectExpr(*OF_SEND)


CHECKER = RecordChecker(EVEN, candidates="acknowledged", find=acknowledged, rule="sequence % 2 = 0")
