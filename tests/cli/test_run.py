"""``kafka-trial run``: what it hands on, what it prints, and every bad input that needs no cluster."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cluster.spec import own_spec
from harness.core.errors import ClusterError, EnvironmentLacks
from harness.core.verdict import Judgement, Verdict
from harness.providers.docker.spec import DockerSpec
from harness.run.display import Display
from harness.run.new_run import new_run
from harness.scenario.model import Scenario
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke
from tests.report.verdicts import run_file, verdict

MINE = "name: mine\ntopic:\n  partitions: 2\n"


@dataclass
class Recorder:
    """A lifecycle that notes what it was called with, and leaves a run.json."""

    verdict: Verdict = field(default_factory=verdict)
    raises: BaseException | None = None
    called: list[tuple[Scenario, Path, int, bool]] = field(default_factory=list)

    def __call__(
        self, scenario: Scenario, store: Path, seed: int, display: Display, keep: bool
    ) -> tuple[Path, Verdict]:
        self.called.append((scenario, store, seed, keep))
        display.phase("cluster up")
        if self.raises is not None:
            raise self.raises
        directory = store / "mine" / "1"
        directory.mkdir(parents=True, exist_ok=True)
        run_file().write(directory)
        return directory, self.verdict

    @property
    def backends(self) -> Backends:
        return Backends(run=self)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize("said", ["registry", "build"])
def test_run_takes_images_from_the_given_place(said: str, mine: Path, tmp_path: Path, kafka_trial: Invoke) -> None:
    lifecycle = Recorder()
    kafka_trial("run", mine, "--images", said, "--store", tmp_path, backends=lifecycle.backends)
    [(scenario, *_)] = lifecycle.called
    assert own_spec(scenario.cluster, DockerSpec).images == said


def test_run_takes_images_from_nowhere_else(mine: Path, kafka_trial: Invoke) -> None:
    assert_one_line(
        kafka_trial("run", mine, "--images", "latest"), codes.BAD_INPUT, "'--images': 'latest' is not one of"
    )


def test_run_passes_its_options_to_the_lifecycle(mine: Path, tmp_path: Path, kafka_trial: Invoke) -> None:
    lifecycle = Recorder()
    arguments = ("--set", "topic.partitions=3", "--set", "topic.min.insync.replicas=2", "--seed", 5, "--keep")
    done = kafka_trial("run", mine, *arguments, "--store", tmp_path, backends=lifecycle.backends)
    [(scenario, store, seed, keep)] = lifecycle.called
    assert (scenario.name, scenario.topic.partitions, scenario.topic.min_isr) == ("mine", 3, 2)
    assert (store, seed, keep) == (tmp_path, 5, True)
    assert done.code == 0
    assert done.out.startswith("VALID, as expected")
    assert str(tmp_path / "mine" / "1" / "report.html") in done.out
    assert "== cluster up" in done.err


def test_run_draws_a_seed_where_none_is_set(mine: Path, tmp_path: Path, kafka_trial: Invoke) -> None:
    lifecycle = Recorder()
    for _ in range(2):
        assert kafka_trial("run", mine, "--store", tmp_path, backends=lifecycle.backends).code == 0
    assert lifecycle.called[0][2] != lifecycle.called[1][2]


def test_run_prints_one_line_of_json_and_nothing_else_on_stdout(mine: Path, kafka_trial: Invoke) -> None:
    judged = verdict(Judgement.UNKNOWN, expected=False)
    done = kafka_trial("run", mine, "--json", backends=Recorder(judged).backends)
    assert done.code == codes.UNKNOWN
    assert done.out.count("\n") == 1
    assert Verdict.model_validate(json.loads(done.out)) == judged
    assert json.loads(done.out)["schema"] == 1


@pytest.mark.parametrize(
    ("error", "code"), [(EnvironmentLacks("no Docker"), codes.CANNOT_RUN), (ClusterError("b1 exited"), codes.CRASHED)]
)
def test_run_tells_an_error_and_where_the_record_is_kept(
    error: Exception, code: int, mine: Path, kafka_trial: Invoke
) -> None:
    error.add_note("the recording stays in store/mine/1")
    done = kafka_trial("run", mine, backends=Recorder(raises=error).backends)
    assert done.code == code
    assert done.err.endswith(f"\nkafka-trial: {error}; the recording stays in store/mine/1\n")


def test_run_interrupted_says_where_the_record_is_kept(mine: Path, kafka_trial: Invoke) -> None:
    interrupt = KeyboardInterrupt()
    interrupt.add_note("the recording stays in store/mine/1")
    done = kafka_trial("run", mine, backends=Recorder(raises=interrupt).backends)
    assert done.code == codes.CRASHED
    assert "kafka-trial: interrupted; the recording stays in store/mine/1\n" in done.err
    assert "Traceback" not in done.err


def test_run_shows_a_defect_whole(mine: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("run", mine, backends=Recorder(raises=KeyError("a defect")).backends)
    assert done.code == codes.CRASHED
    assert "Traceback" in done.err
    assert "KeyError: 'a defect'" in done.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("topic.replication=4", "3"),
        ("topic.min.insync.replicas=4", "replication"),
        ("cluster.metadata=zookeeper", "has no ZooKeeper"),
        ("topic.partitons=1", "did you mean"),
        ("topic.partitions=many", "topic.partitions"),
        ("watch=7", "watch"),
        ("nonsense", "write path=value"),
    ],
)
def test_run_refuses_contradictory_settings(change: str, says: str, mine: Path, kafka_trial: Invoke) -> None:
    assert_one_line(kafka_trial("run", mine, "--set", change, backends=Recorder().backends), codes.BAD_INPUT, says)


def test_run_refuses_a_remedy_that_needs_another_key(kafka_trial: Invoke) -> None:
    change = "topic.unclean.leader.election.enable=false"
    done = kafka_trial("run", "jepsen-2013/unclean-election", "--set", change, backends=Recorder().backends)
    assert_one_line(done, codes.BAD_INPUT, "unclean.leader.election.enable")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: mine\ntopic:\n  partitons: 2\n", 3, "did you mean 'partitions'?"),
        ("name: mine\ntopic: [\n", 3, ""),
        ("name: mine\ntimeline:\n  - inject: {fault: kil, target: leader}\n", 3, "kill"),
        ("name: mine\ntimeline:\n  - inject: {fault: kill, target: old_leader}\n", 3, "old_leader"),
        ("name: mine\ntimeline:\n  - wait: soon\n", 3, "250ms, 10s or 2m"),
    ],
)
def test_run_points_at_the_line_that_is_wrong(text: str, line: int, says: str, mine: Path, kafka_trial: Invoke) -> None:
    mine.write_text(text)
    assert_one_line(kafka_trial("run", mine, backends=Recorder().backends), codes.BAD_INPUT, f"{mine}:{line}: ")
    assert says in kafka_trial("run", mine, backends=Recorder().backends).err


def test_run_knows_near_matches_of_a_name(kafka_trial: Invoke) -> None:
    done = kafka_trial("run", "jepsen-2013/unclean-elections", backends=Recorder().backends)
    assert_one_line(done, codes.BAD_INPUT, "did you mean jepsen-2013/unclean-election")


def test_run_refuses_a_store_that_cannot_be_written(mine: Path, kafka_trial: Invoke) -> None:
    def lifecycle(scenario: Scenario, store: Path, seed: int, display: Display, keep: bool) -> tuple[Path, Verdict]:
        return new_run(scenario, seed, store).directory, verdict()

    done = kafka_trial("run", mine, "--store", mine / "below", backends=Backends(run=lifecycle))
    assert_one_line(done, codes.CANNOT_RUN, "name another --store")


def test_run_without_docker_says_so(
    mine: Path, tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert_one_line(kafka_trial("run", mine, "--store", tmp_path), codes.CANNOT_RUN, "no Docker engine answers")
