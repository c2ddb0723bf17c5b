"""The names of the files in a run directory have one owner."""

from pathlib import Path

from harness.history import paths
from harness.history.run_file import RUN_FILE
from harness.history.seal import SEAL_FILE
from tests.sources import texts

HARNESS = Path(paths.__file__).parent.parent

#: The names, and the module that has them. (The other folders, history and anomalies, are words of much else.)
OWNERS = {
    "paths.py": {
        paths.COMPOSE_FILE,
        paths.MACHINES_FILE,
        paths.SETTINGS_FILE,
        paths.JOURNALS,
        paths.LOGS,
        paths.OBSERVER_LOG,
        paths.VERDICT_FILE,
        paths.REPORT_FILE,
        paths.JUNIT_FILE,
        paths.CHECKERS_LOG,
    },
    "run_file.py": {RUN_FILE},
    "seal.py": {SEAL_FILE},
}


def test_no_other_module_names_a_file_of_a_run_directory() -> None:
    elsewhere = {
        f"{path.relative_to(HARNESS)}: {text}"
        for path in HARNESS.rglob("*.py")
        for text in texts(path)
        for owner, names in OWNERS.items()
        if text.rpartition("/")[2] in names and path != HARNESS / "history" / owner
    }
    assert elsewhere == set()
