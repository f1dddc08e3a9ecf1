"""Where a design starts: a published shape, the user's config.json, or the nearest known one."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from hwprofiles.paths import typed_path
from planner.arch.catalog import load_catalog_model
from planner.arch.catalog_data import catalog_index, catalog_row
from planner.arch.json_file import read_json_object
from planner.arch.load import load_model
from planner.arch.names import readings
from planner.arch.records import ModelArch
from planner.design.config import shape_of
from planner.design.shape import Shape
from planner.errors import InputError

DENSE = (
    "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B",
    "Qwen/Qwen3-32B", "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Meta-Llama-3.1-405B",
)  # fmt: skip
ROUTED = ("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B", "deepseek-ai/DeepSeek-V3")
"""Published shapes that a bare budget is compared with: the nearest in parameters."""


@dataclass(frozen=True, slots=True)
class Start:
    """A published or given model, and its decision variables where the space holds them."""

    arch: ModelArch
    config: Mapping[str, Any]
    """Its config.json."""
    shape: Shape


def nearest(params: float, active: float | None) -> str:
    """Catalog name of the published shape nearest to a budget."""
    names = DENSE if active is None else ROUTED

    def distance(name: str) -> float:
        arch = load_catalog_model(name)
        far = abs(log(arch.params_total / params))
        return far + (abs(log(arch.params_active / active)) if active else 0.0)

    return min(names, key=distance)


def start_from(model: str) -> Start:
    """The model, with its shape.

    Raises:
        InputError: unknown, not read from a config, or with mixers outside the space.
    """
    arch = load_model(model)
    config = _config(model)
    if config is None:
        raise InputError(
            f"{model} was not read from a config.json, so its shape cannot be varied; give a "
            "config.json or a catalog model"
        )
    return Start(arch, config, shape_of(arch, config))


def _config(model: str) -> Mapping[str, Any] | None:
    path = typed_path(model.strip())
    if path.is_dir():
        path = path / "config.json"
    if path.suffix == ".json" and path.is_file():
        return _language_part(read_json_object(path))
    keys: dict[str, str] = catalog_index()["keys"]
    for key, _ in readings(model.strip()):
        if key in keys:
            return _language_part(catalog_row(keys[key].lstrip("~"))["config"])
    return None


def _language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) else config
