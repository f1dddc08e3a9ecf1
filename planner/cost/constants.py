"""Constants of the cost model, read once, each with its origin."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from hwprofiles.errors import MissingFact
from hwprofiles.provenance import Kind

Path = tuple[str, ...]
_replaced: dict[Path, float] = {}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Constant:
    """One number of the model."""

    value: float
    kind: Kind
    ref: str


@lru_cache(maxsize=1)
def _tree() -> dict[str, Any]:
    text = files("planner.cost").joinpath("data/constants.yaml").read_text("utf-8")
    tree: dict[str, Any] = yaml.load(text, _LOADER)  # noqa: S506 - a safe loader
    return tree


@contextmanager
def replaced(values: Mapping[Path, float]) -> Iterator[None]:
    """Other values for some constants, as a fit without part of the evidence gives them.

    What was computed from the shipped ones and kept stays as it was: that is the caller's to drop.
    """
    before = dict(_replaced)
    _replaced.update(values)
    try:
        yield
    finally:
        _replaced.clear()
        _replaced.update(before)


def constant(*path: str) -> Constant:
    """The constant at a path such as ("engines", "vllm", "layer_us").

    Raises:
        MissingFact: the file has no such constant.
    """
    found = _shipped(path)
    if path in _replaced:
        return Constant(_replaced[path], found.kind, found.ref)
    return found


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


def peak_dtype(format_class: str) -> str:
    """Arithmetic whose dense peak bounds products of this format class."""
    dtype: str = _tree()["formats"][format_class]["peak"]
    return dtype
