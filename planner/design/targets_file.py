"""`--targets FILE.yaml`: several deployments, each with its loads, weight and limit."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hwprofiles.errors import InputError
from hwprofiles.provenance import WITH_FIELD_DOCS
from hwprofiles.yamlfile import parse_untrusted, validate
from planner.design.question import TargetAsked

_CONFIG = ConfigDict(
    frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS, allow_inf_nan=False
)
_FORM = (
    "give, for example, {targets: [{gpu: 8xH200, batch: [1, 32], context: [32768], weight: 2, "
    "max_tpot_ms: 20}]}"
)
Text = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(gt=0, le=1 << 30)]


class TargetRow(BaseModel):
    """One deployment."""

    model_config = _CONFIG

    gpu: Text
    """Card, with a count in front where there are several."""
    batch: Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]
    """Sequences over the deployment."""
    context: Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]
    """Tokens."""
    engine: Text | None = None
    """Serving engine, with an optional `==VERSION`."""
    tp: Annotated[int, Field(ge=1, le=1024)] | None = None
    """GPUs that share each layer."""
    workload: Text | None = None
    """What is generated."""
    quant: Text | None = None
    """Weight format."""
    kv_dtype: Text | None = None
    """Element type of the KV cache."""
    weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of its loads among those of their regime."""
    max_tpot_ms: Annotated[float, Field(gt=0)] | None = None
    """Longest time per token of one user, milliseconds."""


class TargetsFile(BaseModel):
    """All deployments."""

    model_config = _CONFIG

    targets: Annotated[tuple[TargetRow, ...], Field(min_length=1, max_length=64)]


def read_targets(path: Path) -> tuple[TargetAsked, ...]:
    """The deployments of a YAML file.

    Raises:
        InputError: it cannot be read or is not of that form.
    """
    try:
        rows = validate(TargetsFile, parse_untrusted(path), path).targets
    except InputError as error:
        raise InputError(f"{error}; {_FORM}") from error
    return tuple(
        TargetAsked(
            gpu=row.gpu,
            batch=tuple(dict.fromkeys(row.batch)),
            context=tuple(dict.fromkeys(row.context)),
            engine=row.engine,
            tp=row.tp,
            workload=row.workload,
            quant=row.quant,
            kv_dtype=row.kv_dtype,
            weight=row.weight,
            slo_s=None if row.max_tpot_ms is None else row.max_tpot_ms / 1e3,
        )
        for row in rows
    )
