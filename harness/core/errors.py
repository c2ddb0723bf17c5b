"""Errors a user can act on: ``str()`` is one clear line that says what to change. Any other exception is a defect,
unless the cause is the machine, or a path that the user gave."""

import errno

#: System errors whose cause is the machine or a user's path, and not our code.
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
    """This machine, or the inventory, lacks what the scenario needs: a mechanism of a fault, or enough machines. Trying
    again does not help."""


class ClusterError(KafkaTrialError):
    """The cluster did not reach the awaited state: says what was seen last."""


class NothingInjected(ClusterError):  # noqa: N818 - reads as the sentence it is
    """A fault could not be injected, and no node was changed: says why."""


class HistoryError(KafkaTrialError):
    """A stored history cannot be judged: says which file and why."""


class OutputClosed(KafkaTrialError):  # noqa: N818 - reads as the sentence it is
    """Standard output cannot be written any more: says why. All verdicts are stored nevertheless."""


def line_of(error: BaseException) -> str | None:
    """The line that says what is wrong and, if possible, what to change; None if the error is a defect."""
    if isinstance(error, KafkaTrialError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _REFUSED:
        named = f"{error.filename}: " if error.filename is not None else ""
        return f"{named}{error.strerror}"
    if _FULL in str(error):
        return f"{_FULL}, in the store or in Spark's temporary folder (TMPDIR): make room"
    return None
