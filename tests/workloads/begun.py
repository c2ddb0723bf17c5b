"""Workers at work."""

from collections.abc import Iterator
from contextlib import contextmanager

from workloads.processes import Workers
from workloads.workload import Plan, Workload, start


@contextmanager
def begun(workload: Workload, plan: Plan) -> Iterator[Workers]:
    """Workers that have begun."""
    with start(workload, plan) as workers:
        workers.begin()
        yield workers
