"""One `predict` line, checked and put into the planner's words."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hwprofiles.calibration import EMPTY, Shelf
from hwprofiles.errors import InputError
from planner.drafters.records import FAMILIES, Family
from planner.drafters.spelling import family_named
from planner.predict.fields import integer, number, text
from planner.search.setup import Wanted

KNOWN = frozenset(
    [
        "id",
        "model",
        "quant",
        "kv_dtype",
        "gpu",
        "num_gpus",
        "tp",
        "ep",
        "dp_attention",
        "host",
        "engine",
        "engine_version",
        "drafter",
        "drafter_id",
        "draft_len",
        "tree",
        "batch",
        "context_len",
        "workload",
        "temperature",
        "tokens_per_round",
        "draft_share",
        "power_limit_w",
        "offload",
        "acceptance",
    ]
)
_OTHER_NAMES = {
    "d": "draft_len",
    "k": "draft_len",
    "num_speculative_tokens": "draft_len",
    "context": "context_len",
    "ctx": "context_len",
    "concurrency": "batch",
    "card": "gpu",
    "gpus": "num_gpus",
    "count": "num_gpus",
    "kv_cache_dtype": "kv_dtype",
    "power_limit": "power_limit_w",
    "quantization": "quant",
    "method": "drafter",
}
"""What the command line and engines call fields of a line -> the field."""
TREE_KEYS = ("depth", "steps", "topk", "verify_tokens", "ddtree_budget")
DEFAULT_DRAFT_LEN = 3
"""D of a line that names a drafter and none."""
DEFAULT_CONTEXT = 1024
"""Context of a line that states none: short prompts, as most published measurements use."""


@dataclass(frozen=True, slots=True)
class SetupKey:
    """What lines must share to share a deployment and a drafter."""

    model: str
    quant: str | None
    kv_dtype: str | None
    gpu: str
    host: str | None
    engine: str | None
    drafter: Family
    drafter_id: str | None
    wanted: Wanted
    shelf: Shelf = EMPTY
    """Calibrations to choose from; a shelf equals itself alone, so no two share what was kept."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One line."""

    setup: SetupKey
    draft_len: int
    rows: float
    """Verified tokens of a sequence: 1 + D, or the nodes of a tree with its root."""
    branches: float
    tree_nodes: int | None
    batch: int
    context_len: int
    workload: str | None
    temperature: float | None
    tokens_per_round: float | None
    draft_share: float | None
    positions: tuple[float, ...] | None
    """Measured survival by position, where the line carries it."""
    warnings: tuple[str, ...]
    hidden_origins: frozenset[str] = frozenset()
    """Published acceptance to do without; set by the planner's own tests, never by a line."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A draft tree: levels, verified nodes (root included) and rows of one draft pass."""

    depth: int
    rows: float
    branches: float


def _tree(line: Mapping[str, Any], draft_len: int | None) -> Tree | None:
    raw = line.get("tree")
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise InputError("field 'tree' must be an object with depth|steps, topk, verify_tokens")
    values = {k: integer(raw, k, 0, 0) for k in TREE_KEYS}
    topk = max(1, values["topk"])
    nodes = values["verify_tokens"] or values["ddtree_budget"]
    depth = values["depth"] or values["steps"] or draft_len or 0
    if not depth and not nodes:
        return None
    if not depth:
        depth = min(16, max(1, round(nodes**0.5) + 2))
    rows = float(nodes or 1 + depth * topk)
    return Tree(depth, max(rows, 2.0), float(topk))


def _positions(line: Mapping[str, Any]) -> tuple[float, ...] | None:
    raw = line.get("acceptance")
    if raw is None:
        return None
    if isinstance(raw, Mapping):
        raw = raw.get("positions")
    if not isinstance(raw, list) or not 0 < len(raw) <= 128:
        raise InputError(
            "field 'acceptance' must be a list of survival shares by position (or an object with "
            "'positions'); a file goes to recommend --acceptance"
        )
    shares = tuple(number({"share": x}, "share", 0.0) or 0.0 for x in raw)
    if any(x > 1.0 for x in shares) or any(b > a for a, b in pairwise(shares)):
        raise InputError("acceptance by position must lie in 0..1 and never rise")
    return shares


def _family(line: Mapping[str, Any]) -> Family:
    name = text(line, "drafter", "none")
    family = family_named(name)
    if family is not None:
        return family
    raise InputError(f"drafter {name!r} is not one of {', '.join(FAMILIES)}")


def _optional(line: Mapping[str, Any], key: str, low: int = 1) -> int | None:
    return integer(line, key, low=low) if line.get(key) is not None else None


