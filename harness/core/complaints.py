"""The errors of validation, as lines that say where the mistake is and what to change."""

import re
from collections.abc import Callable, Collection, Iterable
from datetime import date
from difflib import get_close_matches
from typing import Any

from harness.core.printable import shown
from harness.core.quantities import Misfit
from harness.core.written import KeyPath, Written

#: Errors that only follow from other errors.
_CONSEQUENCES = {"default_factory_not_called"}

#: What a value should be, by the type of the error.
_SHOULD_BE = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "a mapping of keys to values"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
}

#: A member of an enumeration as pydantic shows it.
_MEMBER = re.compile(r"<\w+\.\w+: ('[^']*')>")

#: A line lists no more known names than these.
_MOST_LISTED = 40

#: Names of Kafka settings resemble each other: `retention.ms` is not a misspelt `replication`.
_NEAR_A_DOTTED_KEY = 0.75

#: The allowed keys below a key; None if any key is allowed, or no key is.
KeysAt = Callable[[KeyPath], list[str] | None]

#: The message for an error that only one kind of file has (its place in the data comes second); None for any other.
Special = Callable[[Any, KeyPath], str | None]


def complaints(
    errors: Iterable[Any],
    written: Written,
    keys_at: KeysAt,
    special: Special = lambda _, __: None,
    secret: bool = False,
) -> list[str]:
    """``file.yaml:7: topic.replication: …``, a line for each key, in the order of the file.

    ``errors``: pydantic's. ``secret``: quote no value.
    """
    messages: dict[KeyPath, str] = {}
    for error in errors:
        if error["type"] in _CONSEQUENCES:
            continue
        where = written.resolved(error["loc"])
        says = special(error, where) or _message(error, where, keys_at, secret)
        messages.setdefault(where, says)
    return written.lines(messages)


def _message(error: Any, where: KeyPath, keys_at: KeysAt, secret: bool) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    instead = "" if secret else f", not {shown(value)}"
    match kind:
        case "extra_forbidden":
            says = _unknown_key(str(error["loc"][-1]), where[:-1], keys_at)
        case "missing":
            says = f"key {error['loc'][-1]!r} is missing"
        case "union_tag_invalid":
            known = [tag.strip("'") for tag in str(context["expected_tags"]).split(", ")]
            says = unknown(_discriminator(context), _tagged(value, context), known)
        case "union_tag_not_found":
            says = f"say which one: key {_discriminator(context)!r} is missing"
        case _ if kind in _SHOULD_BE:
            says = f"should be {_SHOULD_BE[kind]}{instead}{_unquoted(kind, value)}"
        case "too_short":
            says = f"needs at least {context['min_length']}: the list is empty"
        case "string_too_long":
            says = f"is longer than {context['max_length']} characters: shorten it"
        case "literal_error" | "enum":
            says = f"should be {_MEMBER.sub(lambda member: member[1], context['expected'])}{instead}"
        case "value_error" if secret and isinstance(context["error"], Misfit):
            says = f"should be {context['error'].wanted}"
        case "value_error":
            says = str(context["error"])
        case _:
            subject, should, wanted = str(error["msg"]).partition(" should ")
            says = f"should {wanted}{instead}" if subject in {"Input", "String"} and should else str(error["msg"])
    return says


def unknown(what: str, name: object, known: Collection[str]) -> str:
    """``no fault is called 'kil'; did you mean 'kill'?``, or the known names if none is similar."""
    return f"no {what} is called {shown(name)}; {near(name, known)}"


def near(name: object, known: Collection[str]) -> str:
    """``did you mean 'kill'?``, or the known names if none is similar."""
    listed = f"known: {', '.join(known)}" if len(known) <= _MOST_LISTED else "no known name is similar"
    return similar(name, known) or listed


def similar(name: object, known: Collection[str]) -> str | None:
    """``did you mean 'kill'?``; None if no known name is similar."""
    found = get_close_matches(str(name), known, n=1)
    return f"did you mean {found[0]!r}?" if found else None


def _unknown_key(key: str, inside: KeyPath, keys_at: KeysAt) -> str:
    known = keys_at(inside) or []
    if (word := key.partition(":")[0]) in known and word != key:
        return f"no such key; put a space after {word}:"
    dotted = "." in key and not get_close_matches(key.lower(), known, cutoff=_NEAR_A_DOTTED_KEY)
    if dotted and (belongs := _belongs(key, inside, keys_at)):
        return f"no such key; {belongs}"
    whole, first = key.lower(), key.lower().partition(".")[0]
    return f"no such key; {similar(whole, known) or near(first, known)}"


def _belongs(key: str, inside: KeyPath, keys_at: KeysAt) -> str | None:
    """Where a key with dots belongs: below another key (``topic.replication``), or among Kafka's own settings."""

    def below(*parts: str | int) -> list[str]:
        return keys_at((*inside, *parts)) or []

    first, _, rest = key.partition(".")
    if rest in below(first):
        return f"write {rest} below {'.'.join(map(str, (*inside, first)))}"
    if "config" in below():
        parts, name = [inside], key.removeprefix(f"{inside[-1]}." if inside else "").removeprefix("config.")
    elif "config" in below(first):
        parts, name = [(*inside, first)], rest.removeprefix("config.")
    elif get_close_matches(first.lower(), below()):
        return None
    else:
        parts, name = [(*inside, part) for part in below() if "config" in below(part)], key
    under = " or ".join(".".join(map(str, (*part, "config"))) for part in parts)
    return f"a setting of Kafka's belongs under {under}{'' if name == key else f', as {name}'}" if under else None


def _unquoted(kind: str, value: object) -> str:
    """What to do about a value that YAML did not read as text."""
    return ": put it in quotes" if kind == "string_type" and isinstance(value, bool | int | float | date) else ""


def _tagged(value: Any, context: Any) -> object:
    """The name that was written; pydantic's context has it as text."""
    return value.get(_discriminator(context), context["tag"]) if isinstance(value, dict) else context["tag"]


def _discriminator(context: Any) -> str:
    return str(context["discriminator"]).strip("'")
