"""Every workload that a scenario can name: one line each."""

from pydantic import BaseModel

from workloads.queue import Queue
from workloads.transactions import Transactions

WORKLOADS: dict[str, type[BaseModel]] = {
    "queue": Queue,
    "transactions": Transactions,
}
