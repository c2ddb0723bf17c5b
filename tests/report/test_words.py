"""The words and figures of a verdict, which a terminal and a page have in common."""

import pytest

from harness.core.verdict import Finding, Judgement, Standing, Verdict
from harness.report.words import from_to, headlines, rate, shared, tone
from tests.report.verdicts import SECOND, lost, verdict


def invalid(standing: Standing, expected: bool = True) -> Verdict:
    return verdict(Judgement.INVALID, anomalies={"lost": lost(standing)}, expected=expected)


@pytest.mark.parametrize(
    ("judged", "looks"),
    [
        (verdict(), "good"),
        (verdict(expected=False), "bad"),
        (verdict(Judgement.UNKNOWN), "doubtful"),
        (verdict(Judgement.UNKNOWN, expected=False), "bad"),
        (invalid(Standing.PERMITTED), "doubtful"),
        (invalid(Standing.PERMITTED, expected=False), "bad"),
        (invalid(Standing.UNDECIDED), "bad"),
        (invalid(Standing.VIOLATION), "bad"),
    ],
)
def test_only_what_is_valid_looks_good_and_a_violation_looks_bad_though_it_is_expected(
    judged: Verdict, looks: str
) -> None:
    assert tone(judged) == looks


def test_a_reason_is_shown_without_what_its_finding_shows() -> None:
    finding = Finding(
        standing=Standing.PERMITTED,
        because="unclean election",
        source="KIP-106",
        anomalies={"lost": 520},
        runs=[{"text": "trial-0: offsets 1–520"}],
        text="b1 was elected",
    )
    judged = verdict(
        Judgement.INVALID,
        reasons=[
            "lost: 520 of 987 are gone; permitted: unclean election",
            "lost: b1 was elected",
            "lost: trial-0: offsets 1–520",
            "reordered: 3 records: unclean election",
            "unknown: cluster observed: not at all",
        ],
    )
    assert headlines(judged, [finding]) == [
        "lost: 520 of 987 are gone; permitted",
        # (Of another anomaly, and so of another cause.)
        "reordered: 3 records: unclean election",
        "unknown: cluster observed: not at all",
    ]
    assert headlines(judged, []) == judged.reasons


def test_a_loss_of_one_in_a_million_shows_in_a_rate() -> None:
    assert [rate(share) for share in (0.0, 1e-6, 520 / 987, 1.0)] == ["0 %", "0.0001 %", "52.68 %", "100 %"]
    assert rate(None) == ""


def test_a_stretch_within_a_tenth_of_a_second_is_one_time() -> None:
    assert from_to(26 * SECOND, 31 * SECOND + SECOND // 3) == "26.0–31.3 s"
    assert from_to(26 * SECOND, 26 * SECOND + SECOND // 100) == "26.0 s"


def test_what_all_rows_have_in_common_is_told_once() -> None:
    headers = ["partition", "offset", "leader"]
    rows = [["trial-0", "1", "b1"], ["trial-0", "2", "b1"]]
    assert shared(headers, rows) == ("partition trial-0 · leader b1", ["offset"], [["1"], ["2"]])
    assert shared(headers, rows[:1]) == ("", headers, rows[:1])
