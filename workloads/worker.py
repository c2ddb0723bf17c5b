"""One client process: ``python -m workloads.worker``.

Standard input: one line of JSON (workloads.protocol: NamedSpec), then ``begin``, later ``finish`` and the seconds that
the worker may take. Before ``begin`` it connects to no broker. Standard output: a line of JSON statistics after each
flush. If standard input closes, the harness is gone: the worker writes its journals and ends.
"""

import os
import signal
import sys
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from harness.core.children import without_pandas
from harness.core.errors import KafkaTrialError
from workloads.loop import Commands, HarnessGoneError, send_report
from workloads.protocol import NamedSpec, Report


def work(named: NamedSpec, commands: Commands, stack: ExitStack) -> Report:
    """Run the client of this spec; return its last report."""
    kind = _object(named.spec)
    client, spec = _object(kind.client), kind.model_validate(named.values)
    commands.wait()
    last: Report = client(spec, commands, stack)
    return last


def _object(path: str) -> Any:
    """The object that ``module:name`` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def main() -> None:
    """Run the worker whose spec comes on standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    without_pandas()
    commands = Commands(sys.stdin.fileno())
    try:
        named = NamedSpec.model_validate_json(commands.wait())
        with ExitStack() as stack:
            report = work(named, commands, stack)
        report.finished = True
        send_report(report)
    except HarnessGoneError:
        # The harness is gone, so there is nobody to report to. The ExitStack has closed the journals.
        os._exit(1)
    except KafkaTrialError as exc:
        sys.exit(str(exc))
    # The journals are closed. librdkafka's own shutdown might wait for brokers that are cut off.
    os._exit(0)


if __name__ == "__main__":
    main()
