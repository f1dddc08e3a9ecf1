"""Quality risk of a design: the class of evidence it falls in, never a predicted loss."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hwprofiles.provenance import WITH_FIELD_DOCS
from hwprofiles.yamlfile import parse_shipped, parse_untrusted, validate
from planner.cost.smooth import Floats
from planner.design.shape import AttentionFamily, Latent, Shape
from planner.design.space import widths

DATA = Path(__file__).parent / "data"
Span = tuple[float, float | None]
_CONFIG = ConfigDict(
    frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS, allow_inf_nan=False
)


class RiskClass(BaseModel):
    """Designs for which the evidence says the same."""

    model_config = _CONFIG

    title: Annotated[str, Field(max_length=40)]
    rank: Annotated[int, Field(ge=0, le=99)]
    """Order of risk, 0 lowest; classes of one rank are not ordered."""
    loss_nats: tuple[float, float]
    """Band of the difference in loss to multi-head attention of as many parameters, nats."""
    points: tuple[float, float]
    """Band of the difference in benchmark means, points."""
    says: Annotated[str, Field(max_length=400)]
    rows: tuple[str, ...] = ()
    """Ids of the supporting rows."""


class Condition(BaseModel):
    """Designs that a rule or statement is about; what is not stated does not matter."""

    model_config = _CONFIG

    attention: tuple[AttentionFamily, ...] | None = None
    group_size: Span | None = None
    kv_heads: Span | None = None
    head_dim: Span | None = None
    reduction: Span | None = None
    """KV bytes of an MHA of the same width over those of the design."""
    others_per_full: Span | None = None
    latent_heads: Span | None = None
    """Latent width over head width (MLA)."""
    dense_params: Span | None = None


class Rule(Condition):
    """The class of designs that meet a condition."""

    risk: Annotated[str, Field(alias="class", max_length=8)]


class Gap(Condition):
    """What no evidence covers."""

    says: Annotated[str, Field(max_length=300)]


class QualityTable(BaseModel):
    """`planner/design/data/quality.yaml`, or the file of `--quality-table`."""

    model_config = _CONFIG

    schema_version: Literal[1]
    recipe_noise_nats: Annotated[float, Field(ge=0)]
    """Loss by which two training recipes differ: designs within it are not ranked by quality."""
    recipe_noise_points: Annotated[float, Field(ge=0)]
    small_below_params: Annotated[float, Field(ge=0)] = 0.0
    """Models below are put one rank higher."""
    classes: dict[str, RiskClass]
    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]
    """In order; the first that fits names the class, and the last must fit everything else."""
    not_covered: tuple[Gap, ...] = ()
    mtp: str = ""
    """What is known of the quality of models trained with MTP layers."""
    ablation: str = ""
    """What to run where the band decides."""

    @model_validator(mode="after")
    def _classes_exist(self) -> "QualityTable":
        missing = {r.risk for r in self.rules} - set(self.classes)
        if missing:
            raise ValueError(
                f"rules name classes that are not listed: {', '.join(sorted(missing))}"
            )
        return self


@lru_cache(maxsize=1)
def shipped_table() -> QualityTable:
    """The table that ships with the planner."""
    return QualityTable.model_validate(parse_shipped(DATA / "quality.yaml"))


def read_table(path: Path | None) -> QualityTable:
    """The user's own table, or the shipped one.

    Raises:
        InputError: the file cannot be read or is not of that form.
    """
    return shipped_table() if path is None else validate(QualityTable, parse_untrusted(path), path)


@lru_cache(maxsize=1)
def evidence_rows() -> dict[str, dict[str, Any]]:
    """Supporting rows by id."""
    lines = (DATA / "quality_rows.jsonl").read_text("utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def facts_of(shape: Shape, params: Floats) -> dict[str, Floats]:
    """What conditions ask about, as arrays over a column."""
    mixers = shape.mixers
    hidden = np.ravel(np.asarray(shape.hidden_size, float))
    _, key = widths(mixers)
    full = mixers.full
    latent = isinstance(full, Latent)
    one = np.ones_like(params)
    cached = full.dims.kv_lora_rank + full.dims.rope_dim if isinstance(full, Latent) else 2 * key
    return {
        "group_size": one * mixers.group_size,
        "kv_heads": one * (1 if isinstance(full, Latent) else full.num_kv_heads),
        "head_dim": one * (full.dims.nope_dim if isinstance(full, Latent) else full.head_dim),
        "reduction": one * 2.0 * hidden / cached,
        "others_per_full": one * mixers.others_per_full,
        "latent_heads": one
        * (full.dims.kv_lora_rank / full.dims.nope_dim if isinstance(full, Latent) else 0),
        "dense_params": np.where(shape.routed is None and not latent, params, 0.0),
    }


def fits(condition: Condition, shape: Shape, facts: dict[str, Floats]) -> npt.NDArray[np.bool_]:
    """Which designs of a column a condition is about."""
    found = np.ones_like(facts["group_size"], dtype=bool)
    if condition.attention is not None and shape.mixers.family not in condition.attention:
        return ~found
    for name, values in facts.items():
        span: Span | None = getattr(condition, name)
        if span is not None:
            high = np.inf if span[1] is None else span[1]
            found &= (values >= span[0]) & (values <= high)
    return found


def classify(table: QualityTable, shape: Shape, params: Floats) -> npt.NDArray[np.str_]:
    """Class of each design of a column; the last rule's class where none fits."""
    facts = facts_of(shape, params)
    found = np.full(params.shape, table.rules[-1].risk, dtype="<U8")
    open_ = np.ones(params.shape, dtype=bool)
    for rule in table.rules:
        here = open_ & fits(rule, shape, facts)
        found[here] = rule.risk
        open_ &= ~here
    return np.where(params < table.small_below_params, _riskier(table, found), found)


def _riskier(table: QualityTable, found: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    """The next class in rank (the first of that rank)."""
    by_rank = sorted(table.classes, key=lambda c: table.classes[c].rank)

    def step(name: str) -> str:
        higher = [c for c in by_rank if table.classes[c].rank > table.classes[name].rank]
        return higher[0] if higher else name

    return np.array([step(str(c)) for c in found], dtype="<U8")


def gaps(table: QualityTable, shape: Shape, params: float) -> tuple[str, ...]:
    """What the evidence does not say about one design."""
    facts = facts_of(shape, np.array([float(params)]))
    return tuple(g.says for g in table.not_covered if bool(fits(g, shape, facts)[0]))


def middle_nats(risk: RiskClass) -> float:
    """Middle of the band, for telling classes apart by more than the recipe noise alone."""
    return (risk.loss_nats[0] + risk.loss_nats[1]) / 2.0
