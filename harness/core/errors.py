"""Errors a user can act on: ``str()`` is one clear line that says what to change. Any other exception is a defect."""


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
