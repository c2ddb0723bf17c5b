"""The keys that a scenario may have below a key, taken from the models."""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from harness.core.written import KeyPath
from harness.scenario.model import Scenario
from workloads.catalogue import DEFAULT, WORKLOADS

Model = type[BaseModel]


def keys_of(model: Model) -> list[str]:
    """The keys of a model as they are written."""
    return [info.alias or name for name, info in model.model_fields.items()]


def keys_at(where: KeyPath, data: Any, whole: Model = Scenario) -> list[str] | None:
    """The allowed keys below a key of ``data``; None if any key is allowed (Kafka's own settings), or no key is.

    ``whole``: the model of all of ``data``.
    """
    annotation: Any = whole
    for part in where:
        annotation = _below(annotation, part, data)
        data = _part(data, part)
    model = _model(annotation, data)
    return None if model is None else keys_of(model)


def _below(annotation: Any, part: str | int, data: Any) -> Any:
    if isinstance(part, int):
        lists = (kind for kind in _alternatives(annotation) if get_origin(kind) in {list, tuple})
        return next((get_args(kind)[0] for kind in lists), None)
    model = _model(annotation, data)
    if model is None:
        return None
    if part == "workload" and model is Scenario:
        return WORKLOADS.get(str(_part(_part(data, part), "kind") or DEFAULT))
    return next((info.annotation for name, info in model.model_fields.items() if part in {info.alias, name}), None)


def _part(data: Any, part: str | int) -> Any:
    try:
        return data[part]
    except (KeyError, IndexError, TypeError):
        return None


def _model(annotation: Any, data: Any) -> Model | None:
    """The alternative that fits ``data`` best: its literals are those of the data, and it shares most keys."""
    keys = data if isinstance(data, Mapping) else {}
    models = [kind for kind in _alternatives(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    if not models and isinstance(data, Mapping) and (listed := _below(annotation, 0, [data])) is not None:
        return _model(listed, data)  # a single item may be written instead of a list
    fitting = [model for model in models if len(models) == 1 or _literals_fit(model, keys)]
    return max(fitting, key=lambda model: len(set(keys_of(model)) & set(keys)), default=None)


def _literals_fit(model: Model, data: Mapping[str, Any]) -> bool:
    literals = {name: info.annotation for name, info in model.model_fields.items() if name in {"fault", "kind"}}
    return all(get_origin(kind) is Literal and data.get(name) in get_args(kind) for name, kind in literals.items())


def _alternatives(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return [kind for argument in get_args(annotation) for kind in _alternatives(argument)]
    return [annotation]
