"""Several names in one sentence."""

from collections.abc import Sequence


def in_order(names: Sequence[str]) -> str:
    """``"a, b and c"``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
