"""The Spark settings on which a verdict depends. The harness sets them, and no caller may change them."""

from collections.abc import Iterable, Mapping

from harness.core.errors import ScenarioError

#: Settings that may decide a verdict. They are set here, not left to Spark's defaults.
PINNED: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.default": "parquet",
}

#: The settings of Spark SQL that a caller may set; one that ends in a dot is a prefix. They change how work is done,
#: never its result.
_LAYOUT = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.codegen.",
    "spark.sql.execution.",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.join.",
    "spark.sql.objectHashAggregate.",
    "spark.sql.parquet.compression.codec",
    "spark.sql.shuffle.",
    "spark.sql.ui.",
    "spark.sql.warehouse.dir",
    "spark.sql.windowExec.",
)
#: Settings of where Spark runs: there is an option for that, and a Spark Connect server is never used.
_WHERE = frozenset({"spark.master", "spark.remote", "spark.api.mode"})


def check(keys: Iterable[str]) -> None:
    """Raises ScenarioError if a caller's setting is not allowed."""
    for key in keys:
        if key in _WHERE:
            raise ScenarioError(f"--conf {key}: say where Spark runs with --master")
        if key.startswith("spark.sql.") and not any(_within(key, layout) for layout in _LAYOUT):
            raise ScenarioError(
                f"--conf {key}: a verdict might depend on it; of spark.sql, set what concerns its layout alone, "
                "such as spark.sql.shuffle.partitions"
            )


def _within(key: str, layout: str) -> bool:
    return key.startswith(layout) if layout.endswith(".") else key == layout
