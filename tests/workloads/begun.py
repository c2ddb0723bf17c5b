"""Workers at work."""

from collections.abc import Iterator
from contextlib import contextmanager

from workloads.processes import Workers
from workloads.workload import Surroundings, Workload, start


@contextmanager
def begun(workload: Workload, surroundings: Surroundings) -> Iterator[Workers]:
    """Workers that have begun."""
    with start(workload, surroundings) as workers:
        workers.begin()
        yield workers
