"""``kafka-trial doctor``: checks what this machine can run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from random import Random
from typing import TYPE_CHECKING

import click

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.environment import look_at_java, look_at_spark
from harness.cli.machines import cluster, overrides, settings
from harness.cli.options import ProviderCommand
from harness.core.errors import EnvironmentLacks, KafkaTrialError

if TYPE_CHECKING:
    from harness.cluster.provider import Diagnosis


@click.command(cls=ProviderCommand, before="as_json")
@click.argument("scenarios", metavar="[SUITE|SCENARIO]…", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each check.")
@click.pass_obj
def doctor(backends: Backends, /, scenarios: tuple[str, ...], as_json: bool, **options: object) -> int:
    """Say what this machine can run, or whether it can run these scenarios: a suite by name, or scenarios by name, glob
    or file.

    Checks Docker, Compose and Java, and tries the faults that need support by the kernel; with --machines, checks those
    machines instead of Docker. Exits with 3 if something is missing that every run, or one of these scenarios, needs.
    """
    diagnoses = []
    said = settings(options)
    found = _of_scenarios(backends, scenarios, overrides(said)) if scenarios else examined(backends, said)
    for one in found:
        diagnoses.append(one)
        if as_json:
            click.echo(json.dumps(asdict(one)))
        else:
            mark = "ok" if one.good else "MISSING" if one.needed else "cannot"
            click.echo(f"{mark:8}{one.name:11} {one.detail}".rstrip())
    return codes.MET if all(one.good for one in diagnoses if one.needed) else codes.CANNOT_RUN


def _of_scenarios(backends: Backends, names: tuple[str, ...], overrides: Sequence[str]) -> "Iterator[Diagnosis]":
    """For each scenario, whether it can be run here, or what is missing; and Java, which judges all of them. Raises
    ScenarioError if a scenario does not load, or its inventory cannot be read, or gives a machine another address than
    other inventories do."""
    from harness.cluster.provider import Diagnosis
    from harness.providers.catalogue import check_names, provider_of
    from harness.scenario.loading import load
    from harness.suite.model import load_suite
    from harness.suite.plan import plan

    def progress(line: str) -> None:
        click.echo(f"kafka-trial: {line}", err=True)

    cases = plan(load_suite(names), overrides, 1, Random(0))
    # (Each once, however often it is to run.)
    distinct = {(case.written, case.overrides): case for case in cases}.values()
    loaded = [(case.name, load(case.written, case.overrides, case.text)) for case in distinct]
    check_names([scenario.cluster for _, scenario in loaded], backends.providers())
    java = _java()
    if not java.good:
        yield java
    for name, scenario in loaded:
        try:
            provider = provider_of(scenario.cluster, backends.providers())
            provider.check(scenario.cluster, [fault.needs for fault in scenario.faults], progress)
            yield Diagnosis(name, True, "")
        except KafkaTrialError as exc:
            yield Diagnosis(name, False, "; ".join(str(exc).splitlines()))


def examined(backends: Backends, said: Mapping[str, object]) -> "Iterator[Diagnosis]":
    """All checks, one diagnosis after the other."""
    from harness.providers.catalogue import provider_of

    yield _java()
    providers = backends.providers()
    spec = cluster(providers, said)
    asked = [row.get() for row in providers.values()] if not said else [provider_of(spec, providers)]
    for provider in asked:
        yield from provider.doctor(spec)


def _java() -> "Diagnosis":
    from harness.cluster.provider import Diagnosis

    try:
        look_at_spark()
        return Diagnosis("java", True, look_at_java())
    except EnvironmentLacks as exc:
        return Diagnosis("java", False, str(exc))
