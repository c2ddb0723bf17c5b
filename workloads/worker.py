"""One client process: ``python -m workloads.worker``.

Standard input: one line of JSON (workloads.protocol: Order), then ``begin``, later ``finish`` and the seconds that it
may take. Until ``begin`` it talks to no broker.
Standard output: a line of JSON statistics after each flush. When standard input closes, the harness is gone: the worker
writes what it has and ends.
"""

import os
import signal
import sys
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from harness.core.children import without_pandas
from workloads.loop import Commands, HarnessGoneError, send_report
from workloads.protocol import Order, Report


def work(order: Order, commands: Commands, stack: ExitStack) -> Report:
    """Do what an order says; returns the last report."""
    kind = _named(order.spec)
    client, spec = _named(kind.client), kind.model_validate(order.values)
    commands.wait()
    last: Report = client(spec, commands, stack)
    return last


def _named(path: str) -> Any:
    """What ``module:name`` means."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def main() -> None:
    """Run the worker that standard input describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    without_pandas()
    commands = Commands(sys.stdin.fileno())
    try:
        order = Order.model_validate_json(commands.wait())
        with ExitStack() as stack:
            report = work(order, commands, stack)
        report.finished = True
        send_report(report)
    except HarnessGoneError:
        # Nobody is left to report to. The journals were closed on the way here.
        os._exit(1)
    # The journals are closed. librdkafka's own shutdown would wait for brokers that may be cut off.
    os._exit(0)


if __name__ == "__main__":
    main()
