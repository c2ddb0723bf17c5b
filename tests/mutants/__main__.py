"""Change one rule of checkers at a time, and say which test finds it out.

.venv/bin/python -m tests.mutants                    all mutants of tests/mutants/table.py: 6 minutes
.venv/bin/python -m tests.mutants walk joins         those of these modules
.venv/bin/python -m tests.mutants walk:3 walk:7      the third and the seventh of a module

Each mutant gets a process of its own, in which the tests of tests/checkers run that need neither Spark nor minutes:
first those that call the changed function. Where all pass, simulated histories are compared with the truth.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.table import MUTANTS, NEAR, OWN, Function, Mutant, numbered
from tests.simulated.judged import decided

#: The simulated histories that are compared with the truth where no test finds a mutant out.
_SEEDS = range(24)

#: Seconds after which a mutant is taken to run for ever.
_FOR_EVER_S = 600

#: Tests that take longer than this come last.
_LONG_S = 0.5

#: (Tests of the cost cannot tell a mutant.)
_CHOSEN = ("-m", "not spark and not long and not proof and not heavy", "-k", "not of_a_soak")
_OPTIONS = ("-q", "-s", "--no-header", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0")


class _Runs:
    """A plugin of pytest that runs the tests once for each mutant, up to the first that fails, instead of once.

    ``killed_by``: by the name of a mutant, what found it out; None if nothing did.
    """

    def __init__(self, chosen: Mapping[str, Mutant]) -> None:
        self._chosen = chosen
        self._failed: str | None = None
        self._calls: dict[str, set[Function]] = {}
        self._takes_s: dict[str, float] = {}
        self._traces = False
        self.killed_by: dict[str, str | None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._takes_s[report.nodeid] = self._takes_s.get(report.nodeid, 0) + report.duration
        if report.failed:
            self._failed = self._failed or report.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not self._traces:
            return (yield)
        called = self._calls[item.nodeid] = set()
        sys.settrace(lambda frame, *_: called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno)))
        try:
            return (yield)
        finally:
            sys.settrace(None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} files cannot be imported")
        failed, self._calls, self._takes_s = self._apart(lambda: self._unchanged(session.items))
        if failed is not None:
            raise session.Interrupted(f"without any mutant: {failed}")
        for name, mutant in self._chosen.items():
            by = self.killed_by[name] = self._apart(partial(self._found_by, session.items, mutant), _FOR_EVER_S)
            print(f"{name:20} {f'SURVIVED: {mutant.breaks}' if by is None else f'killed by {by}'}", flush=True)
        return True

    def _apart(self, ask: Callable[[], Any], within_s: float | None = None) -> Any:
        """What a function returns in a process of its own, whose output goes nowhere."""
        context = get_context("fork")
        hears, says = context.Pipe(duplex=False)
        sys.stdout.flush()
        process = context.Process(target=_say, args=(ask, says))
        process.start()
        says.close()
        try:
            return hears.recv() if hears.poll(within_s) else f"no end after {within_s} s"
        finally:
            process.kill()
            process.join()

    def _unchanged(self, tests: Sequence[pytest.Item]) -> tuple[str | None, dict[str, set[Function]], dict[str, float]]:
        self._traces = True
        failed = self._first_failed(tests)
        own = {test: {(path, line) for path, line in called if OWN in path} for test, called in self._calls.items()}
        return failed, own, self._takes_s

    def _found_by(self, tests: Sequence[pytest.Item], mutant: Mutant) -> str | None:
        mutant.apply()
        near = {name: n for n, name in enumerate(NEAR[mutant.module])}
        before = Counter[str]()

        def order(test: pytest.Item) -> tuple[bool, bool, int, int]:
            calls = mutant.function is None or mutant.function in self._calls[test.nodeid]
            name = test.path.stem.removeprefix("test_")
            # (Cases of one test find out much the same: the first of each come first.)
            before[of := test.nodeid.partition("[")[0]] += 1
            return not calls, self._takes_s[test.nodeid] > _LONG_S, before[of], near.get(name, len(near))

        return self._first_failed(sorted(tests, key=order)) or _simulated()

    def _first_failed(self, tests: Sequence[pytest.Item]) -> str | None:
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if self._failed is not None:
                break
        return self._failed


def _say(ask: Callable[[], object], says: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    says.send(ask())


def _simulated() -> str | None:
    """The first simulated history of which the judge says other than the truth, if any."""
    try:
        wrong = next((one for one in decided(_SEEDS, True, False, False) if one.disagrees), None)
    except Exception as exc:  # noqa: BLE001
        return f"tests.simulated --fast: {type(exc).__name__}"
    return None if wrong is None else f"tests.simulated --fast --seeds {wrong.seed}"


def main() -> int:
    """Run the command; 1 where a mutant survives."""
    parser = argparse.ArgumentParser(
        prog="tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="*", metavar="MODULE[:N]", help="only these")
    which = {*parser.parse_args().which}
    chosen = {name: mutant for name, mutant in numbered(MUTANTS) if not which or which & {name, mutant.module}}
    if not chosen:
        parser.error("no such mutant")
    runs = _Runs(chosen)
    with tempfile.TemporaryDirectory() as temporary:
        code = pytest.main([*_OPTIONS, *_CHOSEN, f"--basetemp={Path(temporary) / 'tests'}", "tests/checkers"], [runs])
    if len(runs.killed_by) < len(chosen):
        return int(code) or 2
    killed = sum(by is not None for by in runs.killed_by.values())
    print(f"{killed} of {len(chosen)} mutants killed")
    return int(killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
