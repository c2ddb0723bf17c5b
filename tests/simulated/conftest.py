"""Simulated histories are a part of the proof, and a bounded number of them of its core."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent

#: What the core leaves out.
_WHOLE_PROOF = frozenset(
    {
        "test_a_thousand_histories_are_decided_as_they_truly_were",
        "test_of_these_each_record_is_decided_the_same_with_spark",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker("proof")
            if getattr(item, "originalname", None) not in _WHOLE_PROOF:
                item.add_marker("core")
