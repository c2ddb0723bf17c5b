"""Measures round trips: it tries connections to ports of a plane and times them. Shell text and a parser.

A closed port refuses as fast as an open one answers, so no Kafka has to listen there. The shell is bash: it has
connections and a clock, so no other program is needed.
"""

import re
from collections.abc import Iterable
from typing import Any

from harness.core.errors import ClusterError
from harness.core.topology import Node, Plane, Ports

#: Connections to try to each far end.
_TRIES = 4

#: The longest time to wait for an answer, in seconds.
LONGEST_S = 15.0

#: (Before version 5 bash has no EPOCHREALTIME.)
_TRY = """\
[ -z "${EPOCHREALTIME-}" ] || echo KT-BEGAN
try() {
  said=$(exec 2>&1; began=$EPOCHREALTIME; : <>/dev/tcp/$1/$2; ended=$EPOCHREALTIME; echo $((${ended/./} - ${began/./})))
  echo "KT-TRIED" $said
}
"""

#: "Connection refused" is an answer; any other error is none.
_TRIED = re.compile(r"^KT-TRIED (?P<said>.*?)(?P<us>\d+)$", re.MULTILINE)


def script(far: Iterable[Node], ports: Ports, plane: Plane, within: float) -> str:
    """Shell: try several connections to a port of the plane on each far end, all at once; print the time of each."""
    port = (ports.of(plane) or (ports.client,))[0]
    tries = "".join(f"try {node.address} {port} &\n" for node in far for _ in range(_TRIES))
    return f"timeout {within:g} env LC_ALL=C bash -s <<'TRIES' || true\n{_TRY}{tries}wait\nTRIES\n"


def read(listing: str, tried: int) -> dict[str, Any]:
    """The answered round trips as evidence, in milliseconds. ``tried``: the number of far ends.

    Raises ClusterError if there is no bash that can time them.
    """
    if "KT-BEGAN" not in listing:
        raise ClusterError("round trips are timed by bash 5 or later, which is not there")
    took = sorted(
        int(found["us"]) / 1e3
        for found in _TRIED.finditer(listing)
        if not found["said"] or "Connection refused" in found["said"]
    )
    parts = {"p50": 0.5, "p95": 0.95} if took else {}
    return {
        **{name: round(took[int(len(took) * part)], 1) for name, part in parts.items()},
        "tried": tried * _TRIES,
        "answered": len(took),
    }
