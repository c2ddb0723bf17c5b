"""How long a packet takes there and back: connections to ports of a plane, tried and timed. Pure text, and its reading.

A port that refuses answers as fast as one that listens: it needs no Kafka there. The shell is bash, which has
connections and a clock, so that nothing has to be brought along.
"""

import re
from collections.abc import Iterable
from typing import Any

from harness.core.errors import ClusterError
from harness.core.topology import Node, Plane, Ports

#: Connections to each far end.
_TRIES = 4

#: Seconds that an answer is awaited, at most.
LONGEST_S = 15.0

#: (Before 5 bash has no such clock.)
_TRY = """\
[ -z "${EPOCHREALTIME-}" ] || echo KT-BEGAN
try() {
  said=$(exec 2>&1; began=$EPOCHREALTIME; : <>/dev/tcp/$1/$2; ended=$EPOCHREALTIME; echo $((${ended/./} - ${began/./})))
  echo "KT-TRIED" $said
}
"""

#: Refused is an answer; anything else that was complained of is none.
_TRIED = re.compile(r"^KT-TRIED (?P<said>.*?)(?P<us>\d+)$", re.MULTILINE)


def script(far: Iterable[Node], ports: Ports, plane: Plane, within: float) -> str:
    """Shell: connect to a port of the plane on each far end, some times and all at once; print how long each took."""
    port = (ports.of(plane) or (ports.client,))[0]
    tries = "".join(f"try {node.address} {port} &\n" for node in far for _ in range(_TRIES))
    return f"timeout {within:g} env LC_ALL=C bash -s <<'TRIES' || true\n{_TRY}{tries}wait\nTRIES\n"


def read(listing: str, tried: int) -> dict[str, Any]:
    """The round trips that were answered, as evidence has them, in milliseconds; ``tried``: far ends.

    Raises ClusterError where none could be timed.
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
