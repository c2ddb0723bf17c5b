"""Imports a history of Jepsen's workload ``jepsen.tests.kafka`` as a run that checkers can judge (docs/jepsen.md)."""

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

from pydantic import ValidationError

from harness.core.errors import HistoryError, ScenarioError
from harness.core.guarantees import Configuration
from harness.history.paths import write_table
from harness.history.run_file import Origin, RunFile, State
from harness.history.schema import TABLES
from harness.history.seal import write_sealed
from harness.importing.edn import EdnFile
from harness.importing.operations import TOPIC, Conversion, Tables
from harness.importing.tables import TableFile

SCENARIO = "jepsen"


def import_jepsen(source: Path, out: Path, settings: Mapping[str, str] | None = None) -> RunFile:
    """Make the run directory ``out`` from the history in the file ``source``. Returns the run's run.json.

    ``settings``: what the history does not say about the cluster and its clients, by the names in Configuration. Raises
    HistoryError, ``file:line: …``, if the file is cut off, or is not such a history, or if ``out`` is in use;
    ScenarioError if a setting is unknown or invalid. ``out`` is then unchanged.
    """
    configuration = _configuration(settings or {})
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise HistoryError(f"{out}: exists already: name another --out")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as exc:
        raise HistoryError(f"{out}: cannot be written ({exc.strerror}): name another --out") from exc
    try:
        converted = _convert(EdnFile(source), beside)
        run = out.resolve()
        file = RunFile(
            run=f"{run.parent.name}/{run.name}",
            origin=Origin.JEPSEN,
            scenario_name=SCENARIO,
            scenario={"name": SCENARIO, "imported": source.name, **converted.summary()},
            configuration=configuration,
            watch_topic=TOPIC,
            state=State.RECORDED,
            notes=converted.notes,
        )
        write_sealed(beside, file)
        beside.chmod(0o755)
        beside.replace(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return file


def _configuration(settings: Mapping[str, str]) -> Configuration:
    try:
        return Configuration.model_validate({"version": "unknown", **settings})
    except ValidationError as exc:
        first = exc.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(Configuration.model_fields)
        raise ScenarioError(f"--set {name}: {first['msg']}; there are {known}") from exc


def _convert(file: EdnFile, run: Path) -> Conversion:
    filled = [field.name for field in fields(Tables)]
    for table in TABLES.keys() - {*filled}:
        write_table(run, table, TABLES[table].empty_table())
    with ExitStack() as stack:
        tables = Tables(**{name: stack.enter_context(TableFile(run, name)) for name in filled})
        conversion = Conversion(file, tables)
        for operation in file:
            conversion.take(operation)
        conversion.finish()
    return conversion
