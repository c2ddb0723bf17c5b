"""The result of a command line, no matter how it was run."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: A prefix for a command: it takes away the special rights of root.
WITHOUT_PRIVILEGES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


@dataclass(frozen=True)
class Done:
    """The result of a command: its exit code, both outputs, and the verdict if it printed one."""

    code: int
    out: str
    err: str

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


Invoke = Callable[..., Done]
