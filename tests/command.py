"""What a command line came to, however it was run."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Before a command: it may then do what any user may, and root no more.
WITHOUT_PRIVILEGES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code, both outputs, and the verdict where it printed one."""

    code: int
    out: str
    err: str

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


Invoke = Callable[..., Done]
