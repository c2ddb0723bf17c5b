"""A short notation for hand histories. Times are in seconds.

send a ok @0              record a was sent and acknowledged at offset 0 (also: fail, info; worker: w1; partition: p1)
send a ok @0 i1           … by its worker's second incarnation
send a ok @0 i1 again     … which handed it over again, after the first had
send a ok @0 k1           … under the key k1
send a ok @0 t1..2        … invoked at 1 s, completed at 2 s (t1.. is still in flight)
final a @0                the final read found it there (also: live, replica; partition: p1; topic: elsewhere)
final a @0 e3             … under leader epoch 3
final a @0 k2             … under the key k2, or without one (keyless); by default with the key of its first send
final ? @0                … a payload without an id;  final a @0 damaged: its checksum fails
final w0#7 @3             … the 8th record of worker 0, whether it was sent or not
live a @0 r1 t7           reader 1 (i1: its second incarnation) got it at 7 s
place r1 assign @0 t3     reader 1 was assigned p0 from offset 0 on (also: revoke, lost, seek, end-of-partition, commit)
place r1 commit @2 failed … and its commit was refused
killed r1                 a step of the timeline killed this process of reader 1 (i1: its second incarnation)
end 0..2                  the log of p0 began at 0 and ended at 2, and was read completely (also: read 1; partition: p1)
fault cut b1,b2 3..9      injected at 3 s, healed at 9 s (3..: never healed); also: kind=wipe, missed, without=b2
fault p b1,b2 3..9 kind=pause ended=b2:5        on b2 it had ended at 5 s
                          … unknown=b2: not known whether it acted there; unknown: not known whether it was injected
fault cut b1,b2 3..9 from=b1 to=b2 plane=all    … a cut between two sides, of all traffic
                          … one-way: only of what b1 sends
fault cut b1 3..9 kind=isolate clients=cut    … a cut from all others, clients among them (kept: not among them)
fault elect-1 - 8..8 p0 unclean  an unclean election requested by hand; `missed`: it did not happen
txn 1 commit ok 0..5..6   worker 0's transaction 1: intent, outcome; began at 0 s, end requested at 5 s, ended at 6 s
send a ok @0 x1           record a was sent in transaction 1 of its worker
live a @0 r3 t7           reader 3 got it at 7 s
live a @0 w1 x2 t7        worker 1 got it, in its own transaction 2
stable @0 high=1          the last stable offset of p0 was 0, its high watermark 1
saw b1 @3 leader=1 epoch=0 isr=1,2,3
saw b1 @3..9 leader=1 epoch=0 isr=1,2,3    … and each second until 9 s
saw b1 @3 leader=1 epoch=0 isr=1 high=7 elr=2   with its high watermark, and the eligible leader replicas
saw b1 @3 leader=1 epoch=0 isr=1 replicas=1     with another replica set than 1,2,3
saw b1 @3 leader=1 epoch=0 isr=1 controller=2   with ZooKeeper's controller (also: coordinator=2)
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.checker import Checker
from harness.core.guarantees import Configuration
from harness.history.paths import parts, write_table
from harness.history.run_file import NodeAddress, Process, RunFile, State
from harness.history.schema import TABLES, record_id

SECOND = 1_000_000_000
WORKERS_OF_A_HISTORY = 16
READERS_OF_A_HISTORY = 8
NOBODY = 15


@dataclass
class HandHistory:
    """The rows of one hand history. ``topic``, ``first_worker`` and ``first_reader`` set it apart in a run."""

    topic: str = "trial"
    first_worker: int = 0
    first_reader: int = 100
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {table: [] for table in TABLES})
    ids: dict[str, int] = field(default_factory=dict)
    killed: list[Process] = field(default_factory=list)

    def add(self, lines: Iterable[str]) -> "HandHistory":
        """Add the events of ``lines``."""
        for line in lines:
            verb, *words = line.split()
            known = {"place": self._place_of_reader}.get(verb) or getattr(self, f"_{verb}", self._read(verb))
            known(words)
        return self

    def name_of(self, record: int | None) -> str:
        """The name of a record in the lines."""
        return next((name for name, known in self.ids.items() if known == record), "?")

    def _send(self, words: list[str]) -> None:
        name, outcome, *more = words
        worker = self.first_worker + int(_tagged("w", more) or 0)
        sequence = sum(row["worker"] == worker for row in self.rows["sends"])
        if "again" not in more:
            self.ids[name] = record_id(worker, sequence)
        invoked, completed = _span(_tagged("t", more) or f"{len(self.rows['sends'])}..{len(self.rows['sends']) + 1}")
        self.rows["sends"].append(
            {
                "worker": worker,
                "incarnation": int(_tagged("i", more) or 0),
                "sequence": sequence,
                **self._place(more),
                "record_id": self.ids[name],
                "key": _key(more),
                "invoked_ns": invoked,
                "completed_ns": completed,
                "outcome": outcome,
                "offset": _at(more),
                "transaction": None if (tagged := _tagged("x", more)) is None else int(tagged),
            }
        )

    def _txn(self, words: list[str]) -> None:
        number, intent, outcome, times, *more = words
        began, ending, ended = (int(float(at) * SECOND) if at else None for at in f"{times}....".split("..")[:3])
        self.rows["transactions"].append(
            {
                "worker": self.first_worker + int(_tagged("w", more) or 0),
                "incarnation": int(_tagged("i", more) or 0),
                "transaction": int(number),
                "intent": intent,
                "began_ns": began,
                "ending_ns": ending,
                "ended_ns": ended,
                "outcome": outcome,
            }
        )

    def _stable(self, words: list[str]) -> None:
        high = next(int(word[5:]) for word in words if word.startswith("high="))
        at_ns = 60 * SECOND + len(self.rows["positions"])
        for event, offset in (("last-stable", _at(words)), ("high-watermark", high)):
            row = {"reader": 1000, "incarnation": 0, "at_ns": at_ns, "event": event, "offset": offset}
            self.rows["positions"].append({**row, **self._place(words)})

    def _read(self, phase: str) -> Any:
        def read(words: list[str]) -> None:
            name, *more = words
            times = _tagged("t", more)
            record = None if name == "?" else self._id(name)
            self.rows["reads"].append(
                {
                    **self._reader(more),
                    "phase": phase,
                    **self._place(more),
                    "offset": _at(more),
                    "leader_epoch": None if (epoch := _tagged("e", more)) is None else int(epoch),
                    "record_id": record,
                    "key": _key(more) or (None if "keyless" in more else self._sent_under(record)),
                    "intact": "damaged" not in more,
                    "transaction": None if (tagged := _tagged("x", more)) is None else int(tagged),
                    "read_ns": _span(times)[0] if times else 50 * SECOND + len(self.rows["reads"]),
                }
            )

        return read

    def _place_of_reader(self, words: list[str]) -> None:
        event = next(word for word in words if re.fullmatch(r"[a-z-]+", word))
        at_ns, _ = _span(_tagged("t", words) or "0")
        row = {**self._reader(words), "at_ns": at_ns, "event": event, **self._place(words), "offset": _at(words)}
        self.rows["positions"].append(row | {"error": "ILLEGAL_GENERATION" if "failed" in words else None})

    def _killed(self, words: list[str]) -> None:
        reader = self._reader(words)
        self.killed.append(Process(worker=reader["reader"], incarnation=reader["incarnation"]))

    def _reader(self, words: list[str]) -> dict[str, int]:
        worker = _tagged("w", words)
        first, number = (self.first_reader, _tagged("r", words)) if worker is None else (self.first_worker, worker)
        return {
            "reader": first + int(number or 0),
            "incarnation": int(_tagged("i", words) or 0),
        }

    def _id(self, name: str) -> int:
        numbered = re.fullmatch(r"w(\d+)#(\d+)", name)
        if numbered:
            self.ids[name] = record_id(self.first_worker + int(numbered[1]), int(numbered[2]))
        return self.ids.setdefault(name, record_id(self.first_worker + NOBODY, len(self.ids)))

    def _sent_under(self, record: int | None) -> str | None:
        return next((row["key"] for row in self.rows["sends"] if row["record_id"] == record), None)

    def _end(self, words: list[str]) -> None:
        start, end = (int(part) for part in words[0].split(".."))
        read = int(words[words.index("read") + 1]) if "read" in words else end
        row = {"log_start": start, "log_end": end, "read_to": read, "complete": read >= end}
        self.rows["log_ends"].append({**self._place(words), **row})

    def _fault(self, words: list[str]) -> None:
        name, nodes, when, *more = words
        injected, healed = _span(when)
        without = [node for word in more if word.startswith("without=") for node in word[8:].split(",")]
        unknown = [node for word in more if word.startswith("unknown=") for node in word[8:].split(",")]
        without += unknown
        early = (word[6:].split(":") for word in more if word.startswith("ended="))
        ended = {name: int(float(at) * SECOND) for name, at in early}
        self.rows["faults"].append(
            {
                "fault": name,
                "kind": next((word[5:] for word in more if word.startswith("kind=")), "partition"),
                "nodes": [] if nodes == "-" else nodes.split(","),
                "injecting_ns": injected,
                "injected_ns": None if "unknown" in more else injected,
                "healing_ns": healed,
                "healed_ns": healed,
                "effective": not {"missed", "unknown"} & {*more} and not without,
                **({"nodes_without_effect": without} if without else {}),
                **({"nodes_not_known": unknown} if unknown else {}),
                **{f"cut_{word.split('=')[0]}": word.split("=")[1].split(",") for word in more if _is_side(word)},
                "both_ways": "one-way" not in more if any(map(_is_side, more)) else None,
                "cuts_clients": next((word == "clients=cut" for word in more if word.startswith("clients=")), None),
                "plane": next((word[6:] for word in more if word.startswith("plane=")), None),
                "evidence": json.dumps(
                    {
                        **({"election": "unclean", **self._place(more)} if "unclean" in more else {}),
                        **({"ended": ended} if ended else {}),
                    }
                ),
            }
        )

    def _saw(self, words: list[str]) -> None:
        given = dict(word.split("=") for word in words if "=" in word)
        epoch = int(given["epoch"]) if "epoch" in given else None
        first, last = _span(next(word[1:] for word in words if word.startswith("@")))
        for at_ns in range(first, (first if last is None else last) + 1, SECOND):
            self.rows["observations"].append(
                {
                    "observer": words[0],
                    "at_ns": at_ns,
                    **self._place(words),
                    "leader": int(given["leader"]),
                    "leader_epoch": epoch,
                    "replicas": _brokers(given.get("replicas", "1,2,3")),
                    "isr": _brokers(given["isr"]),
                    "high": int(given["high"]) if "high" in given else None,
                    "high_epoch": epoch if "high" in given else None,
                    "elr": _brokers(given["elr"]) if "elr" in given else None,
                    "controller": int(given["controller"]) if "controller" in given else None,
                    "coordinator": int(given["coordinator"]) if "coordinator" in given else None,
                }
            )

    def _place(self, words: list[str]) -> dict[str, Any]:
        topic = self.topic + "-elsewhere" if "elsewhere" in words else self.topic
        return {"topic": topic, "partition": int(_tagged("p", words) or 0)}


def _is_side(word: str) -> bool:
    return word.startswith(("from=", "to="))


#: The clusters of hand histories: their brokers may be replaced as leaders when they were silent for SILENCE_NS.
SESSIONS = {"broker.session.timeout.ms": 4000, "zookeeper.session.timeout.ms": 4500}
SILENCE_NS = 3 * SECOND


def by_hand(*lines: str) -> HandHistory:
    """One hand history."""
    return HandHistory().add(lines)


def apart(histories: Iterable[Iterable[str]]) -> list[HandHistory]:
    """Hand histories that can be judged in one run: each has its own topic, workers and readers."""
    return [
        HandHistory(f"case-{n}", n * WORKERS_OF_A_HISTORY, 100 + n * READERS_OF_A_HISTORY).add(lines)
        for n, lines in enumerate(histories)
    ]


def write(run: Path, histories: Iterable[HandHistory], **settings: Any) -> RunFile:
    """Store hand histories as one sealed run. ``settings``: keys of run.json, or of its configuration. Each consumer
    among its ``clients`` gets its own, empty journals."""
    listed = list(histories)
    for table, schema in TABLES.items():
        write_table(run, table, pa.Table.from_pylist([row for one in listed for row in one.rows[table]], schema))
    of_run = {key: value for key, value in settings.items() if key in RunFile.model_fields}
    rest = {key: value for key, value in settings.items() if key not in of_run}
    file = RunFile(
        **{
            "run": "by-hand/1",
            "scenario_name": "by-hand",
            "scenario": {"cluster": {"config": SESSIONS}},
            "configuration": Configuration(**{"version": "4.3.1", **rest}),
            "state": State.RECORDED,
            "killed": [process for one in listed for process in one.killed],
            "nodes": [NodeAddress(name=f"b{n}", role="broker", id=n, address=f"10.0.0.{n}") for n in (1, 2, 3)],
            **of_run,
        }
    )
    file.write(run)
    for reader in file.workers("positions"):
        for table in ("reads", "positions"):
            write_table(run, table, TABLES[table].empty_table(), str(reader))
    return file


def without_keys(run: Path) -> None:
    """Drop the keys from the reads of a stored run, as in runs of old versions."""
    for path in parts(run, "reads"):
        pq.write_table(pq.read_table(path).drop_columns("key"), path)


def turned_round(checker: Checker, module: ModuleType, right: str, wrong: str) -> Checker:
    """A mutant of ``checker``: the text ``right``, which its module has once, is replaced by ``wrong``."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(right) == 1
    turned = ModuleType("turned_round")
    exec(compile(source.replace(right, wrong), "turned_round", "exec"), vars(turned))
    return replace(checker, find=getattr(turned, checker.anomaly.name))


def _tagged(tag: str, words: Iterable[str]) -> str | None:
    return next((word[1:] for word in words if re.fullmatch(rf"{tag}\d.*", word)), None)


def _key(words: Iterable[str]) -> str | None:
    number = _tagged("k", words)
    return None if number is None else f"k{number}"


def _brokers(text: str) -> list[int]:
    return [int(broker) for broker in text.split(",") if broker]


def _at(words: Iterable[str]) -> int | None:
    return next((int(word[1:]) for word in words if word.startswith("@")), None)


def _span(text: str) -> tuple[int, int | None]:
    begin, _, end = text.partition("..")
    return int(float(begin) * SECOND), int(float(end) * SECOND) if end else None
