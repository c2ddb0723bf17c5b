"""Which runs a suite consists of."""

from pathlib import Path
from random import Random

import pytest

from harness.core.errors import ScenarioError
from harness.scenario.loading import load, named
from harness.suite.model import Suite, load_suite, suites
from harness.suite.plan import SuiteCase, Urgency, digest, in_order, plan, seconds
from tests.suite.fakes import case


def cases(*runs: object, overrides: tuple[str, ...] = (), times: int = 1) -> list[SuiteCase]:
    return plan(Suite.model_validate({"name": "s", "runs": list(runs)}), overrides, times, Random(1))


def names(*runs: object) -> list[str]:
    return [one.name for one in cases(*runs)]


@pytest.mark.parametrize("name", suites())
def test_every_shipped_suite_loads_has_a_purpose_and_has_runs(name: str) -> None:
    suite = load_suite([name])
    assert suite.about
    assert plan(suite, (), 1, Random(1))


def test_there_is_a_suite_for_each_folder_of_scenarios_and_nightly_has_all() -> None:
    for folder in {name.split("/")[0] for name in named()}:
        suite = plan(load_suite([folder]), (), 1, Random(1))
        assert {one.scenario for one in suite} == {name for name in named() if name.startswith(f"{folder}/")}
    assert {one.scenario for one in plan(load_suite(["nightly"]), (), 1, Random(1))} == set(named())


def test_the_quick_suite_fits_in_ten_minutes() -> None:
    assert sum(one.seconds for one in plan(load_suite(["quick"]), (), 1, Random(1))) <= 600


def test_a_pattern_means_every_scenario_that_it_matches_once() -> None:
    assert names({"scenarios": ["jepsen-2013/m*", "jepsen-2013/min-isr-2"]}) == ["jepsen-2013/min-isr-2"]


def test_a_pattern_also_matches_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.yaml").write_text("claim: x\n")
    monkeypatch.chdir(tmp_path)
    assert [(one.name, one.written) for one in cases("mine/*")] == [("a", str(tmp_path / "mine" / "a.yaml"))]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [one.name for one in cases(str(tmp_path / "mi*" / "*.yaml"))] == ["a"]


