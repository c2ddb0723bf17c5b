"""The chart of a run: acknowledged writes per second, the faults, and the steps of the timeline. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.clock import SECOND_NS
from harness.core.faults import injection_of
from harness.core.verdict import Verdict
from harness.history.run_file import RunFile

#: Pixels: of the whole chart, around the plot, of the plot, and of one fault. A page of 1,024 pixels has room.
WIDTH = 960
_LEFT, _RIGHT, _TOP = 56, 12, 38
_PLOT = 200
_LANE = 18
#: Grid lines stand at a power of ten times one of these.
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Mark:
    """A tick of an axis, or the beginning of something, at ``at`` px."""

    at: float
    label: str
    met: bool = True


@dataclass(frozen=True)
class Band:
    """A fault: a bar from ``left`` px, ``width`` px wide, in its own lane at ``top`` px below the plot."""

    left: float
    width: float
    top: float
    label: str
    title: str


@dataclass(frozen=True)
class Chart:
    """Everything that a template draws, in px."""

    height: float
    top: float
    bottom: float
    left: float
    right: float
    line: str
    area: str
    seconds: list[Mark]
    rates: list[Mark]
    bands: list[Band]
    steps: list[Mark]
    step_numbers: list[Mark]


def chart(verdict: Verdict, run_file: RunFile) -> Chart | None:
    """The chart; None if nothing with a time was recorded."""
    bucket = int(verdict.availability.get("bucket_ns") or SECOND_NS)
    counts: list[int] = list(verdict.availability.get("acknowledged") or [])
    busy = [i for i, count in enumerate(counts) if count]
    begun = [*(step.at_ns for step in run_file.timeline), *(row["injecting_ns"] for row in verdict.faults)]
    begun += [busy[0] * bucket] if busy else []
    ended = [*(step.ended_ns for step in run_file.timeline), *(row["healed_ns"] or 0 for row in verdict.faults)]
    ended += [len(counts) * bucket, *begun]
    if not begun:
        return None
    first, last = min(begun) // SECOND_NS * SECOND_NS, max(ended)
    scale = _Scale(first, max(last - first, SECOND_NS))
    peak = max((count * SECOND_NS / bucket for count in counts), default=0)
    tick = nice(peak / 4)
    ceiling = max(tick * -(-peak // tick), tick)
    bottom = _TOP + _PLOT
    rates = [Mark(_height(value, ceiling), f"{value:,.0f}") for value in _multiples(tick, 0, ceiling)]
    line = _line(counts, bucket, scale, ceiling)
    steps = [Mark(scale.x(step.at_ns), step.step, step.met) for step in run_file.timeline]
    return Chart(
        height=bottom + 34 + _LANE * len(verdict.faults),
        top=_TOP,
        bottom=bottom,
        left=_LEFT,
        right=WIDTH - _RIGHT,
        line=line,
        area=f"{line} V{bottom} Z" if line else "",
        seconds=_seconds(scale),
        rates=rates,
        bands=_bands(verdict, scale, bottom),
        steps=steps,
        step_numbers=_numbered(steps),
    )


@dataclass(frozen=True)
class _Scale:
    first_ns: int
    span_ns: int

    def x(self, at_ns: float) -> float:
        """The px of a time, within the plot."""
        share = (at_ns - self.first_ns) / self.span_ns
        return _LEFT + min(max(share, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT)


def nice(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20 … that is at least ``least``."""
    power = 1.0
    while True:
        for step in _STEPS:
            if step * power >= least:
                return step * power
        power *= 10


def _multiples(step: float, first: float, last: float) -> list[float]:
    begin = int(-(-first // step))
    return [step * i for i in range(begin, int(last // step) + 1)]


def _height(value: float, ceiling: float) -> float:
    return _TOP + _PLOT * (1 - value / ceiling)


def _line(counts: Sequence[int], bucket: int, scale: _Scale, ceiling: float) -> str:
    """A stepped line: a step for each bucket, from the first that the plot shows."""
    shown = [(i, count) for i, count in enumerate(counts) if (i + 1) * bucket > scale.first_ns]
    if not shown:
        return ""
    stairs = [f"M{scale.x(shown[0][0] * bucket):.1f} {_TOP + _PLOT}"]
    for i, count in shown:
        stairs.append(f"V{_height(count * SECOND_NS / bucket, ceiling):.1f} H{scale.x((i + 1) * bucket):.1f}")
    return " ".join(stairs)


def _seconds(scale: _Scale) -> list[Mark]:
    begin, end = scale.first_ns / SECOND_NS, (scale.first_ns + scale.span_ns) / SECOND_NS
    return [Mark(scale.x(at * SECOND_NS), f"{at:.0f} s") for at in _multiples(nice((end - begin) / 12), begin, end)]


def _bands(verdict: Verdict, scale: _Scale, bottom: float) -> list[Band]:
    bands = []
    for lane, row in enumerate(verdict.faults):
        end_ns = row["healed_ns"] if row["healed_ns"] is not None else scale.first_ns + scale.span_ns
        begin, end = scale.x(row["injecting_ns"]), scale.x(end_ns)
        nodes = " ".join(row["nodes"])
        lasted = "never healed" if row["healed_ns"] is None else f"{(end_ns - row['injecting_ns']) / SECOND_NS:.1f} s"
        title = f"{injection_of(row)} ({row['kind']}): {nodes}, {lasted}" + (
            "" if row["effective"] else ", no evidence"
        )
        bands.append(Band(begin, max(end - begin, 2.0), bottom + 28 + _LANE * lane, injection_of(row), title))
    return bands


def _numbered(steps: Sequence[Mark], room: float = 12) -> list[Mark]:
    """The numbers of the steps; steps closer than ``room`` px share a label, such as 3–5."""
    groups: list[list[int]] = []
    for number, mark in enumerate(steps, 1):
        near = bool(groups) and mark.at - steps[groups[-1][0] - 1].at < room
        groups = [*groups[:-1], [*groups[-1], number]] if near else [*groups, [number]]
    return [Mark(steps[g[0] - 1].at, str(g[0]) if len(g) == 1 else f"{g[0]}–{g[-1]}") for g in groups]
