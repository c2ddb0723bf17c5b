"""The folders that come with the code: image recipes, scenarios, suites; in a wheel (``harness/_data``) or the repo."""

from pathlib import Path

_HERE = Path(__file__).parent


def folder(name: str) -> Path:
    """``docker``, ``scenarios`` or ``suites``: from the wheel if this is one, else from this file's repo."""
    packed = _HERE / "_data" / name
    return packed if packed.is_dir() else _HERE.parent / name


def recipes() -> Path:
    """The image recipes."""
    return folder("docker")


def scenarios() -> Path:
    """The named scenarios."""
    return folder("scenarios")