@pytest.mark.parametrize(
    ("patterns", "by_name"),
    [
        (["jepsen-2013/min*"], True),
        (["jepsen-2013/min*.yaml"], False),
        (["jepsen-2013/min-isr-2.yaml", "jepsen-2013/min*.yaml"], False),
        (["jepsen-2013/min-isr-2.yaml", "jepsen-2013/min*"], False),
        (["jepsen-2013/min-isr-2", "jepsen-2013/min*.yaml"], True),
        (["jepsen-2013/min-isr-2", "jepsen-2013/min-isr-2.yaml"], True),
    ],
)
def test_a_named_scenario_that_a_pattern_also_finds_as_a_file_runs_once(
    patterns: list[str], by_name: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = named()["jepsen-2013/min-isr-2"]
    monkeypatch.chdir(file.parents[1])
    expected = "jepsen-2013/min-isr-2" if by_name else str(file.resolve())
    assert [one.written for one in plan(load_suite(patterns), (), 1, Random(1))] == [expected]


def test_the_files_of_a_suite_are_found_from_where_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("a", "b1"):
        (folder / f"{name}.yaml").write_text("claim: x\n")
    (folder / "suite.yml").write_text("runs: [a.yaml, 'b*.yaml', delivery/at-least-once]\n")
    monkeypatch.chdir("/")
    found = plan(load_suite([str(folder / "suite.yml")]), (), 1, Random(1))
    assert [one.name for one in found] == ["a", "b1", "delivery/at-least-once"]
    assert [one.written for one in found][:2] == [str(folder / "a.yaml"), str(folder / "b1.yaml")]
    monkeypatch.chdir(folder)
    assert plan(load_suite(["suite.yml"]), (), 1, Random(1)) == found
    assert [one.name for one in plan(load_suite(["a.yaml"]), (), 1, Random(1))] == ["a"]


def test_versions_variants_and_times_multiply_and_their_settings_hold() -> None:
    found = cases(
        {
            "scenarios": "jepsen-2013/min-isr-2",
            "versions": ["3.9.2", "4.3.1"],
            "variants": {"one": ["topic.min.insync.replicas=1"], "two": []},
            "times": 2,
        }
    )
    assert [(one.name, one.repeat) for one in found][:3] == [
        ("jepsen-2013/min-isr-2 (3.9.2, one)", 1),
        ("jepsen-2013/min-isr-2 (3.9.2, one)", 2),
        ("jepsen-2013/min-isr-2 (3.9.2, two)", 1),
    ]
    assert len(found) == 8
    scenario = load(found[0].written, found[0].overrides)
    assert (scenario.cluster.version, scenario.topic.min_isr) == ("3.9.2", 1)


def test_every_run_has_a_seed_of_its_own_and_the_same_again_from_the_same_draws() -> None:
    first, again = cases("jepsen-2013/*", times=3), cases("jepsen-2013/*", times=3)
    assert len({one.seed for one in first}) == len(first)
    assert first == again


def test_tags_choose_and_exclude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, tags in (("a", "[loss]"), ("b", "[loss, long]"), ("c", "[]")):
        (tmp_path / f"{name}.yaml").write_text(f"tags: {tags}\n")
    monkeypatch.chdir(tmp_path)
    every = ["a.yaml", "b.yaml", "c.yaml"]
    assert names({"scenarios": every, "tags": "loss"}) == ["a", "b"]
    assert names({"scenarios": every, "without_tags": "long"}) == ["a", "c"]


def test_two_stars_name_scenarios_and_no_file_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    monkeypatch.chdir(tmp_path)
    assert set(names("**")) == set(named())


def test_a_file_is_taken_by_its_path_though_it_looks_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "mine[1].yaml").write_text("name: mine-one\n")
    (tmp_path / "mine1.yaml").write_text("claim: x\n")
    assert names(str(tmp_path / "mine[1].yaml")) == ["mine-one"]
    assert names(str(tmp_path / "mine[0-2].yaml")) == ["mine1"]


def test_two_files_of_one_name_are_two_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/test", "b/c/test", "other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text("claim: x\n")
    monkeypatch.chdir(tmp_path)
    found = cases("a/test.yaml", "*.yaml", "b/c/*.yaml", "a/test.yaml")
    assert [(one.name, one.repeat) for one in found] == [
        ("test (a/test.yaml)", 1),
        ("other", 1),
        ("test (b/c/test.yaml)", 1),
        ("test (a/test.yaml)", 2),
    ]
    (tmp_path / "min-isr-2.yaml").write_text("name: jepsen-2013/min-isr-2\n")
    assert names("jepsen-2013/min-isr-2", "min-isr-2.yaml") == [
        "jepsen-2013/min-isr-2",
        "jepsen-2013/min-isr-2 (min-isr-2.yaml)",
    ]


