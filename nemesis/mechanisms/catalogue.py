"""Which mechanisms cause each effect on a node's traffic: one line for each effect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, ParamSpec

from harness.core.topology import Plane
from nemesis.links import Link
from nemesis.mechanisms import iptables, netem, nfqueue, tc
from nemesis.mechanisms.mechanism import Either, Mechanism

P = ParamSpec("P")


@dataclass(frozen=True)
class Answers(Generic[P]):
    """One mechanism, or two: the preferred one first. ``P``: the parameters of the effect.

    ``by_needs``: takes the parameters and returns the mechanism, by what that needs of the kernel (keys of
    ``nemesis.preflight.NEEDS``).
    """

    by_needs: Mapping[frozenset[str], Callable[P, Mechanism]]

    @property
    def needs(self) -> tuple[frozenset[str], ...]:
        """What each of them needs of the kernel."""
        return tuple(self.by_needs)

    def mechanism(self, *args: P.args, **kwargs: P.kwargs) -> Mechanism:
        """The mechanism with these parameters: of two, the first that the kernel has."""
        mechanisms = [answer(*args, **kwargs) for answer in self.by_needs.values()]
        return Either(*mechanisms) if len(mechanisms) > 1 else mechanisms[0]


_NETEM = frozenset({"htb", "netem"})
_TBF = frozenset({"htb", "tbf", "ifb"})
_NFQUEUE = frozenset({"nfqueue"})
_IPTABLES = frozenset({"iptables"})

#: Seconds, jitter, distribution, plane; then the correlation, which netem's delays do not have.
DELAY: Answers[float, float, str | None, Plane] = Answers({_NETEM: netem.Delay, _NFQUEUE: nfqueue.Delay})
CORRELATED_DELAY: Answers[float, float, str | None, Plane, float] = Answers({_NFQUEUE: nfqueue.Delay})

#: The share that overtakes, seconds of the others, plane.
REORDERING: Answers[float, float, Plane] = Answers({_NETEM: netem.Reorder, _NFQUEUE: nfqueue.Reorder})

#: Share, plane; and with a correlation between the two.
LOSS: Answers[float, Plane] = Answers(
    {_NETEM: lambda share, plane: netem.Lose(share, plane=plane), _IPTABLES: iptables.Lose}
)
CORRELATED_LOSS: Answers[float, float, Plane] = Answers({_NETEM: netem.Lose, _NFQUEUE: nfqueue.Lose})

#: Share, plane.
DUPLICATION: Answers[float, Plane] = Answers({_NETEM: netem.Duplicate})
CORRUPTION: Answers[float, Plane] = Answers({_NETEM: netem.Corrupt})

#: The links that a node cuts at its end.
CUT: Answers[frozenset[Link]] = Answers({_IPTABLES: iptables.Cut})

#: Bits a second, plane.
RATE_LIMIT: Answers[int, Plane] = Answers({_TBF: tc.Limit})
