"""Every workload that a scenario can name: one line each."""

from workloads.groups import Groups
from workloads.queue import Queue
from workloads.transactions import Transactions
from workloads.workload import Workload

WORKLOADS: dict[str, type[Workload]] = {
    "queue": Queue,
    "groups": Groups,
    "transactions": Transactions,
}

#: The workload of a scenario that does not say its ``kind``.
DEFAULT = "queue"
