"""Every workload that a scenario can name: one line each."""

from pydantic import BaseModel

from workloads.groups import Groups
from workloads.queue import Queue
from workloads.transactions import Transactions

WORKLOADS: dict[str, type[BaseModel]] = {
    "queue": Queue,
    "groups": Groups,
    "transactions": Transactions,
}