@pytest.mark.parametrize("written", ["inv.yaml", "'inv.yaml'"])
def test_an_inventory_is_the_same_from_another_directory(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [one] = cases("jepsen-2013/min-isr-2", overrides=(f"cluster.machines={written}",))
    monkeypatch.chdir("/")
    assert one.overrides == (f"cluster.machines={tmp_path}/inv.yaml",)
    scenario = load(one.written, one.overrides)
    assert scenario.cluster.model_dump()["machines"] == f"{tmp_path}/inv.yaml"
    assert digest(scenario) == one.digest
    [none] = cases("jepsen-2013/min-isr-2", overrides=("cluster.machines=null",))
    assert none.overrides == ("cluster.machines=null",)
    with pytest.raises(ScenarioError, match="is not a YAML value"):
        cases("jepsen-2013/min-isr-2", overrides=("cluster.machines=[",))


def test_clusters_on_one_machine_or_of_one_subnet_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("hosts: [{address: 10.0.0.1}, {address: kafka-2}]\n")
    (tmp_path / "two.yaml").write_text("hosts: [{address: 10.0.0.3}, {address: KAFKA-2, name: x}]\n")
    settings = [f"cluster.machines={tmp_path}/{name}.yaml" for name in ("one", "two", "none")]
    settings += ["cluster.subnet=10.1.2.0/24", "cluster.subnet=10.1.2.0/255.255.255.0", "cluster.brokers=3"]
    found = [one.alone for said in settings for one in cases("jepsen-2013/min-isr-2", overrides=(said,))]
    assert found == [
        ("machine 10.0.0.1", "machine kafka-2"),
        ("machine 10.0.0.3", "machine kafka-2"),
        (f"machines of {tmp_path}/none.yaml",),
        ("subnet 10.1.2.0/24",),
        ("subnet 10.1.2.0/24",),
        (),
    ]


def test_a_run_with_transactions_is_measured_until_they_settled() -> None:
    found = cases("*")
    assert {one.measured_until for one in found} == {"final read", "drain"}
    for one in found:
        transactional = load(one.written, one.overrides).workload.transactional
        assert one.measured_until == ("final read" if transactional else "drain"), one.name


def test_an_inventory_is_looked_for_where_the_file_is_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "own.yaml").write_text("cluster: {machines: inv.yaml}\n")
    (folder / "plain.yaml").write_text("claim: x\n")
    (folder / "some.yaml").write_text(
        "runs:\n  - own.yaml\n  - {scenarios: plain.yaml, set: cluster.machines=../inv.yaml}\n"
        "  - {scenarios: plain.yaml, variants: {other: 'cluster={machines: inv.yaml}'}}\n"
    )
    monkeypatch.chdir(tmp_path)
    found = plan(load_suite(["mine/some.yaml"]), (), 1, Random(1))
    monkeypatch.chdir("/")
    scenarios = [load(one.written, one.overrides) for one in found]
    assert [scenario.cluster.model_dump()["machines"] for scenario in scenarios] == [
        f"{folder}/inv.yaml",
        f"{folder}/../inv.yaml",
        f"{folder}/inv.yaml",
    ]
    assert [digest(scenario) for scenario in scenarios] == [one.digest for one in found]