def _offload(line: Mapping[str, Any]) -> str | None:
    raw = line.get("offload")
    if raw is None or raw is False:
        return None
    if isinstance(raw, Mapping):
        for key in ("experts", "layers"):
            if raw.get(key) is not None:
                return f"{key}={integer(raw, key, None, 0)}"
    return text(line, "offload")


def _engine(line: Mapping[str, Any]) -> str | None:
    name = text(line, "engine", "")
    version = text(line, "engine_version", "")
    return f"{name}=={version}" if name and version else name or None


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a line asks to be drafted."""

    family: Family
    draft_len: int
    tree: Tree | None
    warnings: tuple[str, ...] = ()


def _draft(line: Mapping[str, Any]) -> _Draft:
    """Family, D and tree; nothing is drafted where one of the first two says so."""
    family, draft_len = _family(line), _optional_len(line)
    tree = _tree(line, draft_len)
    if tree is not None:
        draft_len = tree.depth
    if draft_len is None:
        draft_len = 0 if family == "none" else DEFAULT_DRAFT_LEN
    elif draft_len and family == "none":
        said = "no drafter is named: the plain decode step is priced"
        return _Draft("none", 0, None, (said,))
    if family == "none" or draft_len == 0:
        return _Draft("none", 0, None)
    return _Draft(family, draft_len, tree)


def _share(line: Mapping[str, Any]) -> float | None:
    share = number(line, "draft_share", None, 0.0)
    if share is not None and share > 1.0:
        raise InputError(f"draft_share {share:g} must lie in 0..1")
    return share


def scenario(line: Mapping[str, Any], shelf: Shelf = EMPTY) -> Scenario:
    """The line in the planner's words.

    Raises:
        InputError: a field is absent, of the wrong type or impossible.
    """
    draft = _draft(line)
    tree = draft.tree
    key = _setup_key(
        text(line, "model"),
        text(line, "quant", "") or None,
        text(line, "kv_dtype", "") or None,
        text(line, "gpu"),
        text(line, "host", "") or None,
        _engine(line),
        draft.family,
        text(line, "drafter_id", "") or None,
        _wanted(line),
        shelf,
    )
    return Scenario(
        setup=key,
        draft_len=draft.draft_len,
        rows=tree.rows if tree else 1.0 + draft.draft_len,
        branches=tree.branches if tree else 1.0,
        tree_nodes=int(tree.rows) if tree else None,
        batch=integer(line, "batch", 1),
        context_len=integer(line, "context_len", DEFAULT_CONTEXT),
        workload=text(line, "workload", "") or None,
        temperature=number(line, "temperature", None),
        tokens_per_round=number(line, "tokens_per_round", None, 1.0),
        draft_share=_share(line),
        positions=_positions(line),
        warnings=(*(_ignored(key) for key in _unknown(line)), *draft.warnings),
    )


def _unknown(line: Mapping[str, Any]) -> list[str]:
    return sorted(str(k)[:40] for k in line.keys() - KNOWN)


@lru_cache(maxsize=1024)
def _ignored(key: str) -> str:
    """What to say of a key that no line has, with the one that was probably meant."""
    folded = key.lower().replace("-", "_")
    meant = _OTHER_NAMES.get(folded) or next(iter(get_close_matches(folded, KNOWN, 1)), None)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return f"unknown field {key!r} ignored{hint}"


@lru_cache(maxsize=16384)
def _setup_key(*parts: Any) -> SetupKey:
    """One object for equal parts, so that later look-ups compare identities first."""
    return SetupKey(*parts)


def _wanted(line: Mapping[str, Any]) -> Wanted:
    """Placement as stated; batch and context stay out unless offload depends on them."""
    offload = _offload(line)
    return Wanted(
        num_gpus=_optional(line, "num_gpus"),
        tp=_optional(line, "tp"),
        expert_parallel=_optional(line, "ep", 0) or None,
        attention_replicas=_optional(line, "dp_attention", 0) or None,
        batch=1 if offload is None else integer(line, "batch", 1),
        context_len=1 if offload is None else integer(line, "context_len", DEFAULT_CONTEXT),
        offload=offload,
        power_limit_w=number(line, "power_limit_w", None, 1.0),
    )


def _optional_len(line: Mapping[str, Any]) -> int | None:
    if line.get("draft_len") is None:
        return None
    value = integer(line, "draft_len", None, 0)
    if value > 63:
        raise InputError(f"draft_len {value} is above 63, the longest draft the tables cover")
    return value
