"""`--acceptance FILE`: the user's own acceptance, from a curve, a metrics page or an engine's log.

Engines count differently; everything is converted here to E[L] = accepted draft tokens + 1:
vLLM and llama.cpp counters give 1 + accepted/drafts; SGLang's accept length includes the bonus
token, and its accept rate has had two definitions (accepted/D, and E[L]/(D+1) before), told apart
by which of them gives a whole D.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from hwprofiles.errors import InputError, reason
from planner.acceptance.constants import (
    curve_from_tokens_per_round,
    family_decay,
)
from planner.acceptance.counts import RoundCounts, counts_from_log, counts_from_metrics
from planner.acceptance.curve import AcceptanceCurve, curve_from_positions
from planner.acceptance.iteration_stats import KEY, counts_from_iterations

MAX_BYTES = 10_000_000
"""Largest file that is read."""
MOST = 1e12
"""Numbers beyond are not believed."""
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORMS = (
    "give {tokens_per_round: 2.9, draft_len: 4} or {positions: [0.8, 0.6, 0.5]} as JSON or YAML, "
    "a saved /metrics page of vLLM, SGLang, TensorRT-LLM or llama.cpp, or the engine's log"
)


def read_acceptance(path: Path, *, family: str = "eagle3") -> AcceptanceCurve:
    """The curve that a file states or counts; `family` lends the decay beyond what was measured.

    Raises:
        InputError: unreadable, too large, or nothing in it counts accepted drafts.
    """
    text = _read(path)
    if "spec_decode_num_drafts" in text or "sglang:spec_" in text:
        return _measured(counts_from_metrics(text, str(path)), family, f"metrics page {path}")
    if KEY in text:
        return _measured(counts_from_iterations(text, str(path)), family, f"metrics of {path}")
    if path.suffix.lower() in {".json", ".yaml", ".yml"} or text.lstrip()[:1] == "{":
        return _stated(_mapping(text, path), family, path)
    counts = counts_from_log(text, str(path))
    if counts is not None:
        return _measured(counts, family, f"log {path}")
    raise InputError(f"{path} holds no acceptance that is understood: {_FORMS}")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:  # a pipe has no size: the read itself is bounded
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: no file system takes such a name
        raise InputError(f"cannot read {path} ({reason(error)}): {_FORMS}") from error
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{path} has more than {MAX_BYTES} bytes, the limit: cut the log to its last lines"
        )
    return data.decode("utf-8-sig", errors="replace")


def _mapping(text: str, path: Path) -> Mapping[str, Any]:
    if len(text) > 100_000:
        raise InputError(f"{path} is too long for a stated curve: {_FORMS}")
    if text.count("*") + text.count("&") > 20:
        raise InputError(f"{path} uses YAML anchors, which a curve does not need: {_FORMS}")
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, in C
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{path} is neither JSON nor YAML: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} must be a mapping: {_FORMS}")
    return data


def _stated(data: Mapping[str, Any], family: str, path: Path) -> AcceptanceCurve:
    share = _number(data.get("draft_share", 1.0), "draft_share", path)
    if "positions" in data:
        raw = data["positions"]
        if not isinstance(raw, Sequence) or isinstance(raw, str) or len(raw) > 128:
            raise InputError(f"positions in {path} must be a list of at most 128 numbers")
        curve = curve_from_positions(
            [_number(x, "positions", path) for x in raw],
            decay=family_decay(family),
            log_sd=0.05,
            source=f"per-position acceptance in {path}",
        )
    elif "tokens_per_round" in data:
        tokens = _number(data["tokens_per_round"], "tokens_per_round", path)
        if data.get("draft_len") is None:
            raise InputError(f"{path} states tokens_per_round without draft_len, the D of that run")
        length = _number(data["draft_len"], "draft_len (D of that run)", path)
        curve = curve_from_tokens_per_round(family, tokens, int(length))
    else:
        raise InputError(f"{path} states no acceptance: {_FORMS}")
    return replace(curve, kind="measured", source=f"{path}: {curve.source}", draft_share=share)


def _number(value: object, name: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MOST < value < MOST:
        raise InputError(f"{name} in {path} must be a finite number, got {str(value)[:60]!r}")
    return float(value)


def _measured(counts: RoundCounts, family: str, what: str) -> AcceptanceCurve:
    source = f"{what}: {counts.describe()}"
    log_sd = counts.log_sd()
    if counts.survival:
        curve = curve_from_positions(
            counts.survival, decay=family_decay(family), log_sd=log_sd, source=source
        )
    else:
        curve = replace(
            curve_from_tokens_per_round(
                family, counts.tokens_per_drafted_round, counts.draft_len, log_sd=log_sd
            ),
            kind="measured",
            source=source,
        )
    return replace(curve, draft_share=counts.draft_share, mean_draft_len=counts.mean_draft_len)
