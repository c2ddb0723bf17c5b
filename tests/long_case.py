"""Cases of a test that `scripts/test all` alone runs."""

from functools import partial

import pytest

#: A case for `pytest.mark.parametrize`: its arguments, and its ``id``.
long_case = partial(pytest.param, marks=pytest.mark.long)
