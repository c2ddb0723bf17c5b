"""The mutants of the rules that accuse, excuse, or stand in the way of ``valid``: each is one rule that is a little
wrong.

`python -m tests.mutants` says which test finds each of them out.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

_ROOT = Path(__file__).parents[2]
#: The package of all modules that are changed.
OWN = str(_ROOT / "checkers")

#: A function: its file, and its first line.
Function = tuple[str, int]


@dataclass(frozen=True)
class Mutant:
    """A module of checkers/evidence, or of checkers, in which the text ``right``, which it has once, is replaced by
    ``wrong``. ``breaks``: what the mutant does wrong."""

    module: str
    right: str
    wrong: str
    breaks: str

    @property
    def path(self) -> Path:
        """The file of the module."""
        return next(Path(OWN).rglob(f"{self.module}.py"))

    @cached_property
    def text(self) -> str:
        """The text of the module as it is."""
        return self.path.read_text()

    @property
    def changed(self) -> str:
        """The text of the module with the mutant in it."""
        return self.text.replace(self.right, self.wrong)

    @cached_property
    def function(self) -> Function | None:
        """The function that changes, if it is one."""
        line = self.text[: self.text.index(self.right)].count("\n") + 1
        found = None
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Module | ast.ClassDef):
                for one in node.body:
                    first = min((each.lineno for each in getattr(one, "decorator_list", ())), default=one.lineno)
                    if isinstance(one, ast.FunctionDef) and first <= line <= (one.end_lineno or line):
                        found = str(self.path), first
        return found

    def apply(self) -> None:
        """Change the module in this process, also for whoever has imported its functions and classes."""
        module = import_module(".".join(self.path.relative_to(_ROOT).with_suffix("").parts))
        changed = ModuleType(module.__name__)
        exec(compile(self.changed, str(module.__file__), "exec"), vars(changed))
        _become(vars(module), vars(changed))
        for name, value in vars(changed).items():
            of_words = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
            if (isinstance(value, int) or of_words) and value != getattr(module, name):
                setattr(module, name, value)


def _become(own: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
    """Give functions, and those of classes, the code of the ``changed`` ones of the same names."""
    for name, value in own.items():
        is_class = isinstance(value, type) and value.__module__.startswith("checkers.")
        if is_class and changed[name] is not value:
            _become(vars(value), vars(changed[name]))
        elif name in changed and (function := _function(value)) is not None:
            other = _function(changed[name])
            assert other is not None
            function.__code__ = other.__code__


def _function(value: object) -> FunctionType | None:
    """The function of a method, a property or a function itself."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property):
        value = value.func
    elif isinstance(value, classmethod | staticmethod):
        value = value.__func__
    return value if isinstance(value, FunctionType) else None


def numbered(mutants: Iterable[Mutant]) -> Iterator[tuple[str, Mutant]]:
    """Each mutant with a name: that of its module, and its number among the mutants of that, from 1 on."""
    counts: Counter[str] = Counter()
    for mutant in mutants:
        counts[mutant.module] += 1
        yield f"{mutant.module}:{counts[mutant.module]}", mutant


#: For each module, the test files of tests/checkers that are tried first.
NEAR = {
    "acting": ("acting", "elections", "takeovers"),
    "again": ("again", "holders", "written"),
    "checker": ("questions",),
    "copies": ("copies", "judge"),
    "decision": ("holders", "neighbours", "hanging"),
    "elections": ("elections", "holders", "silence", "late_isrs"),
    "evidence": ("early", "holders", "elections"),
    "high_watermarks": ("early", "elections", "holders"),
    "holders": ("holders", "holders_twins", "at_risk"),
    "holding": ("holding", "holders"),
    "joins": ("joining", "holders_twins", "holders"),
    "late": ("reach", "causes"),
    "leadership": ("leadership", "elections", "holders"),
    "markers": ("markers",),
    "neighbours": ("neighbours", "holders", "causes"),
    "at_risk": ("at_risk",),
    "overtaken": ("overtaken", "reach"),
    "own_reports": ("elections", "folded", "holders"),
    "groups": ("takeovers",),
    "hanging": ("hanging",),
    "last_reports": ("holders_twins", "elections", "holders"),
    "pauses": ("holders_twins", "joining", "holders"),
    "preconditions": ("preconditions",),
    "reach": ("reach", "causes"),
    "record_ranges": ("record_ranges", "folded", "causes"),
    "spare_offsets": ("spare_offsets", "neighbours", "causes"),
    "standing": ("causes", "holders", "record_ranges", "final_logs", "findings", "holes"),
    "spread": ("late_isrs", "joining", "holders", "holders_twins"),
    "walk": ("holders", "holders_twins", "joining", "holding", "acting", "late_isrs"),
}

