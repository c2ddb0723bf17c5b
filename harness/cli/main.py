"""``kafka-trial``: the commands. Only here do errors become a line and an exit code."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TextIO, cast

import click

from harness.cli import (
    cleanup,
    codes,
    doctor,
    explaining,
    importing,
    judging,
    running,
    scenarios,
    schema,
    stores,
    suite,
)
from harness.cli.backends import Backends
from harness.cli.environment import look_at_directory
from harness.cli.errors import print_error, report
from harness.cli.streams import ProgressStream, ResultStream, closed
from harness.core.children import without_pandas


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 valid or as expected, 1 invalid or not as expected, 2 unknown, 3 this machine cannot run it,"
    " 141 standard output was closed, 254 bad arguments, scenario or history, 255 crashed.",
)
@click.version_option(package_name="kafka-trial", prog_name="kafka-trial")
def cli() -> None:
    """Break real Kafka clusters, and judge from the recorded history what happened to every record."""


COMMANDS = (
    running.run,
    suite.suite,
    judging.check,
    stores.runs,
    stores.compare,
    stores.prune,
    explaining.explain,
    importing.imports,
    scenarios.scenarios,
    schema.schema,
    cleanup.cleanup,
    doctor.doctor,
)
for command in COMMANDS:
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None, backends: Backends | None = None) -> None:
    """Run the program. SIGTERM acts like Ctrl-C: faults are healed and the cluster is removed."""
    sys.stdout = cast(TextIO, ResultStream(closed(1, os.O_RDONLY) if sys.stdout is None else sys.stdout))
    sys.stderr = cast(TextIO, ProgressStream(closed(2, os.O_WRONLY) if sys.stderr is None else sys.stderr))
    for interruption in _interruptions():
        signal.signal(interruption, _interrupt)
    without_pandas()
    sys.exit(invoke(sys.argv[1:] if arguments is None else arguments, backends))


def _interruptions() -> Iterator[signal.Signals]:
    """The signals that interrupt: Ctrl-C, SIGTERM of a supervisor, and a terminal that hangs up (not under `nohup`).

    SIGINT counts even if it is ignored at the start: a shell without job control ignores it for background commands,
    which nobody wants.
    """
    yield from (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


def _interrupt(number: int, frame: FrameType | None) -> None:
    """The first signal interrupts the command. Later ones must not prevent the removal of the cluster."""
    for interruption in _interruptions():
        signal.signal(interruption, _patience)
    signal.default_int_handler(number, frame)


def _patience(_number: int, _frame: FrameType | None) -> None:
    print_error("already stopping: faults are healed and the cluster is removed first")


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Raises click.UsageError for an empty argument. It would mean the current directory, which nobody wants: `prune
    "$STORE"` with an unset variable."""
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if not argument or (option.startswith("--") and equals and not value):
            what = f"{option} has no value" if argument else "an argument is empty"
            raise click.UsageError(f"{what}: perhaps a variable is not set")


def invoke(arguments: Sequence[str], backends: Backends | None = None) -> int:
    """Run one command line and return its exit code; errors go to stderr."""
    try:
        look_at_directory()
        _refuse_empty(arguments)
        return int(
            cli.main(list(arguments), prog_name="kafka-trial", standalone_mode=False, obj=backends or Backends()) or 0
        )
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        return codes.BAD_INPUT
    except click.ClickException as exc:
        hint = f"; see {exc.ctx.command_path} --help" if isinstance(exc, click.UsageError) and exc.ctx else ""
        print_error(exc.format_message().rstrip(".") + hint)
        return codes.BAD_INPUT
    except click.Abort as exc:
        print_error("interrupted", exc.__cause__ or exc)
        return codes.CRASHED
    except Exception as exc:  # noqa: BLE001 - the last resort: a defect is shown whole, and has an exit code of its own
        return report(exc)
