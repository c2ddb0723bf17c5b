"""A streaming reader of EDN (github.com/edn-format/edn), as far as Clojure prints data in it.

No EDN library for Python reads a file form by form. This one does, a piece of the file at a time, so that a history of
any length takes only the memory of its longest form. Maps become dicts (or tuples of alternating keys and values, if a
key cannot be a dict's key); vectors, lists and sets become tuples; strings become str; nil, true and false become None,
True and False; numbers become int or float. Keywords, symbols, characters and ratios become str as written: a keyword
keeps its colon. A tag is dropped, and its form is read. ``#_`` is refused: Clojure never prints it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from harness.core.errors import HistoryError

#: A longer string means that the file is not EDN.
_LONGEST_TOKEN = 1 << 26

#: Clojure prints no test with deeper nesting, and a deeper one would overflow the stack of a reader.
_DEEPEST = 500
#: The number of digits that Python reads.
_MOST_DIGITS = 4_000

#: Every token that matters; between two of them is space. A string without an end reaches to the end of the text.
_TOKEN = re.compile(
    r'[\[\]{}()\n]|[^\s,"\[\]{}();\\#][^\s,"\[\]{}();]*|"[^"\\]*(?:\\.[^"\\]*)*"?|\\\S\w*|;[^\n]*|#\{|#[^\s,"\[\]{}();]*',
    re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?\d+N?")
_FLOAT = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_CLOSES = {"[": "]", "{": "}", "(": ")", "#{": "}"}
_CLOSERS = frozenset(_CLOSES.values())
_CONSTANTS = {"nil": None, "true": True, "false": False}


class EdnFile:
    """The forms of a file, one after another. If the whole file is one vector or list, the forms in it.

    ``piece``: how many characters are read at a time. Iterating raises HistoryError, ``file:line: …``, if the file
    cannot be read, is cut off, or is not EDN.
    """

    def __init__(self, path: Path, piece: int = 1 << 20) -> None:
        self.path = path
        self._piece = piece
        #: The line on which the last form begins.
        self.line = 1

    def error(self, why: str, line: int | None = None) -> HistoryError:
        """An error about the last form, or about a line."""
        return HistoryError(f"{self.path}:{self.line if line is None else line}: {why}")

    def __iter__(self) -> Iterator[Any]:
        try:
            with self.path.open(encoding="utf-8", newline="\n") as file:
                yield from self._forms(file)
        except OSError as exc:
            raise HistoryError(f"{self.path}: cannot be read ({exc.strerror})") from exc
        except UnicodeDecodeError as exc:
            raise HistoryError(f"{self.path}: is not text, so it is not EDN") from exc

    def _forms(self, file: TextIO) -> Iterator[Any]:  # noqa: PLR0912, PLR0915 - one loop, no call for a token
        line = 1
        around: str | None = None
        fresh = True
        outer: list[tuple[str, list[Any]]] = []
        items: list[Any] = []
        value: Any
        for tokens in _pieces(file, self._piece):
            for token in tokens:
                # The most frequent case first: an import spends its time in this loop.
                if token.isdecimal():
                    value = self._integer(token, line)
                elif token in _CLOSES:
                    if not outer:
                        self.line = line
                        if fresh and token in "[(":
                            around, fresh = _CLOSES[token], False
                            continue
                    if len(outer) >= _DEEPEST:
                        raise self.error(f"forms within forms, more than {_DEEPEST} deep", line)
                    outer.append((token, items))
                    items = []
                    continue
                elif token in _CLOSERS:
                    if not outer:
                        if token != around:
                            raise self.error(f"{token} closes nothing", line)
                        around = None
                        continue
                    opener, inner = outer[-1][0], items
                    if token != _CLOSES[opener]:
                        raise self.error(f"{token} where {_CLOSES[opener]} was awaited", line)
                    value = self._map(inner, line) if opener == "{" else tuple(inner)
                    items = outer.pop()[1]
                elif token == "\n":
                    line += 1
                    continue
                elif token[0] == ":":
                    value = token
                elif token[0] == ";" or _is_tag(token):
                    continue
                else:
                    value = self._atom(token, line)
                    line += token.count("\n")
                if outer:
                    items.append(value)
                    continue
                if token not in _CLOSERS:
                    self.line = line
                fresh = False
                yield value
        if outer:
            raise self.error("the file is cut off in the middle of what begins here")
        if around:
            raise self.error(f"the file is cut off: it ends without its {around}", line)

    def _map(self, items: list[Any], line: int) -> Any:
        if len(items) % 2:
            raise self.error("a map has a key without a value", line)
        try:
            return dict(zip(items[::2], items[1::2], strict=True))
        except TypeError:
            return tuple(items)

    def _atom(self, token: str, line: int) -> Any:
        if token[0] == '"':
            if not _STRING.fullmatch(token):
                raise self.error("the file is cut off in the middle of a string", line)
            return self._unescaped(token[1:-1], line) if "\\" in token else token[1:-1]
        if token.startswith("#_"):
            raise self.error("#_ is not read: take it out, with the form after it", line)
        if _INTEGER.fullmatch(token):
            return self._integer(token.removesuffix("N"), line)
        return _CONSTANTS[token] if token in _CONSTANTS else _number(token)

    def _integer(self, digits: str, line: int) -> int:
        if len(digits) > _MOST_DIGITS:
            raise self.error(f"a number of {len(digits)} digits", line)
        return int(digits)

    def _unescaped(self, text: str, line: int) -> str:
        r"""A text without its escapes. Java writes a character beyond U+FFFF as two ``\uXXXX``."""
        written = _ESCAPE.sub(_unescaped, text)
        try:
            return written.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as exc:
            raise self.error("a string with half of a surrogate pair", line) from exc


def _pieces(file: TextIO, size: int) -> Iterator[list[str]]:
    """The tokens of a file, in pieces that end between two tokens."""
    rest = ""
    while piece := file.read(size):
        text = rest + piece
        end = max(text.rfind(" "), text.rfind("\n"), text.rfind(",")) + 1
        tokens = _TOKEN.findall(text, 0, end)
        rest = text[end:]
        if tokens and _may_go_on(tokens[-1]):
            rest = tokens.pop() + rest
        if len(rest) > _LONGEST_TOKEN:
            break
        yield tokens
    yield _TOKEN.findall(rest)


def _may_go_on(token: str) -> bool:
    return token[0] == ";" or (token[0] == '"' and not _STRING.fullmatch(token))


def _is_tag(token: str) -> bool:
    return token[0] == "#" and not token.startswith(("#_", "##", "#'"))


def _number(token: str) -> float | str:
    return float(token.removesuffix("M")) if _FLOAT.fullmatch(token) else token


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])
