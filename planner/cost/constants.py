"""Constants of the cost model, read once, each with its origin."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml

from hwprofiles.errors import MissingFact
from hwprofiles.provenance import Kind

Path = tuple[str, ...]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Constant:
    """One number of the model."""

    value: float
    kind: Kind
    ref: str


_NONE: Mapping[Path, float | Constant] = MappingProxyType({})
_replaced: ContextVar[Mapping[Path, float | Constant]] = ContextVar("replaced", default=_NONE)
"""Of this thread and task: two questions answered side by side do not see each other's."""


@lru_cache(maxsize=1)
def _tree() -> dict[str, Any]:
    text = files("planner.cost").joinpath("data/constants.yaml").read_text("utf-8")
    tree: dict[str, Any] = yaml.load(text, _LOADER)  # noqa: S506 - a safe loader
    return tree


@contextmanager
def replaced(values: Mapping[Path, float | Constant]) -> Iterator[None]:
    """Other values for some constants: measured ones, or what a fit without some evidence gives.

    A bare number keeps the origin of the shipped constant. What was computed from the shipped ones
    and kept stays as it was: that is the caller's to drop.
    """
    if not values:
        yield
        return
    token = _replaced.set({**_replaced.get(), **values})
    try:
        yield
    finally:
        _replaced.reset(token)


def constant(*path: str) -> Constant:
    """The constant at a path such as ("engines", "vllm", "layer_us").

    Raises:
        MissingFact: the file has no such constant.
    """
    other = _replaced.get().get(path)
    if other is None:
        return _shipped(path)
    if isinstance(other, Constant):
        return other
    shipped = _shipped(path)
    return Constant(other, shipped.kind, shipped.ref)


def given(*path: str) -> Constant | None:
    """A measured figure that has no shipped counterpart; None where none is in force."""
    other = _replaced.get().get(path)
    return other if isinstance(other, Constant) else None


def is_constant(path: Path) -> bool:
    """Whether the shipped file has a number at this path."""
    try:
        _shipped(path)
    except (MissingFact, KeyError, TypeError):
        return False
    return True


@lru_cache(maxsize=512)
def _shipped(path: Path) -> Constant:
    node: Any = _tree()
    for key in path:
        if not isinstance(node, dict) or key not in node:
            raise MissingFact(f"the cost model has no constant {'.'.join(path)}")
        node = node[key]
    return Constant(float(node["value"]), node["kind"], node["ref"])


def value(*path: str) -> float:
    """The bare number of `constant`."""
    return constant(*path).value
