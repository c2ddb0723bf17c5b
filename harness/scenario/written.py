"""Read a scenario as written."""

from pathlib import Path

from harness.core.errors import ScenarioError
from harness.core.written import KeyPath, Written, parsed

#: The message for a file that is not a scenario.
SCENARIO = "a scenario is a mapping of keys such as cluster, topic, workload, timeline"


def parse(text: str, origin: str, wanted: str = SCENARIO) -> Written:
    """The data of a text. Raises ScenarioError, with the line, if it is not a YAML mapping (the message is then
    ``wanted``), or has a key twice."""
    return parsed(text, origin, wanted, any_bytes=may_name_files)


def read(path: Path, wanted: str = SCENARIO) -> Written:
    """The data of a file. Raises ScenarioError if it cannot be read, or is not what is ``wanted``."""
    return parse(read_text(path), str(path), wanted)


def read_text(path: Path) -> str:
    """The text of a file. Raises ScenarioError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ScenarioError(f"{path}: cannot be read ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError(f"{path}: is not text in UTF-8") from exc


def may_name_files(keys: KeyPath) -> bool:
    """Whether a value may be a path (of an inventory), which may have any bytes."""
    return keys[:1] == ("cluster",)
