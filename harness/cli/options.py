"""Options of commands that are settings of providers: where nodes run, and where images come from."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.backends import Backends

if TYPE_CHECKING:
    from harness.cluster.spec import CommandOption


class ProviderCommand(click.Command):
    """A command with options of all providers: in its help before its parameter ``before``, by default after all of
    its own. Its function gets them as keywords.

    ``takes`` chooses options; by default all. The catalogue of providers is imported only if this command is called.
    """

    def __init__(
        self,
        *args: Any,
        before: str | None = None,
        takes: "Callable[[CommandOption], bool]" = lambda _: True,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self._before = before
        self._takes = takes

    def taken(self, backends: Backends) -> "list[CommandOption]":
        """The providers' options that it takes; those of the provider that needs none come last."""
        rows = reversed([*backends.providers().values()])
        return [option for row in rows for option in row.options if self._takes(option)]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All parameters of the command."""
        own = super().get_params(ctx)
        at = len(self.params) if self._before is None else [one.name for one in own].index(self._before)
        return [*own[:at], *map(_parameter, self.taken(ctx.find_object(Backends) or Backends())), *own[at:]]


def spelled(option: "CommandOption") -> str:
    """An option as it is typed."""
    return f"--{option.key.replace('_', '-')}"


def _parameter(option: "CommandOption") -> click.Option:
    kind: dict[str, Any] = {}
    if option.flag:
        kind = {"is_flag": True}
    elif option.file is not None:
        kind = {"type": click.Path(dir_okay=False, path_type=Path), "metavar": option.file}
    elif option.choices:
        kind = {"type": click.Choice(option.choices)}
    return click.Option([spelled(option)], help=option.help, **kind)
