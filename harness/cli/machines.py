"""The settings of a cluster that the options of providers give."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.cluster.spec import ClusterSpec
    from harness.providers.catalogue import ProviderRow


def settings(options: Mapping[str, object]) -> dict[str, object]:
    """The cluster settings that the values of providers' options give."""
    given = {key: value for key, value in options.items() if value is not None and value is not False}
    return {key: str(value.absolute()) if isinstance(value, Path) else value for key, value in given.items()}


def overrides(given: Mapping[str, object]) -> Sequence[str]:
    """The same settings in the form of ``--set``."""
    from harness.scenario.files import as_yaml

    return [f"cluster.{key}={as_yaml(value)}" for key, value in given.items()]


def cluster(providers: "Mapping[str, ProviderRow]", given: Mapping[str, object]) -> "ClusterSpec":
    """A cluster with these settings of providers, and defaults otherwise. Raises ScenarioError."""
    from pydantic import ValidationError

    from harness.core.complaints import complaints
    from harness.core.errors import ScenarioError
    from harness.core.written import Written
    from harness.providers.catalogue import composed

    known = {key for row in providers.values() for key in row.spec.model_fields}
    chosen = {key: value for key, value in given.items() if key in known}
    try:
        return composed(providers).model_validate(chosen)
    except ValidationError as exc:
        errors = ({**error, "loc": ("cluster", *error["loc"])} for error in exc.errors(include_url=False))
        lines = complaints(errors, Written({"cluster": chosen}, "the given settings"), lambda _: None)
        raise ScenarioError("\n".join(lines)) from exc
