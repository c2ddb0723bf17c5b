"""Errors a user can act on: ``str()`` is one clear line that says what to change. Any other exception is a defect,
unless the system refused something that lies in the machine, or in a path that was named."""

import errno

#: What the system refuses where nothing of ours is wrong.
_REFUSED = frozenset(
    {
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EMFILE,
        errno.ENFILE,
        errno.EIO,
    }
)

#: How Java words ENOSPC, somewhere in a trace of Spark's.
_FULL = "No space left on device"


class KafkaTrialError(Exception):
    """Anything a user can act on."""


class ScenarioError(KafkaTrialError):
    """The scenario, or what was typed, is wrong: says file:line and what to change."""


class EnvironmentLacks(KafkaTrialError):  # noqa: N818 - reads as the sentence it is
    """This machine cannot run it: says what is missing and how to get it."""


class NoMeans(EnvironmentLacks):
    """A scenario asks for what this machine, or an inventory, has not, however often it is tried: the means of a fault,
    or machines enough."""


class ClusterError(KafkaTrialError):
    """The cluster did not do what was awaited: says what was seen last."""


class NothingInjected(ClusterError):  # noqa: N818 - reads as the sentence it is
    """A fault could not be injected, and nothing was done for it: says why."""


class HistoryError(KafkaTrialError):
    """A stored history cannot be judged: says which file and why."""


class OutputClosed(KafkaTrialError):  # noqa: N818 - reads as the sentence it is
    """Standard output takes nothing more: says why. What was judged is stored all the same."""


def line_of(error: BaseException) -> str | None:
    """The line that says what is wrong and, where it can, what to change; None of a defect."""
    if isinstance(error, KafkaTrialError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _REFUSED:
        named = f"{error.filename}: " if error.filename is not None else ""
        return f"{named}{error.strerror}"
    if _FULL in str(error):
        return f"{_FULL}, in the store or where Spark keeps what it works on (TMPDIR): make room"
    return None