#: For each module: the text of a rule, the text that it becomes, and what that breaks.
_TEXTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "checker": (
        (
            "if compares_all or (self.in_order and scans.count(Scan.LOG_ORDER, self.name)):",
            "if compares_all:",
            "candidates are all that a finder gets, though the log order shows more",
        ),
        ("if number and not compares_all:", "if number and not self.in_order:", "candidates wait for the log order"),
    ),
    "hanging": (
        ("return None if log.has_a_stranger else", "return", "what nobody is known to have sent was in time"),
        ("[] if unreported or", "[] if", "a leader that nobody reported replaced nothing"),
        ("return len(self._terms) == 1", "return True", "no election replaces anything"),
        ('and send["invoked_ns"] <= by_ns', "", "a write stands below what was there before it"),
        ("for its, send in first.items()}", "for its, send in [*first.items()][:1]}", "one write decides for all"),
        ("if self.stored.file.partial or len(each) > 1:", "if len(each) > 1:", "a partial history lacks no write"),
        ("is None and self.stored.file.partial", "is None and False", "a partial history lacks no request for an end"),
        ("!= its[3]:", "!= False:", "the first of several acknowledged writes decides"),
        ('0 < ends.last_stable <= begins["log_start"]', "False", "a deleted transaction began where the log begins"),
        ("if not copy and producer.ended_above", "if producer.ended_above", "a copy is of its own producer"),
        ("False if not copy and producer", "False if producer", "an idempotent producer writes its copy late"),
        ("if False in each and not log.still_has(written):", "if False:", "what was replaced came late"),
        ('and self.above[_of(row)] < row["ending_ns"]', "", "what came after an end was ended"),
        ('if not self.may_have_ended(row, row["ending_ns"])', "", "a fault holds no end of a later one back"),
        ("if there_ns < asked_ns and not replaced:", "if there_ns < asked_ns:", "who was replaced ends nothing"),
        (
            'return not self.may_have_ended(its, its["ending_ns"])',
            "return True",
            "no transaction ends before its end is asked for",
        ),
        ('return row["outcome"] == "ok" and', "return", "an end that was not answered came"),
        ("sequence) < sequence", "sequence) <= sequence", "a record of no transaction stands below"),
        ("and self._last_below <= _order(its)", "", "a leader takes a write of an earlier epoch"),
        ("producer.ended_below(its, send", "bool(send", "what nobody saw in time came late"),
        (
            "if not self.led_by_one:\n            ids",
            "if False:\n            ids",
            "no election takes what stands below",
        ),
        (
            "(pc.scalar(self.led_by_one) | final)",
            "pc.scalar(self.led_by_one)",
            "a final log without reports is unknown",
        ),
        (
            '(pc.field("leader_epoch") == self._terms[-1].leader_epoch) | final',
            'pc.field("leader_epoch") == self._terms[-1].leader_epoch',
            "a final log after an election is unknown",
        ),
    ),
    "holders": (
        (
            "if evidence.coordinated and unseen and",
            "if unseen and",
            "without transactions a coordinator's log is in doubt",
        ),
        ("asks and not _shown_gone(evidence, case, found)", "asks", "what a cut took may have been aborted"),
        ("may_go = evidence.disturbed and", "may_go =", "the coordinator's log may be lost in a quiet run"),
        ("and not log.reaches(epoch, offset) for", "for", "a log that goes on was cut"),
        ("else max(event.at_ns, case.until_ns)", "else event.at_ns", "a doubt ends with an earlier election"),
        ("and over(row) >= since_ns", "", "a doubt that was over matters"),
        ("if elections is not None and kraft:", "if elections is not None:", "ZooKeeper's controller is a replica"),
        ("ruling=why, may_have=frozenset())", "ruling=why)", "a neighbour takes a doubt back"),
        ("(in_doubt(row) and asked_by_hand(row, case.of))", "in_doubt(row)", "a doubt elsewhere matters"),
        (
            "return replace(first, only_event=len({one.event for one in each}) == 1)",
            "return first",
            "the first of two events",
        ),
        (
            "anomaly.by_coordinator or evidence",
            "anomaly.by_coordinator and evidence",
            "a loss in read_committed is certain",
        ),
        ("case.in_time is None and not", "not", "a write in time may have come late"),
        ("any(map(_goes_on", "all(map(_goes_on", "a run without faults has one that was never healed"),
        ('row["healed_ns"] is None and bool(acted)', "bool(acted)", "a healed fault excuses a hanging transaction"),
        ("if len({one.standing for one in each}) == 1:", "if True:", "a fault in doubt is taken to have done nothing"),
        ("if case.hole and (", "if (", "without epochs every loss is a hole"),
        ("(_without_epochs(evidence, case) or ", "(", "an election takes records from the middle of a log"),
        ("after = bisect_right(", "after = bisect_left(", "an unreported leader before its epoch may have had it"),
        ("if not elections.unseen(sent, until, after):", "if True:", "no unreported leader is regarded"),
        (
            "nothing_may = evidence.acks_all(case) and",
            "nothing_may = evidence.acks_all(case) or",
            "unwatched is accused",
        ),
        ("log is not None and not log.cut(", "log is not None and log.cut(", "a cut log accuses, a whole one does not"),
        ("if len(standings) == 1 and standings !=", "if standings !=", "one of two terms decides"),
        ("if of_unseen else []", "if False else []", "a leader that nobody reported needs whom the others need"),
        ("replicas - must - need_not", "frozenset[int]()", "it is known of each broker whether it must have had it"),
        (
            "for walk in walks if walk.observed]",
            "for walk in walks]",
            "a record of an unreported ISR counts as at risk",
        ),
        (
            "may_have = frozenset.union(*(one.may_have",
            "may_have = frozenset.intersection(*(one.may_have",
            "takers are forgotten",
        ),
    ),
    "holding": (
        ("self.pop(change.broker, None)", "self.get(change.broker)", "who followed a leader without it still has it"),
        ("self[change.broker] = change.has", "self.setdefault(change.broker, change.has)", "who had it keeps it"),
    ),
    "spread": (
        (
            "heard_ns = max(report.from_ns, since + self.elections.lag_ns)",
            "heard_ns = max(report.from_ns, since)",
            "a report is never late",
        ),
        ("self._leader_had(n, to_ns) not in {Has.MUST, Has.MAY}", "False", "any leader gives records to who joins"),
        (
            "self._may_be_out_ns(n, broker, since), until - LAG_NS",
            "since, until - LAG_NS",
            "all may join again",
        ),
        ("cut_off = out_ns >= over_ns or", "cut_off = False and", "who was cut off joins unseen"),
        (
            "            if has in {None, Has.WIPED} and not cut_off:",
            "            if False:",
            "nobody joins unseen",
        ),
        (
            "broker not in report.isr and report.to_ns >= since",
            "False",
            "who was reported out of the ISR was not",
        ),
        ("{broker, term.leader}, since - self.elections.lag_ns", "set(), 0", "no fault puts a broker out of an ISR"),
        (
            "                self.rejoining.add(broker)",
            "                pass",
            "who joined unseen took what others lost",
        ),
    ),
    "walk": (
        ("return early(self.number) and all(", "return early(self.number) or all(", "a deposed leader acknowledged it"),
        ("asked = frozenset() if early else may", "asked = may", "who fetched nothing did not acknowledge it"),
        (
            "early = found.standing is not Standing.VIOLATION and self._acknowledged_early()",
            "early = False",
            "what was acknowledged too early is permitted",
        ),
        (
            "doubt = doubt or self._doubt_of_isr(n, ruling, happened)",
            "",
            "what only a clean election permits is permitted after any",
        ),
        (
            "return not self.elections.reported_late(n) and",
            "return",
            "an ISR that was reported late is that of the report before",
        ),
        (
            "may_not_have=frozenset(takers) - found.may_have)",
            "may_not_have=frozenset())",
            "no election takes what it may not",
        ),
        (
            "for n in may_have if not self._could_fetch_it(n)}",
            "for n in may_have}",
            "who could fetch it may lack it",
        ),
        ("> max(self.committed, sent_ns) - LAG_NS", "> max(self.committed, sent_ns)", "a cut acts at once"),
        (
            "strikes_ns({elected, leader}, sent_ns - LAG_NS)",
            "strikes_ns({elected, leader}, sent_ns)",
            "all fetch at once",
        ),
        ("return wiped and self.elections.without_epochs", "return wiped", "epochs do not tell who leads again"),
        ("known = known and not any(self._may_lead_empty_again(n)", "known = known and not any(False", "all is seen"),
        ('["injecting_ns"] >= begins_ns', '["injecting_ns"] >= BEFORE', "a disk lost before a term was lost in it"),
        (" or self._doubt_of_commit(ruling, happened)", "", "what was reported without epochs is sure or nothing"),
        ("and not self.wiped\n", "and Has.WIPED not in self.state.values()\n", "a wipe is forgotten"),
        (" if self._reported_out(broker, sent)}", "}", "who fetched nothing was reported to be out"),
        ("return not self._isrs_come_late or any(", "return any(", "who fetched nothing needs a report"),
        ("if leader in self.rejoining:", "if False:", "who joined unseen took what others lost"),
        (
            "frozenset() if in_sync is None else in_sync.every",
            "frozenset() if in_sync is None else in_sync.any",
            "who was in one ISR must have it",
        ),
        (
            "self._too_few(in_sync.any) else in_sync.any",
            "self._too_few(in_sync.any) else in_sync.every",
            "who was in one ISR need not have it",
        ),
        (
            "in asked if self._fetched_nothing(broker, sent, self.committed)}",
            "in set[int]()}",
            "who was cut off may have it",
        ),
        (
            "self.may |= may | self.held if few else able",
            "self.may |= able",
            "too few in sync are all that may have it",
        ),
        ("by_all and len(brokers) <", "by_all and len(brokers) <=", "min.insync.replicas in sync are too few"),
        ("self._fetched_after(found.event):", "False:", "taken before a consumer got it"),
        (
            "lambda n: not self._fetched_in_later(n))",
            "lambda _: True)",
            "what a consumer got later may go with a neighbour",
        ),
        ("self.case.fetched_ns > max(lost)", "self.case.fetched_ns > min(lost)", "got before the last disk was lost"),
        ("default=n) >= n", "default=n) > n", "a consumer of the new leader got it, who took it"),
        ("event.term > gone.term", "event.term >= gone.term", "gone in the term that took it is gone before"),
        ("late = event.at_ns > gone.by_ns if", "late = False if", "a disk lost later excuses what was gone"),
        (
            "lambda n: n <= gone.term)",
            "lambda n: n < gone.term)",
            "the term in which it was gone may not have taken it",
        ),
        ("is not None and not wiped and", "is not None and", "a wipe excuses nothing"),
        ("not wiped and not by_hand and", "not wiped and", "an election by hand excuses nothing"),
        ("and not by_hand and not uncleanly:", "and not by_hand:", "unclean elections excuse nothing"),
        (
            "by_hand = self.acting.unseen_by_hand or any(",
            "by_hand = any(",
            "an unreported election by hand excuses nothing",
        ),
        ("taken is None and not perhaps)", "not perhaps)", "a clean election gives back what an earlier one took"),
        (
            "elif known is Has.MUST and not self.acting.down(broker, since, until):",
            "elif known is Has.MUST:",
            "who was down followed",
        ),
        (
            "self.elections.epoch_after_ns(n), self.acting.ended_ns(n)])",
            "self.acting.ended_ns(n)])",
            "a leader leads on in a later epoch",
        ),
        ("self.committed is not None and clean and", "clean and", "a clean election proves what was never committed"),
        ("and clean and all_led_have_it and", "and all_led_have_it and", "an unclean election proves a holder"),
        (
            "all_led_have_it and self._kept_its_disk(leader):",
            "all_led_have_it:",
            "a clean election proves it of an empty disk",
        ),
        ("elects_uncleanly and not self.acting.may_be_by_hand(n)", "elects_uncleanly", "an election by hand is clean"),
        (
            "elif has is Has.WIPED and clean and self._rejoined_unseen(n):",
            "elif has is Has.WIPED and clean:",
            "whoever was wiped rejoined",
        ),
        (
            "if all_led_have_it and self._left_since_wipe(n) else",
            "if all_led_have_it else",
            "who never left the ISR has it again",
        ),
        (
            "self.acting.isr_faulted(n) and self._eligible_known(n)",
            "self.acting.isr_faulted(n)",
            "an unreported ELR is faulted, too",
        ),
        ("by_hand=self.acting.by_hand(n)", "by_hand=self.acting.may_be_by_hand(n)", "one of two elections was by hand"),
        (
            "last_known=self._last_known(n) is True",
            "last_known=self._last_known(n) is not False",
            "perhaps the last known leader is it",
        ),
        (
            "ruling.standing is Standing.PERMITTED and self._joined_before_its_wipe(n)",
            "False",
            "an empty leader, who was full at its election, took it",
        ),
        (
            "is Standing.PERMITTED and not placed and",
            "is Standing.PERMITTED and False and",
            "an election took what has no place",
        ),
        ("self._may_have_dropped(n) and not self._disks_lost()", "False", "who dropped its end took it before"),
        (
            "self.acting.isr_may_be_faulted(n) and permits(isr_faulted=True)",
            "False",
            "an election perhaps under a fault is accused",
        ),
        ("self.elections.isr_missed(n) or self.elections.reported_late(n) or", "", "an unreported ISR was as before"),
        (
            "or self.elections.reported_late(n) or self._either(n)",
            "or self.elections.reported_late(n)",
            "the first of two ISRs is the last",
        ),
        (
            "if not happened.uncleanly and silent and permits(",
            "if False and permits(",
            "an ISR of before a silence is the last",
        ),
        (
            "if happened.emptied and self._may_have_lost_its_disk_later(n):",
            "if False:",
            "a disk lost later was lost before",
        ),
        (
            "if happened.uncleanly and permits(isr_faulted=True):",
            "if False:",
            "an unclean election without a fault is accused",
        ),
        ("permits(uncleanly=False) and not self._isr_lasted(n)", "False", "each reported ISR is the last"),
        ("if self._may_be_committed_later(n):", "if False:", "a later leader cannot have committed it"),
        (
            "is not None and not self._may_elect_uncleanly() and not self.wiped",
            "is not None and not self.wiped",
            "an unseen unclean election is forbidden",
        ),
        (
            "and not (known and self.elections.seen_whole(",
            "and not (self.elections.seen_whole(",
            "the taker is known though nobody saw it",
        ),
        (
            "not perhaps and Has.MAY not in self.state.values():",
            "not perhaps:",
            "lost disks excuse though another may have it",
        ),
        (
            "Has.WIPED in self.state.values() and Has.MUST not in self.state.values()",
            "Has.WIPED in self.state.values()",
            "one lost disk of several excuses",
        ),
        (
            "lost.standing is Standing.PERMITTED and self._older_survived():",
            "False:",
            "all disks were wiped, and yet the log goes on",
        ),
        (
            "(log.epochs <= epoch).any()) or log.starts_later)",
            "(log.epochs < epoch).any()) or log.starts_later)",
            "its own epoch did not survive",
        ),
        ("len(before.isr) >= least", "len(before.isr) > least", "an ISR of min.insync.replicas has an ELR"),
        ("or reported_ns - before.from_ns < self.elections.lag_ns:", "or False:", "an ISR of a moment is the last"),
        (
            "known is not None and known <= last_ns and",
            "known is not None and",
            "what was committed after the join was before it",
        ),
        (
            "and self.evidence.configuration.commits_alone and not asks",
            "and not asks",
            "a leader alone commits against min.insync.replicas",
        ),
        (
            "return gone or self.acting.cannot_join(elected, leader, from_ns, until)",
            "return gone",
            "who was cut off joined",
        ),
    ),
    "joins": (
        ("known = without or last", "known = without", "who was in the ISR of before joins it"),
        (
            "if broker in report.isr and report.to_ns >= at_ns)",
            "if broker in report.isr)",
            "a report of before the restart tells of after",
        ),
        (
            "elections.last_reported_ns(number) - elections.lag_ns",
            "elections.last_reported_ns(number) + elections.lag_ns",
            "a restart just before the term is none",
        ),
        (
            "restarts[bisect_left(restarts, since) : bisect_right(restarts, until)]",
            "[]",
            "who restarted between two reports never left",
        ),
        ("joined, report, without)", "joined, report, None)", "who was reported to join only may have"),
        (
            "before[report.observer] = report",
            "before.setdefault(report.observer, report)",
            "who left and came back never left",
        ),
    ),
    "decision": (
        ("frozenset.intersection(*of)", "frozenset.union(*of)", "whoever either leader needed must have had it"),
        (
            "self.standing is Standing.UNDECIDED and term in self.may_have",
            "self.standing is Standing.UNDECIDED",
            "any election may have taken it",
        ),
        (
            "return undecided or self.standing is Standing.PERMITTED",
            "return undecided",
            "what is permitted anyway hinders",
        ),
        (
            "replace(case, acknowledged=True) if",
            "replace(case, acknowledged=False) if",
            "a marker is acknowledged by nobody",
        ),
        ("case.in_time is not False))", "case.in_time is True))", "an untimely end is in doubt"),
    ),
    "markers": (
        ('since <= row["read_ns"] and', "", "what came after the delivery took the marker"),
        ("and sent_ns <= until", "", "what came before the send took the marker"),
        ("if elections.names.get(broker) in acted_on(row)", "", "any disk had the marker"),
        ("range(1, len(elections.terms))", "range(len(elections.terms))", "the first term took something"),
        ("    if uncleanly:", "    if True:", "a clean election took it"),
    ),
    "neighbours": (
        ("decision.rulings.get(took, beside.ruling)", "beside.ruling", "what permits its neighbours permits it"),
        ("if one.may_go_with(took)]", "]", "leaders that the event spared may have had them"),
        ("and len({one.term for one in each}) <= 1:", ":", "whoever need not have had the neighbours need not these"),
        ("return lowest <= (NEVER if", "return lowest < (NEVER if", "a violation at the same place is none"),
        ("or at is None or part.hole:", "or at is None:", "a hole is a violation of an election"),
        (
            "is Standing.UNDECIDED and not apart[n] and sure:",
            "is Standing.UNDECIDED and sure:",
            "what is kept apart goes with a neighbour",
        ),
        ("if violations.took_below(part, term) or (", "if (", "what lies above a violation is permitted"),
        ("return lowest <= (-1", "return lowest < (-1", "what lies beside a violation is permitted"),
        (
            "lowest <= (-1 if part.last_offset is None else part.last_offset)",
            "lowest <= (-1 if part.first_offset is None else part.first_offset)",
            "what lies among violations is permitted",
        ),
        ("(not upwards and decision.may_be_forbidden(term))", "False", "what was not allowed goes with what is above"),
        ("(not upwards and decision.may", "(decision.may", "nor does it with what stands below"),
        ("event = decision.taken_by", "event = decision.event", "the first of two events took what stands beside"),
        ("sure = upwards or _near_a_cut(", "sure = True or _near_a_cut(", "markers stand for any number of records"),
        (" - part.first_offset <= log.unseen", " - part.first_offset < log.unseen", "one marker stands nowhere"),
        (
            "if upwards and (part.of, term) in spare else",
            "if (part.of, term) in spare else",
            "the chain above counts, too",
        ),
        (
            "spare[part.of, term] + below[part.of] - chain.count",
            "spare[part.of, term] - chain.count",
            "what is lost below takes no offsets",
        ),
        (
            "near(beside, part, BESIDE) and _fits(crowd):",
            "near(beside, part, BESIDE):",
            "two records of one offset are of one log",
        ),
        (
            "and log.reaches(possible.epoch, part.last_offset)",
            "",
            "a log that ends below it did not lose it otherwise",
        ),
        ("and not violations.lost_by(part, possible.term)", "", "a log that lost some lost no more"),
        ("not log.sparse\n", "True\n", "in a sparse log a record above shows one here"),
        ("if log.sparse or chain is None", "if chain is None", "a sparse log has its end"),
        ("return crowd.count <= crowd", "return crowd.count < crowd", "a full log has one record too many"),
        ("apart[n] = case.hole or above[n] or any(", "apart[n] = above[n] or any(", "an election made a hole"),
        (
            "above[n] or any(_last_sent(case) > _first_until(other.case) for other in own)",
            "above[n]",
            "what continues another log is not of it",
        ),
        (
            "((range(len(found) - 1, -1, -1), False), (range(len(found)), True))",
            "((range(len(found) - 1, -1, -1), False),)",
            "what lies above a permitted range is not its neighbour",
        ),
    ),
    "again": (
        ("(self.lowest <= offset) &", "(self.lowest < offset) &", "a write at its very place does not show it gone"),
        (
            "& (self.sent_ns > until_ns)",
            "& (self.sent_ns >= until_ns)",
            "a write sent with its acknowledgement came after it",
        ),
        (
            "before = np.searchsorted(until, sent) - 1",
            'before = np.searchsorted(until, sent, side="right") - 1',
            "one slice has an order",
        ),
        (
            "np.searchsorted(self._seen, sent) - 1",
            'np.searchsorted(self._seen, sent, side="right") - 1',
            "a term had begun as it was seen",
        ),
        ("& (unseen <= found[doubtful])\n", "\n", "no unreported leader lost it"),
        (
            "epochs[~(plain | _among(done, _keys(piece)))]",
            "epochs[:0]",
            "an aborted transaction has the epoch at its place",
        ),
        ("self._over[n] = max(self._over[n], min(to, ended[n]))", "pass", "a deposed leader never goes on"),
        (
            "<= by_ns[n] and last[own[at - 1]] <= last[n]:",
            "<= by_ns[n]:",
            "an earlier fall of a later term shows as much",
        ),
    ),
    "reach": (
        ("if full_ns <= until]", "]", "no request need have timed out"),
        ("max(since, full_ns), until", "since, until", "the first request timed out at once"),
        ("waits = acks_all and slows", "waits = slows", "a leader that answers alone waits for followers"),
        ("if len(report.isr) < min_isr:", "if True:", "no ISR is wide enough"),
        (
            "beside[known] = beside_given_up",
            "beside[:] = bool(len(others)) or beside_given_up",
            "all others are beside it",
        ),
        ('rows["record_id"].filter(beside)', 'rows["record_id"]', "all copies are written beside one"),
        ("felt.cover(since, until)", "felt.meet(since, since)", "a fault that was over excuses two owners"),
        ("felt.cover(since, until)", "felt.meet(since, until)", "a fault that came later excuses two owners"),
        ("or healing_ns - injected_ns < session_ns:", ":", "the shortest cut ends a session"),
        (
            'windows = [(row["healing_ns"], ',
            'windows = [(row["injecting_ns"], ',
            "members that are cut off are given more",
        ),
        ("if name in kept_from_clients(row)}", "}", "any fault cuts it off"),
        (' and not others.meet(injecting_ns, row["healed_ns"])', "", "a dead coordinator ends sessions"),
        ("{*between} <= {first, None}", "True", "a coordinator that was another meanwhile goes on"),
        ("first if first == last and", "first if", "whoever coordinates before a cut does so after it"),
        ("n >= 0 and at_ns - self._at[n] <= FRESH_NS", "n >= 0", "whoever coordinated a group coordinates it still"),
        ("if 2 * count > brokers", "if count", "what one broker names is the coordinator"),
        ("if at_ns - since <= FRESH_NS)", ")", "what a broker reported before it fell silent counts"),
        ("    if perhaps:", "    if False:", "what may have reached a coordinator did not"),
        ("bool(acted_on(row)) or stops(row)", "bool(acted_on(row))", "a broker that stopped otherwise did not stop"),
        ("(records[first[n] : last[n]] != ids[n]).any()", "True", "its own end excuses it"),
        (
            'own, here = given_up.filter(pc.equal(given_up["worker"], worker))',
            "own, here = given_up",
            "what another worker gave up excuses",
        ),
        (
            "met | (until - sent >= self.timeout_ns)",
            "met | (until - sent > self.timeout_ns)",
            "a request is not sent again just in time",
        ),
        (
            'if anomaly is DUPLICATED and history.run_file.configuration.acks == "0":',
            "if False:",
            "with acks=0 a retry makes copies",
        ),
        (
            'pc.greater(rows["copies"], retries + 1)',
            'pc.greater(rows["copies"], retries)',
            "as many copies as may be sent are too many",
        ),
        (
            "bool(len(more)) and not _of_all([more], each, Disturbances.refused)",
            "bool(len(more))",
            "an election lets nothing be sent again",
        ),
        ('return all(late["addressed"].to_pylist()) and', "return", "a copy waits for a broker that never led"),
        ("(begun <= until) & (sent <= over)", "(begun <= until)", "a fault of before excuses"),
        (
            "(max(begun, injecting_ns), min(over + late_ns, felt_ns))",
            "(injecting_ns, min(over + late_ns, felt_ns))",
            "a fault counts before its broker led",
        ),
        (
            "for to, at in reached if held and keeps",
            "for to, at in reached if keeps",
            "a kill holds requests back",
        ),
        (
            "if held and keeps(to, acks_all=False)]",
            "if held and keeps(to, acks_all=of_all)]",
            "what is slow between brokers holds requests back",
        ),
        ("of_all = acks_all and", "of_all = True and", "a leader that answers alone waits for others"),
        (
            "of_all = acks_all and min_isr > 1",
            "of_all = acks_all",
            "a leader that is enough fails what it has written",
        ),
        (
            "max(term.seen_ns + LAG_NS, before.ends_ns))",
            "term.seen_ns + LAG_NS)",
            "a deposed leader is over when the next is seen",
        ),
    ),
    "at_risk": (
        ("if other & from_these)", "if other)", "a cut from anybody reaches a replica"),
        ("if hits_heartbeats(fault) else frozenset()", "", "a cut of replication cuts from controllers"),
        ("acted & replicas, bool(acted & controllers)", "acted & replicas, False", "controllers decide nothing"),
        ("and 2 * together <= len(controllers)", "", "a majority of controllers decides nothing"),
        ('if evidence.configuration.metadata == "kraft" else', "if True else", "with ZooKeeper no broker decides"),
    ),
    "overtaken": (
        ("if overtook.acknowledged_ns < min(reported, elected)", "if False", "a later one may be acknowledged before"),
        ("< min(reported, elected)", "<= min(reported, elected)", "a later one may not be acknowledged at that moment"),
        ("< min(reported, elected)", "< reported", "another leader has the same connection"),
        (
            "for begun, over in each.elections if over >= sent",
            "for begun, over in each.elections",
            "an election before",
        ),
        ("if begun <= reported + each.unread_ns)", ")", "a fault after it was given up held it back"),
        (" + each.unread_ns)", ")", "with acks=0 a report says that it was read"),
        ("if elected <= reported or reported", "if reported", "nothing is sent again to another leader"),
        ("or reported - sent >= each.timeout_ns else", "else", "nothing is sent again when it timed out"),
        (
            "return overtook.sent_ns <= max(until, default=BEFORE)",
            "return True",
            "it may come late though nothing held it",
        ),
        ("there[-1:] = True", "there[-1:] |= False", "the last one need not stand before it"),
        ("[own + 1 : last + 1] < row", "[own + 1 : last + 1] >= row", "those behind it overtook it"),
        ('pc.equal(sends["outcome"], "ok")', 'pc.is_valid(sends["outcome"])', "a report is an acknowledgement"),
        ("history.run_file.origin is not Origin.KAFKA_TRIAL or", "", "others say what was in the way"),
    ),
    "acting": (
        (" if not only_hears_nothing(row, name)", "", "a leader that gets no answers asks nothing"),
        ("max(self._silence_ns - LAG_NS, 0)", "self._silence_ns", "reports of an election are never late"),
        ("self._elections.reported_nothing(name, begun, until) and", "", "a broker that reported was down"),
        (
            "self._apart(leader, follower, follower).cover(",
            "self._apart(follower, leader, follower).cover(",
            "a follower that nobody hears fetches nothing",
        ),
        (
            "asked_nothing = self._apart(follower, leader, follower, leader)",
            "asked_nothing = self._apart(leader, follower, follower, leader)",
            "who gets no answers asks nothing",
        ),
        ("if back >= reported)", ")", "a leader that came back had ended"),
        ("if self._elections.name(broker) in acted", "", "each wipe is of all replicas"),
        ("and over(row) + COMES_BACK_NS >= from_ns", "and over(row) >= from_ns", "a healed fault keeps no answers"),
        (
            "self._others(number) | self._may_have_joined(number, to_ns)",
            "self._others(number)",
            "who joined unseen need not have been faulted",
        ),
        (
            "self._unfit_times(broker).cover(from_ns, to_ns)",
            "self._unfit_times(broker).meet(from_ns, to_ns)",
            "a fault of a moment excuses an election of long after",
        ),
        (
            "eligible(number).union(*known.isrs_before(number)) -",
            "eligible(number) -",
            "the older of two ISRs is forgotten",
        ),
        (
            "if known.lag_ns <= FRESH_NS and not known.unheard(",
            "if not known.unheard(",
            "an ISR that is reported late is reported at once",
        ),
        ("if made == {number} and not missed]", "]", "another's request was this election's"),
        (
            'if row["injecting_ns"] <= at_ns <= over(row) + COMES_BACK_NS)',
            "if at_ns <= over(row) + COMES_BACK_NS)",
            "a later fault excuses an election",
        ),
        (
            "min(over_ns + COMES_BACK_NS, joined, in_sync",
            "min(over_ns + COMES_BACK_NS, in_sync",
            "who is in sync again is unfit",
        ),
        (
            "return any(made == {number} and not missed for",
            "return any(number in made for",
            "one of two terms was by hand",
        ),
        ('if row["effective"] and asked_by_hand', "if asked_by_hand", "an election by hand that failed happened"),
        (
            'int(row["injecting_ns"]) + (0 if _ends(row) else max(self._silence_ns - LAG_NS, 0))',
            'int(row["injecting_ns"])',
            "a silent broker loses its session at once",
        ),
    ),
    "late": (
        ("until[here] < begins_ns(", "until[here] <= begins_ns(", "a term of the same moment began after it"),
        ("np.where(epochs >= term.epoch,", "np.where(epochs == term.epoch,", "an unreported epoch began before all"),
        ("= until >= first", "= until > first", "an unreported leader had not begun yet"),
        ("min(led, default=BEFORE)", "max(led, default=BEFORE)", "a leader of long ago had not led yet"),
        (
            "pc.coalesce(stands, pa.array(latest, pa.int64()))",
            "pa.array(latest, pa.int64())",
            "not the copy that stands counts",
        ),
    ),
    "own_reports": (
        (
            "(span.leader, span.leader_epoch) != (leader, epoch)",
            "span.leader != leader",
            "an earlier term of its own is this one",
        ),
        ("or self._ended.cover(led_ns, led_ns + 1):", ":", "a dead leader goes on"),
        ("since_ns = max(since_ns, until)", "pass", "a halted leader goes on"),
        ("else unreached(row)", "else acted_on(row)", "any fault keeps a leader silent"),
        (
            "then = bisect_right(self._epochs, epoch)",
            "then = bisect_left(self._epochs, epoch)",
            "its own epoch is a later one",
        ),
    ),
    "spare_offsets": (
        (
            "until[here] - sent[here] >= self._timeout_ns]",
            "until[here] - sent[here] > self._timeout_ns]",
            "a write that took the timeout is not sent again",
        ),
        ("counts[term + 1 :].sum()", "counts[term + 2 :].sum()", "a write across the next election is nowhere else"),
        ("_TIMES = 4", "_TIMES = 1", "without idempotence a record is written once"),
        ("(found[of] + found[None] + count)", "(found[of] + count)", "a write of no known partition is nowhere"),
        ("if (of, term) not in without", "", "a term under a fault has few spare offsets"),
        (
            "np.where(overs[last] >= sent, last, 0)",
            "np.where(overs[last] > sent, last, 0)",
            "a write sent at the end of an election was not across",
        ),
    ),
    "elections": (
        (
            "(highs.still_ns[np.maximum(last, 0)] >= by_ns)",
            "(highs.still_ns[np.maximum(last, 0)] >= by_ns.max())",
            "one that came too early is folded with others",
        ),
        ("partly = split_by_end(faults),", "partly = list(faults),", "a fault that ended on a node silences it"),
        ("one in meanwhile and one.from_ns <= until]", "False]", "nobody else is in sync while a leader pauses"),
        (
            "from_ns, min(max(one.to_ns, from_ns), until))]",
            "from_ns, until)]",
            "a fault after a report takes it away",
        ),
        (
            "for _, to in since) if again else",
            "for _, to in ()) if again else",
            "a leader leads once, whoever led before",
        ),
        ("in heard(led, quiet):", "in led:", "a leader led on while it was silent"),
        (
            "meeting(led_ns + 1, span.from_ns - 1)",
            "meeting(led_ns + 1, NEVER)",
            "a leader that stopped later led twice",
        ),
        ("any(own or to <= span.from_ns for", "any(True for", "what was reported late is reported of a new term"),
        ("if begins or (again and (own or not any_own)):", "if begins or again:", "nobody tells late who leads"),
        (
            "in heard([s for s in spans if s.leader < 0], quiet))",
            "in spans if span.leader < 0)",
            "nobody led in a silence",
        ),
        ("in heard(self.spans, self.silences)", "in self.spans", "a silent broker reported a leader"),
        (
            "begun, to in self._hidden)",
            "begun, to in self.silences.get(None, ()))",
            "who never reported itself took nothing",
        ),
        (
            "*((last, hidden) for hidden in self._hidden)",
            "*((last, hidden) for hidden in self.silences.get(None, ()))",
            "who never reported itself never led",
        ),
        ("min(term.begins_ns, reported_until_ns[number])", "term.begins_ns", "each broker hears at once that it leads"),
        (
            "accumulate(own_until_ns, max)]",
            "accumulate(own_until_ns)]",
            "a term that others report began long before",
        ),
        (
            "self.names.get(self.terms[number].leader), to_ns + self.lag_ns",
            "self.names.get(self.terms[number].leader), to_ns",
            "an ISR is reported at once",
        ),
        ("if by != leader and not behind(by, from_ns, until)}", "if by != leader}", "who is cut off knows the ISR"),
        (
            "InSync(frozenset.intersection(*isrs),",
            "InSync(frozenset.union(*isrs),",
            "who was in one ISR was in every one",
        ),
        (", frozenset.union(*isrs))", ", frozenset.intersection(*isrs))", "who was in one ISR was in none"),
        (
            'first = int(np.searchsorted(highs.high, offset, side="right"))',
            "first = int(np.searchsorted(highs.high, offset))",
            "a high watermark at a record commits it",
        ),
        ("<= current.to_ns - any_last.from_ns <= LAG_NS else", "<= -1 else", "of two ISRs the fresher is the last"),
        (
            "or before.isr or not elrs or any(elrs):",
            "or before.isr or not elrs:",
            "with an ELR it was the last known leader",
        ),
        (
            "frozenset(before.isr).union(*self._elrs_before(number))",
            "frozenset(before.isr)",
            "an eligible replica is elected uncleanly",
        ),
        ("range(first + 1, last))", "range(first + 2, last))", "one missing epoch is no leader"),
        ("if to - since > FRESH_NS]", "if to - since >= LAG_NS]", "a second without a report is a silence"),
        (
            "if all(behind(span.observer, span.to_ns, span.to_ns) for span in last):",
            "if False:",
            "who is cut off sees all elections",
        ),
        ("(begins <= until_ns) & (sent_ns <= ends)", "(begins <= until_ns)", "a leader acknowledges after its end"),
        ("any(n >= after and since <= until_ns", "any(since <= until_ns", "an unseen leader of before had its record"),
        (
            "LAG_NS if configuration.tells_isr_at_once else _LATE_LAG_NS",
            "LAG_NS",
            "before 2.7 ISRs are reported at once",
        ),
        (
            "later or current.to_ns < any_last.from_ns else",
            "current.to_ns < any_last.from_ns else",
            "a later epoch does not count",
        ),
        (
            "BEFORE if number == 0 else since - LAG_NS",
            "BEFORE if number == 0 else since",
            "a term begins when it is reported",
        ),
        (
            "[term.begins_ns, next(again, NEVER)]",
            "[term.begins_ns, NEVER]",
            "without epochs a later term's high watermark counts",
        ),
    ),
    "leadership": (
        (
            "min(span.from_ns, begun.get(who, span.from_ns))",
            "max(span.from_ns, begun.get(who, span.from_ns))",
            "a term begins with its last report",
        ),
        (
            "known_epoch(span.leader_epoch) < epoch\n",
            "known_epoch(span.leader_epoch) <= epoch\n",
            "the new leader's ISR is that of before",
        ),
        ("again = span.from_ns > after_ns and", "again =", "who was in sync before it lost its data has it again"),
        ("if times and len(times) == len(followed) else", "if times else", "one partition shows all"),
    ),
    "high_watermarks": (
        ("own & timely", "own", "a high watermark of a later term commits"),
        ("own & timely", "timely", "a follower's high watermark commits"),
        ("pc.less_equal(", "pc.less(", "a leader's own high watermark does not count"),
        ("highest[1:] > highest[:-1]", "highest[1:] >= highest[:-1]", "a high watermark that stands still rises"),
        ("at[np.maximum(last, 1) - 1]", "at[last]", "an answer is as new as its report"),
        ("at[new], highest[new], at[last], still", "at[new], highest[new], at[new], still", "it was reported once"),
    ),
    "evidence": (
        ("early = tuple(self._acknowledged_early(case))", "early = ()", "one that came too early decides for the next"),
        (
            "elections.uncommitted_ns(number, first_offset, surely) >= first_ns",
            "False",
            "only the last came early",
        ),
        (
            "elections.uncommitted_ns(number, last_offset, surely) >= last_ns",
            "False",
            "only the first came early",
        ),
        (
            "return None if elections.unseen(since, max(at_ns, until_ns)) else at_ns",
            "return at_ns",
            "without epochs a leader's log was never cut unseen",
        ),
        ("unseen(since, max(at_ns, until_ns))", "unseen(since, until_ns)", "it was not cut after an acknowledgement"),
        ("max(min(sent_ns, at_ns), elections", "max(sent_ns, elections", "it was not cut before a record was sent"),
        ("terms[wrote].begins_ns)", "terms[number].begins_ns)", "it was not cut before a leader led again"),
    ),
    "standing": (
        ("faults = split_by_end(faults)", "faults = list(faults)", "a fault that ended on a node goes on there"),
        ("np.minimum.accumulate(by[::-1])[::-1]", "by", "what was read later was committed later"),
        (
            "min(offset, of_epoch.get(case.epoch, offset))",
            "max(offset, of_epoch.get(case.epoch, offset))",
            "an epoch begins with its last vanished record",
        ),
        ("if doubtful else []", "if False else []", "a fault in doubt did nothing"),
        ("len(numbers) == 1 and", "", "what vanished is of every term of its time"),
        ("not leaders & wiped and", "", "a leader's log outlives its disk"),
        ("and not own.unseen(sent_ns, case.delivered_ns)", "", "no unreported leader wrote what vanished"),
        ("len(known.faults) - 1).wipes", "0).wipes", "a wipe in doubt did nothing"),
        ("if term.epoch == case.epoch]", "]", "what vanished is of every epoch"),
    ),
    "copies": (
        ("copies.filter(pc.invert(", "copies.filter((", "the others need not have vanished"),
        ("stands is None or stands > 1 or", "stands is None or", "two copies stand in the final log"),
        ("stands > 1 or len(there) != missing", "stands > 1", "copies that did not vanish are excused"),
        ('join_type="left semi"', 'join_type="left outer"', "what vanished besides counts as a copy"),
        ("row[1:] == row[:-1]) & (", "row[1:] == row[:-1]) | (", "two copies of one term are of two"),
        ("stands >= 0) & (stands < epoch)", "stands >= 0) & (stands > epoch)", "an older copy stands"),
        ("True if known.all() and not older", "True if not older", "copies without an epoch are apart"),
        ("losses is None or vanished is False", "losses is None", "copies that stand are excused"),
        ("doubt = doubt or _HELD_BACK", "doubt = doubt", "a copy that came late is excused"),
        (
            "if len(late[-1]) and not held_back(",
            "if False and not held_back(",
            "a fault need not have held a late copy back",
        ),
        ("(history.faults)[-1], late", "(history.faults)[0], late", "a fault in doubt held nothing back"),
        ("if any(map(len, late)):", "if len(late[-1]):", "a copy that may have come late is excused"),
        (
            "elections=elections_of(history, one), _acting",
            "_acting",
            "elections are those of the doubt alone",
        ),
        ("(np.intersect1d, (late.get", "(np.union1d, (late.get", "what is wrong of one list is wrong of all"),
        (
            "or doubt is None or ruling.standing is not Standing.PERMITTED",
            "or doubt is None",
            "a violation is in doubt",
        ),
        ("if _has_any(one, wrong):", "if False:", "a loss excuses what came late"),
        ("if _has_any(one, perhaps):", "if False:", "a loss excuses what was held back"),
        ("[first, last + 1]", "[first, last]", "the last record of a range is excused"),
        (
            "one.decision is None or one.standing is not Standing.PERMITTED",
            "one.decision is None",
            "what is undecided is wrong",
        ),
        ("once[here] & (late & ~held | twice)", "once[here] & (late & ~held)", "one leader may write a record twice"),
        ("once[here] & (late & ~held | twice)", "late & ~held | twice", "what was handed over again came late"),
        ("once[here] & late & held]", "once[here] & held]", "a fault makes a copy late"),
        ("| (not moved)", "| moved", "what moved came late"),
        ("& addressed(own, epochs, until[here])", "", "a request waits for a leader of whom nobody knows"),
        (
            "twice &= ~beside[here] & ~_resent(",
            "twice &= ~_resent(",
            "one that was given up makes nobody write others twice",
        ),
        ("~beside[here] & ~_resent(each[of], known.configuration, *in_flight)", "~beside[here]", "nobody sends again"),
        (
            "if moved and known.configuration.idempotence else None",
            "if moved else None",
            "a producer that is not idempotent begins an epoch",
        ),
        (
            "if configuration.idempotence:\n        return",
            "if False:\n        return",
            "an idempotent producer's record is written again",
        ),
        ("may if configuration.retries else may &", "may if True else may &", "without retries a record is sent again"),
        ("(terms == 1) & ~unseen", "(terms >= 1) & ~unseen", "of several leaders the last acknowledged it"),
        ("[*map(ruled, ranges)]", "[*ranges]", "a loss excuses every copy"),
    ),
    "record_ranges": (
        ("max(BESIDE, -(-offsets", "min(BESIDE, -(-offsets", "buckets have no least width"),
        ("* max(partitions, 1) //", "//", "the number of buckets grows with that of partitions"),
        ("HANDED_ON_NS) if known_when", "0) if known_when", "a consumer hands on at once what it fetched"),
        ("return not configuration.grouped", "return True", "members of a group hand on at once what they fetched"),
        (
            "pc.coalesce(acknowledged_ns, read_ns)",
            "pc.coalesce(read_ns, acknowledged_ns)",
            "it was there by a delivery",
        ),
        ("np.maximum(begun, 1) if own", "begun if own", "what came before the first report is of no leader"),
        ('at[here], side="right")', 'at[here], side="left")', "a term begins after its first report"),
        ('sent[here], side="right")', 'at[here], side="right")', "records sent before and after an event are folded"),
        (
            'until[here], side="right")',
            'sent[here], side="right")',
            "records acknowledged before and after an event are folded",
        ),
        ('edges, offsets[here], side="right")', "edges, 0 * offsets[here])", "records of several epochs are folded"),
        (
            "*of_bucket, sent_at, until_at, read_at,",
            "*of_bucket, sent_at, until_at, until_at,",
            "deliveries are folded",
        ),
        ('"last_sent_ns": "max"', '"last_sent_ns": "min"', "the last was sent when the first was"),
        ('"first_until_ns": "min"', '"first_until_ns": "max"', "the first was acknowledged when the last was"),
        ('"until_ns": "max", "read_ns"', '"until_ns": "min", "read_ns"', "all were there when the first was"),
        (
            "0 < other.first_offset - one.last_offset <= width",
            "other.first_offset - one.last_offset <= width",
            "what is below continues it",
        ),
        (
            "span.from_ns <= other.first_ns <= span.to_ns",
            "span.from_ns <= other.first_ns",
            "a deposed leader leads for ever",
        ),
        ("== span.observer", "!= span.observer", "others tell for a leader that it leads"),
        (
            "(one.of, one.term, one.hole, one.decision) !=",
            "(one.of, one.term, one.hole, other.decision) !=",
            "ranges with different decisions are joined",
        ),
        (
            "return one.last_offset is other.first_offset",
            "return True",
            "a range without offsets is joined with one that has some",
        ),
        ("if part.acknowledged] or [one, other]", "] or [one, other]", "a joined run has the times of what was sent"),
    ),
    "groups": (
        (
            "if not recorded and history.run_file.configuration.commits_first:",
            "if False:",
            "a killed member's last commit need be in no journal",
        ),
        ("or history.stored.missing:", "or False:", "a missing journal has asked for nothing"),
        ("bool(history.run_file.writes) or asked", "asked", "a run that would record a request may lack it"),
        ("if arrived and not ends and reader in", "if arrived and reader in", "what came as an interval ended is its"),
        ('"offset": min(arrived)}', '"offset": max(arrived)}', "the last record of a poll is where a member began"),
        ("if arrived or ends:", "if arrived:", "what ends an assignment leaves it waiting"),
        (
            "if ends and not arrived and all(",
            "if ends and all(",
            "a record that came as the interval began is not the first",
        ),
        ("and all(_is_unknown_start(row)", "and any(_is_unknown_start(row)", "one of two events may be a start"),
        ('and row["offset"] is None', "", "a start that is known is learned again"),
        (
            'row["event"] == PositionEvent.ASSIGN))',
            'row["event"] != PositionEvent.ASSIGN))',
            "a request at the time of an assignment comes too late",
        ),
        (
            "_CommittedOffset(0 if requests_are_recorded else None)",
            "_CommittedOffset(None)",
            "nobody began at the log start",
        ),
        ("and offset > group.furthest:", "and offset >= group.furthest:", "who goes on there passes something over"),
        (
            "self.left_open |= {(member, asked) for asked in before.open}",
            "pass",
            "an answer to an earlier assignment's request counts for this one",
        ),
        (
            "if committed or (member, offset) not in self.requested:",
            "if committed:",
            "a refused commit without a request was not made",
        ),
        (
            "if tenure is None or offset not in tenure.open:",
            "if tenure is None:",
            "an answer without a request is sure",
        ),
        ("        tenure.open.discard(offset)\n", "", "a second answer is one to the same request"),
        ("sure = committed and", "sure =", "a refused commit takes an earlier one back"),
        ("min(self.furthest, tenure.furthest)", "tenure.furthest", "an answer moves the group forward"),
        (
            "            tenure.furthest = max(offset, tenure.furthest)\n",
            "            tenure.furthest = offset\n",
            "what others asked since then does not count",
        ),
    ),
    "pauses": (
        (
            "report.from_ns < self.gaps[gap].to_ns and report.isr != self.gaps[gap].then",
            "True",
            "what others report counts beside what the leader does",
        ),
        (
            "report.observer == self.leader or self._begins_in_gap(report)",
            "report.observer == self.leader",
            "what others report in a pause does not count",
        ),
        ("return gap >= 0 and", "return gap > 0 and", "a leader that reports nothing at first does not pause"),
        (
            "times = report.from_ns, report.from_ns + LAG_NS + 1",
            "times = report.from_ns, NEVER",
            "what a leader contradicted counts while it pauses",
        ),
        (
            "times = report.from_ns, report.from_ns + LAG_NS + 1",
            "times = report.from_ns, report.from_ns",
            "nothing outlasts a leader",
        ),
        (
            "if gap.to_ns - gap.since_ns > LAG_NS)",
            "if gap.to_ns - gap.since_ns > 3 * LAG_NS)",
            "a leader may pause for three seconds",
        ),
        (
            "if report.observer == self.leader], self.pauses)",
            "if report.observer == self.leader], {})",
            "a pause between equal reports is none",
        ),
    ),
    "last_reports": (
        ("if latest > at + self.lag_ns)", "if latest > at)", "an ISR is left behind at once"),
        ("if latest > at + self.lag_ns)", "if False)", "no ISR is left behind"),
        (
            "_by_leader(heard(self.spans, self.pauses))",
            "_by_leader(self.spans)",
            "what is repeated was said all the time",
        ),
        (
            "_by_leader(heard(self.current, self.pauses))",
            "_by_leader(heard(self.spans, self.pauses))",
            "a broker that is behind leaves ISRs behind",
        ),
        (
            "(report.observer, report.from_ns) in self._current_begins",
            "False",
            "an ISR that comes back is known",
        ),
        ("or self._first_reported[isr_of(report)] == report.from_ns", "", "what nobody reported before may be old"),
        (
            "(one.observer, isr_of(one)) == (report.observer, isr) and one.from_ns < report.from_ns",
            "False",
            "a broker's metadata may go backward",
        ),
        ("_may_admit_others(span, last, term.leader) and", "", "a part of an ISR is another"),
        ("return bool(more) or (leader in", "return (leader in", "one more in the ISR is nobody else"),
        (
            "return bool(more) or (leader in report.isr) != (leader in than.isr)",
            "return bool(more)",
            "the elected one is nobody else",
        ),
    ),
    "preconditions": (
        ("if term.from_ns <= begun][-1:]", "if term.from_ns <= begun]", "who led before the faults counts"),
        ("<= healed + COMES_BACK_NS", "<= NEVER", "a leader may change long after the heal"),
        ("since = (term for term in terms if begun <", "since = (term for term in terms if 0 <", "or before them"),
        ("[] if ended_early else", "", "a timeline that ended early lacks rows"),
        ("if not run.final_read:", "if False:", "an imported history has no faults"),
        ("summary.attempted > 0", "summary.attempted >= 0", "nothing need be sent"),
        ("summary.acknowledged >= requires", "summary.acknowledged > requires", "one more write is required"),
        ('or rows[name]["kind"] != kind', "", "a fault of another kind has the name of a step"),
        ("sum(ELECTION in step for step in steps)", "0", "an election that was asked for needs no row"),
        ("others <= kinds for", "others == kinds for", "a draw from fewer kinds needs no row"),
        ("left -= unnamed", "", "the rows of steps without a name are those of a draw"),
        ('if row["effective"] and not _begun(row)', "if not _begun(row)", "a fault that did not act needs a beginning"),
        ('if not row["effective"]]', 'if row["effective"] is None]', "a fault in vain took effect"),
        ('for row in faults if row["effective"]) or', "for row in faults) or", "a fault in vain is a test of loss"),
        (
            'or run.configuration.acks == "0":\n        return []\n    counts',
            ":\n        return []\n    counts",
            "with acks=0 writes must be at risk",
        ),
        ("bool(at_risk)", "True", "no write need be at risk"),
        ('[run.lasting.get(name) or row["nodes"]]', '[row["nodes"]]', "what was healed of a fault lasts"),
        ("not (still_on and nodes", "not (nodes", "a fault of no node may stay"),
        ("if not step.met]\n    return", "if step.met is None]\n    return", "a step need not be met"),
        (
            'row["last_ack_ns"] < since',
            'row["last_ack_ns"] <= since',
            "a partition that served when the fault was over did not serve",
        ),
        ("since = max(over", "since = min(over", "a partition need only serve after the first heal"),
        ('"injected_ns" if _stays(row, run) else "healed_ns"', '"healed_ns"', "what stays was never over"),
        ("over is None or (ended is not None and over > ended)", "over is None", "what the drain healed was healed"),
        ("over > ended)", "over >= ended)", "what was healed when the drain began was not"),
        ("in {DRAIN, FINAL_READ}", "in {FINAL_READ}", "what was healed after the last writes was healed"),
        ("bool(seen) and not gaps", "not gaps", "nobody need observe the cluster"),
        ("bool(seen) and not gaps", "bool(seen)", "brokers may be silent while a partition is written to"),
        ("met = bool(leading) and", "met =", "a leader that nobody saw stayed"),
        ("len(leading) > 1", "len(leading) > 0", "a leader that stayed has changed"),
        ("unread = {*known} -", "unread = set() -", "a partition may be left out of the final read"),
        ('if not row["complete"]]', 'if row["complete"] is None]', "a log may be read in part"),
        ("bool(listed) and not short", "not short", "no log need be read"),
        ('if row["log_start"] > 0]', 'if row["log_start"] > 9]', "retention may delete the beginning of a log"),
        ("if maybe_deleted else []", "if False else []", "retention may have deleted what was acknowledged"),
    ),
}

#: Every mutant, in the order of modules.
MUTANTS = tuple(Mutant(module, *texts) for module, each in _TEXTS.items() for texts in each)
