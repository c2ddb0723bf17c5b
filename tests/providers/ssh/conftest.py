"""A machine that is this one, reached by SSH."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .server import Lab, lab_at


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """An SSH server here, known by both of this machine's names."""
    if os.geteuid() != 0:
        pytest.skip("what is run on a machine is run as root")
    with lab_at(tmp_path) as running:
        running.knows()
        known = running.known.read_text()
        running.known.write_text(known + known.replace("127.0.0.1", "localhost"))
        yield running
