"""Fixtures that every folder of tests may use."""

import pytest
from pyspark.sql import SparkSession

from checkers.session import session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one Spark session of the whole test run; it ends with the process."""
    return session()
