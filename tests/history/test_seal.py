"""A run that differs from what was sealed is refused, and the line names the file."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from harness.core.errors import HistoryError
from harness.history.run_file import RunFile
from harness.history.seal import SEAL_FILE, Seal, write_sealed
from harness.history.stored_run import StoredRun
from tests.checkers.notation import by_hand, write
from tests.history.damages import WAYS, WELL, contents, damage, files, outcome

#: Damages tried in the test; `scripts/fuzz` tries more.
DAMAGES = 100


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    file = write(
        directory, [by_hand("send a ok @0", "send b ok @1", "read a @0", "final a @0", "final b @1", "end 0..2")]
    )
    write_sealed(directory, file)
    return directory


def refused(run: Path) -> str:
    with pytest.raises(HistoryError) as raised:
        StoredRun.open(run)
    return str(raised.value)


def test_a_run_as_it_was_sealed_is_opened(run: Path) -> None:
    assert StoredRun.open(run).sealed
    seal = Seal.read(run)
    assert seal is not None
    assert seal.files.keys() == {str(path.relative_to(run)) for path in files(run)} - {SEAL_FILE}


def test_it_tells_the_rows_of_each_part(run: Path) -> None:
    seal = Seal.read(run)
    assert seal is not None
    parts = [(Path(name).parent.name, file.rows) for name, file in seal.files.items()]
    assert [(sum(rows or 0 for of, rows in parts if of == table)) for table in ("sends", "reads", "")] == [2, 2, 0]


def test_a_seal_of_before_without_numbers_of_rows_is_as_good(run: Path) -> None:
    seal = Seal.read(run)
    assert seal is not None
    counted = {name: file.model_copy(update={"rows": None}) for name, file in seal.files.items()}
    (run / SEAL_FILE).write_text(Seal.of(counted).model_dump_json(by_alias=True, exclude_none=True))
    assert StoredRun.open(run).sealed


def test_one_without_a_seal_is_opened_and_known_to_have_none(run: Path) -> None:
    (run / SEAL_FILE).unlink()
    assert not StoredRun.open(run).sealed


def test_a_copy_elsewhere_is_as_good(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    assert StoredRun.open(tmp_path / "copy").sealed


def test_each_file_that_is_missing_is_named(run: Path, tmp_path: Path) -> None:
    names = [path.relative_to(run) for path in files(run) if path.name != SEAL_FILE]
    assert len(names) > 7
    for number, name in enumerate(names):
        copy = tmp_path / str(number)
        shutil.copytree(run, copy)
        (copy / name).unlink()
        assert refused(copy) == f"{copy / name}: missing: it was there when the run was sealed"


def test_a_file_that_was_not_sealed_is_named(run: Path) -> None:
    shutil.copy(run / "history/sends/part.parquet", run / "history/sends/other.parquet")
    assert "history/sends/other.parquet: no part of the run that was sealed" in refused(run)


def test_files_made_from_a_run_are_not_part_of_its_seal(run: Path) -> None:
    for name in ("verdict.json", "report.html", "logs/b1.log", "anomalies/lost/part.parquet"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("made")
    assert StoredRun.open(run).sealed


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[:-1], "bytes"),
        (lambda text: text.replace("4.3.1", "4.3.2"), "not what it was"),
        (lambda text: "", "0 bytes"),
    ],
)
def test_a_run_file_that_was_changed_is_refused(damage: Callable[[str], str], says: str, run: Path) -> None:
    path = run / "run.json"
    path.write_text(damage(path.read_text()))
    assert f"{path}: damaged: " in refused(run)
    assert says in refused(run)


def test_a_seal_that_was_changed_is_refused(run: Path) -> None:
    path = run / SEAL_FILE
    seal = json.loads(path.read_text())
    del seal["files"]["history/reads/part.parquet"]
    path.write_text(json.dumps(seal))
    assert refused(run) == f"{path}: damaged: copy the run again from where it was recorded"
    path.write_text("{")
    assert "damaged" in refused(run)


def test_sealed_again_it_is_what_it_is_now(run: Path) -> None:
    file = RunFile.read(run)
    file.notes.append("more")
    write_sealed(run, file)
    assert StoredRun.open(run).file.notes == ["more"]


def test_no_random_damage_is_judged(run: Path, tmp_path: Path) -> None:
    seal = Seal.read(run)
    assert seal is not None
    judged_by, became = frozenset(map(Path, seal.files)), Counter[str]()
    for number in range(DAMAGES):
        copy = tmp_path / str(number)
        shutil.copytree(run, copy)
        how = damage(copy, Random(number))
        became[found := outcome(copy, contents(run), judged_by)] += 1
        assert found in WELL, f"{number}: {how}"
        shutil.rmtree(copy)
    assert became["refused"] > DAMAGES // 2


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_each_way_damages_a_part_of_the_history(way: Callable[[Path, Random], None], run: Path) -> None:
    path = run / "history/reads/part.parquet"
    way(path, Random(1))
    assert str(run) in refused(run)


def test_a_silent_change_would_be_reported(run: Path) -> None:
    whole = contents(run)
    (run / SEAL_FILE).unlink()
    (run / "history/positions/part.parquet").unlink()
    assert outcome(run, whole, frozenset(whole) - {Path(SEAL_FILE)}) == "silent"
