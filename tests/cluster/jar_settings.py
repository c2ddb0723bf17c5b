"""Print the text of harness/cluster/settings_of_jars.txt, from the jars of each minor version before 2.6.

Where the folder of each version holds libs/ (made by Maven of harness.cluster.distribution.pom):
python -m tests.cluster.jar_settings 0.10.1.1 0.10.2.2 0.11.0.3 1.0.2 1.1.1 2.0.1 2.1.1 2.2.2 2.3.1 2.4.1 2.5.1
"""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

#: A setting on the page of versions up to 2.3, of 2.4, and of 2.5: its name and type.
_FORMS = (
    re.compile(r"<tr>\s*<td>([^<]+)</td>(?:</td>)?<td>.*?</td>(?:</td>)?<td>(\w+)</td>", re.DOTALL),
    re.compile(r"^<li><b>([a-z0-9.]+)</b>:.*?<b>Type</b>: (\w+)<", re.DOTALL | re.MULTILINE),
    re.compile(r'<h4><a id="([^"]+)".*?<th>Type:</th><td>(\w+)</td>', re.DOTALL),
)


def settings(page: str) -> dict[str, str]:
    """The type of each setting, by its name, on the page that a version's KafkaConfig prints of itself."""
    return dict(next(found for form in _FORMS if (found := form.findall(page))))


def lines(versions: Sequence[str], known: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Of each setting its name, type, the first minor version that has it, and, where the newest lacks it, the last."""
    minors = [re.sub(r"\.\d+$", "", version) for version in versions]
    found = []
    for name in sorted({name for of in known.values() for name in of}):
        for kind, alike in groupby(zip(minors, versions, strict=True), key=lambda one: known[one[1]].get(name)):
            which = [minor for minor, _ in alike]
            if kind is not None:
                found.append(" ".join([name, kind, which[0], *([which[-1]] if which[-1] != minors[-1] else [])]))
    return found


def _page(libraries: Path) -> str:
    command = ["java", "-cp", f"{libraries}/*", "kafka.server.KafkaConfig"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    every = sys.argv[1:]
    print(*lines(every, {one: settings(_page(Path(one) / "libs")) for one in every}), sep="\n")
