"""Jepsen histories by hand: ``PROCESS TYPE F VALUE``, the value as Clojure writes it; each line a millisecond later.

0 invoke send [[:send 1 7]]        {:index 0, :time 1000000, :process 0, :type :invoke, :f :send, :value [[:send 1 7]]}
0 info send [[:send 1 7]] :error :timeout
nemesis info start nil
"""

from pathlib import Path

MS = 1_000_000


def edn(*lines: str) -> str:
    """The text of history.edn."""
    return "".join(_operation(n, line) + "\n" for n, line in enumerate(lines))


def write(path: Path, *lines: str) -> Path:
    """Store a history by hand."""
    path.write_text(edn(*lines))
    return path


def sent(key: int, value: int, reported: str, process: int = 0, kind: str = "ok") -> tuple[str, str]:
    """A send and its completion; ``reported`` is the value as completed: ``[3 7]``, ``[nil 7]``, or ``7``."""
    return f"{process} invoke send [[:send {key} {value}]]", f"{process} {kind} send [[:send {key} {reported}]]"


def polled(batches: str, process: int = 9, kind: str = "ok") -> tuple[str, str]:
    """A poll; ``batches`` is what came of it, without the braces: ``1 [[0 7]]``."""
    return f"{process} invoke poll [[:poll]]", f"{process} {kind} poll [[:poll {{{batches}}}]]"


def _operation(n: int, line: str) -> str:
    process, kind, function, value = line.split(" ", 3)
    process = process if process.isdigit() else f":{process}"
    return f"{{:index {n}, :time {(n + 1) * MS}, :process {process}, :type :{kind}, :f :{function}, :value {value}}}"