def test_a_pattern_may_begin_with_several_slashes(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("claim: x\n")
    assert names(f"//{tmp_path}/*.yaml") == ["mine"]
    with pytest.raises(ScenarioError, match="no scenario is '///"):
        cases("///nowhere-*.yaml")


def test_a_list_with_one_element_may_be_written_without_the_list() -> None:
    one = {"scenarios": "delivery/*", "tags": "groups", "set": "workload.rate=5", "versions": "3.9.2"}
    assert names(one) == names({key: [value] for key, value in one.items()})
    assert names(one)[0].endswith(" (3.9.2, workload.rate=5)")


def test_settings_of_the_command_line_win() -> None:
    [one] = cases({"scenarios": "jepsen-2013/min-isr-2", "set": ["workload.rate=5"]}, overrides=("workload.rate=7",))
    assert load(one.written, one.overrides).workload.rate == 7


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        (["jepsen-2013/nothing-*"], "suite s: no scenario is 'jepsen-2013/nothing-*'"),
        (["jepsen-2013/min-isr"], "did you mean jepsen-2013/min-isr-2"),
        (["mine/nowhere.yaml"], "mine/nowhere.yaml: no such file"),
        (["mine**.yaml"], "mine**.yaml"),
        ([{"scenarios": "jepsen-2013/*", "tags": "nobody"}], "with the tags nobody"),
        ([{"scenarios": "jepsen-2013/min-isr-2", "set": ["topic.replication=none"]}], "--set topic.replication"),
    ],
)
def test_an_impossible_run_is_reported_in_one_line_before_the_start(runs: list[object], says: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        cases(*runs)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("runs: []", "runs: "),
        ("about: x\nruns: [{scenario: a}]", "suite.yaml:2: runs.0.scenario: no such key; did you mean 'scenarios'?"),
        (
            "about: x\nruns: {scenarios: a, version: b}",
            "suite.yaml:2: runs.version: no such key; did you mean 'versions'?",
        ),
        ("runs: [a]\ntime_budget: 90", "suite.yaml:2: time_budget: 90 has no unit"),
        (
            "runs: [{times: 1000000000}]",
            "suite.yaml:1: runs.0.times: should be less than or equal to 1000, not 1000000000",
        ),
        ("runs: [{times: 0}]", "suite.yaml:1: runs.0.times: should be greater than or equal to 1, not 0"),
        ("runs: [{times: true}]", "suite.yaml:1: runs.0.times: "),
        ("runs: [{times: '2'}]", "suite.yaml:1: runs.0.times: "),
        (f"name: {'n' * 101}\nruns: [a]", "suite.yaml:1: name: is longer than 100 characters"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as raised:
        load_suite([str(file)])
    assert says in str(raised.value)


def test_a_suite_whose_files_name_cannot_be_its_own_must_give_one(tmp_path: Path) -> None:
    path = tmp_path / "my suite.yaml"
    path.write_text("runs: [delivery/*]\n")
    with pytest.raises(ScenarioError, match="'my suite', from its file, is not a valid name: add `name:` with"):
        load_suite([str(path)])


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ScenarioError, match="no suite or file is called 'nightli'; did you mean 'nightly'"):
        load_suite(["nightli"])


def test_a_suite_is_named_alone() -> None:
    with pytest.raises(ScenarioError, match="'quick' is a suite: name it alone"):
        load_suite(["delivery/at-least-once", "quick"])


@pytest.mark.parametrize("text", ["", "- jepsen-2013/*\n", "nightly\n"])
def test_a_file_without_keys_gets_an_error_that_explains_suites(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=r"mine\.yaml:1: a suite is a mapping with a list of runs"):
        load_suite([str(path)])


def test_some_scenarios_are_a_suite_themselves() -> None:
    assert [one.scenario for one in plan(load_suite(["delivery/*"]), (), 1, Random(1))] == [
        "delivery/at-least-once",
        "delivery/at-most-once",
    ]


def test_a_wrong_set_in_a_suite_is_named_with_its_case_but_a_typed_one_is_not() -> None:
    wrong = {"scenarios": "delivery/*", "variants": {"good": "workload.rate=7", "bad": "nope.x=1"}}
    with pytest.raises(ScenarioError) as raised:
        cases(wrong)
    [line] = str(raised.value).splitlines()
    assert line.startswith("suite s: delivery/at-least-once (bad): --set nope.x: no such key")
    with pytest.raises(ScenarioError) as raised:
        cases({"scenarios": "delivery/*", "versions": "4.3.1"}, overrides=("nope.x=1",))
    [line] = str(raised.value).splitlines()
    assert line.startswith("--set nope.x: no such key")


def test_failed_runs_come_first_then_left_out_runs_then_the_longest() -> None:
    each = [case("a", seconds=10), case("b", seconds=20), case("c", seconds=5), case("d", seconds=1)]
    order = in_order(each, {"d": Urgency.FAILED, "c": Urgency.LEFT_OUT, "b": Urgency.NONE})
    assert [one.name for one in order] == ["d", "c", "b", "a"]


def test_a_longer_timeline_takes_longer() -> None:
    short, long = load("jepsen-2013/min-isr-2"), load("jepsen-2013/min-isr-2", ["timeline.0.wait=1m"])
    assert seconds(long) == pytest.approx(seconds(short) + 55)
