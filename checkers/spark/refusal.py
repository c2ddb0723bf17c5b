"""Explains in one line why Spark did not start, and what to change."""

import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from harness.core import java

#: An exception as Java prints it; ``said`` is its message without Spark's error code.
_THROWN = re.compile(
    r'(Caused by: |Exception in thread "[^"]*" |: )?([\w$]+\.)+\w*(Exception|Error): (\[[\w.]+\] )?(?P<said>.+)'
)
#: Lines that Java adds to any error, and lines of a stack trace.
_NO_REASON = ("at ", "... ", "Error: Could not create the Java", "Error: A fatal", "Error occurred during init")


def refusal(failed: str, master: str | None, conf: Mapping[str, str], log: Path) -> str:
    """One line: why Spark does not start, and what to change.

    ``failed``: the exception and the log, with their stack traces. ``master`` and ``conf``: as the caller set them.
    """
    if "masters are unresponsive" in failed:
        return f"no Spark master answers at {master}: start one there, or name another with --master"
    said = reason(failed)
    named = [f"--conf {key}" for key in conf if key in said]
    # Spark itself failed, or memory is lacking: so Java is not the problem.
    if named or "at org.apache.spark." in failed or re.search("heap|memory", said):
        options = named or ["--master"] * bool(master) + ["--conf"] * bool(conf)
        change = f"change {' or '.join(options)}, or see" if options else "see"
        return f"Spark did not start ({said}): {change} {log}"
    whole = ", with all modules" if re.match("Module .* not found", said) else ""
    return f"Spark did not start ({said}); it needs Java {java.OLDEST} or later{whole}, see {log}"


def reason(text: str) -> str:
    """The line with the reason: the deepest cause of the first exception, else the first error, else the last line."""
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith(_NO_REASON)]
    thrown = [found for found in map(_THROWN.match, lines) if found]
    if thrown:
        [*_, deepest] = [thrown[0], *takewhile(lambda found: found[1] == "Caused by: ", thrown[1:])]
        return deepest["said"].partition(" SQLSTATE:")[0].rstrip(".")
    wrong = [line for line in lines if re.search("Exception|Error|ERROR|Invalid|No such file", line)]
    return [*wrong[:1], *lines[-1:], "it said nothing"][0]
