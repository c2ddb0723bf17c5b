"""Verdicts and run files made by hand: what a judge could have said of a run in the manner of 2013."""

from typing import Any

from harness.core.guarantees import Configuration
from harness.core.verdict import FoundAnomaly, Judgement, Precondition, Standing, Summary, Verdict
from harness.history.run_file import PhaseReport, RunFile, StepReport

SECOND = 1_000_000_000
RUN = "jepsen-2013/unclean-election/20260101T000000.000Z-7"


def fault(name: str, begun: float, healed: float | None, effective: bool = True) -> dict[str, Any]:
    """A row of the table of faults."""
    return {
        "fault": name,
        "kind": "partition",
        "nodes": ["b1", "b2"],
        "injecting_ns": int(begun * SECOND),
        "injected_ns": int(begun * SECOND),
        "healing_ns": None if healed is None else int(healed * SECOND),
        "healed_ns": None if healed is None else int(healed * SECOND),
        "effective": effective,
        "evidence": '{"packets": 12}',
    }


def example(sequence: int) -> dict[str, Any]:
    """A lost record as evaluate tells it."""
    return {
        "topic": "trial",
        "partition": 0,
        "offset": sequence,
        "record_id": sequence,
        "worker": 0,
        "sequence": sequence,
        "sent_ns": 15 * SECOND + sequence,
        "acknowledged_ns": 16 * SECOND + sequence,
        "leader": "b1",
        "leader_epoch": 3,
        "isr": ["b1"],
        "faults": ["cut", "<isolate>"],
    }


def lost(standing: Standing = Standing.PERMITTED, count: int = 520) -> FoundAnomaly:
    """Acknowledged records that are gone."""
    return FoundAnomaly(
        count=count,
        standing=standing,
        because="min.insync.replicas=1 with unclean leader election",
        source="KIP-106 & Jepsen: Kafka (2013)",
        remedy="min.insync.replicas=2" if standing is Standing.PERMITTED else None,
        examples=[example(n) for n in range(min(count, 20))],
    )


def verdict(judged: Judgement = Judgement.VALID, **changes: Any) -> Verdict:
    """A verdict that is valid and expected, but for ``changes``."""
    loss = judged is Judgement.INVALID
    return Verdict(
        **{
            "schema": 1,
            "run": RUN,
            "scenario": "jepsen-2013/unclean-election",
            "verdict": judged,
            "expected": True,
            "reasons": {
                Judgement.VALID: ["no anomaly: all 987 acknowledged writes are in the final log"],
                Judgement.INVALID: ["lost: 520 of 987 acknowledged writes are not in the final log; permitted: <x>"],
                Judgement.UNKNOWN: ["unknown: faults took effect: no evidence: cut"],
            }[judged],
            "summary": Summary(
                attempted=2000,
                acknowledged=987,
                survivors=468,
                lost=520 if loss else 0,
                unacknowledged_present=1,
                duplicated=0,
                ack_rate=0.4935,
                loss_rate=520 / 987 if loss else 0.0,
                unacknowledged_present_rate=None,
            ),
            "anomalies": {"lost": lost()} if loss else {},
            "preconditions": [
                Precondition(name="something attempted", met=True, detail="2000 writes"),
                Precondition(
                    name="faults took effect",
                    met=judged is not Judgement.UNKNOWN,
                    detail="no evidence: cut" if judged is Judgement.UNKNOWN else "2 faults, each with evidence",
                ),
            ],
            "availability": {
                "resolution_ns": 1_000_000,
                "longest_unavailable": {
                    "from_ns": 20 * SECOND,
                    "to_ns": 26 * SECOND,
                    "lasted_ns": 6 * SECOND,
                    "ended": True,
                },
                "partitions": [],
                "after_faults": [
                    {"fault": "cut", "first_ack_after_injection_ns": SECOND // 2, "first_ack_after_heal_ns": None}
                ],
                "bucket_ns": SECOND,
                "acknowledged": [0] * 10
                + [180, 200, 190, 40, 0, 0, 30, 200, 210, 0, 0, 0, 0, 0, 0, 0, 150, 200, 200, 190],
            },
            "faults": [fault("cut", 13, 28), fault("<isolate>", 19.2, 28), fault("kill", 25, None, effective=False)],
            "versions": {"kafka": "4.3.1", "kafka-trial": "0.1.0"},
            **changes,
        }
    )


def run_file() -> RunFile:
    """The run.json beside them."""
    return RunFile(
        run=RUN,
        scenario_name="jepsen-2013/unclean-election",
        scenario={
            "claim": "acks=all & unclean election lose <writes>",
            "source": "Jepsen: Kafka (2013)",
            "topic": {"partitions": 1},
        },
        configuration=Configuration(version="4.3.1"),
        seed=7,
        origin_unix_ns=1_767_225_600 * SECOND,
        phases=[PhaseReport(phase="cluster up", at_ns=0), PhaseReport(phase="timeline", at_ns=10 * SECOND)],
        timeline=[
            StepReport(step="wait 3s", at_ns=10 * SECOND, ended_ns=13 * SECOND),
            StepReport(
                step="inject partition from leader to followers as cut", at_ns=13 * SECOND, ended_ns=13 * SECOND
            ),
            StepReport(step="until isr old_leader", at_ns=int(13.1 * SECOND), ended_ns=19 * SECOND),
            StepReport(
                step="until leader changed", at_ns=20 * SECOND, ended_ns=28 * SECOND, met=False, detail="seen: b1 leads"
            ),
        ],
        notes=["sends.1.arrows was cut off: 12 rows could be read"],
    )
