"""The output about a run, on a terminal and in a log."""

import io

from rich.console import Console

from harness.run.display import LiveDisplay, PlainDisplay, for_terminal


class Clock:
    """A clock that is set by hand, in seconds."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def plain() -> tuple[PlainDisplay, Clock, io.StringIO]:
    stream, clock = io.StringIO(), Clock()
    return PlainDisplay(stream, clock), clock, stream


def lines_of(stream: io.StringIO) -> list[str]:
    return [line.split(" s  ", 1)[1] for line in stream.getvalue().splitlines()]


def test_a_log_tells_phases_and_each_step_once() -> None:
    display, clock, stream = plain()
    display.phase("timeline")
    for left in (3.0, 2.9, 2.8):
        display.step("wait 3s", left)
    display.step("heal all", None)
    clock.at = 12.34
    display.line("b1 exited")
    assert lines_of(stream) == ["== timeline", "wait 3s (3 s at most)", "heal all", "b1 exited"]
    assert stream.getvalue().splitlines()[-1] == "  12.3 s  b1 exited"


def test_a_log_tells_the_status_every_five_seconds() -> None:
    display, clock, stream = plain()
    for clock.at in (0.0, 0.25, 4.9, 5.0, 9.9, 10.0):
        display.status(int(clock.at * 1000), 0, 0, "b1", ("b1", "b2"), ())
    assert [line.split(" sent")[0] for line in lines_of(stream)] == ["0", "5,000", "10,000"]


def test_a_log_tells_at_once_when_roles_or_faults_change() -> None:
    display, _, stream = plain()
    display.status(1, 1, 0, "b1", ("b1", "b2"), ())
    display.status(2, 2, 0, "b1", ("b1",), ())
    display.status(3, 2, 1, None, (), ("cut",))
    display.status(4, 2, 2, None, (), ("cut",))
    assert lines_of(stream) == [
        "1 sent, 1 acknowledged, 0 failed; leader b1, ISR b1 b2; faults: none",
        "2 sent, 2 acknowledged, 0 failed; leader b1, ISR b1; faults: none",
        "3 sent, 2 acknowledged, 1 failed; leader none, ISR empty; faults: cut",
    ]


def test_a_terminal_is_drawn_with_everything_there_is_to_know() -> None:
    stream, clock = io.StringIO(), Clock()
    with LiveDisplay(Console(file=stream, force_terminal=True, width=100), clock) as display:
        display.phase("cluster up")
        clock.at = 12.0
        display.phase("timeline")
        display.step("until leader is changed", 30.0)
        display.status(1500, 1400, 20, "b2", ("b2", "b3"), ("cut",))
        display.line("b1 was cut")
        clock.at = 20.0
    seen = stream.getvalue()
    for said in (
        "12.0 s",
        "cluster up",
        "timeline",
        "until leader is changed",
        "1,500 sent",
        "leader b2, ISR b2 b3",
        "cut",
    ):
        assert said in seen
    assert "b1 was cut\n" in seen.replace("\r", "")
    assert seen.endswith("\x1b[2K") or "\x1b[?25h" in seen


def test_the_display_fits_the_stream() -> None:
    assert isinstance(for_terminal(io.StringIO()), PlainDisplay)
