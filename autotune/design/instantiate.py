"""A design's config.json made into a model on the meta device, where transformers is installed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.arch.hf import read_hf_config

NEGLIGIBLE = 1e-3
"""Norms and the like, which the planner does not count."""


def can_instantiate() -> bool:
    """Whether transformers and torch are installed."""
    return find_spec("transformers") is not None and find_spec("torch") is not None


def meta_params(config: Mapping[str, Any]) -> tuple[str, int]:
    """(class, parameters) of the model that transformers makes of a config, without memory."""
    import torch  # noqa: PLC0415 - optional, and seconds to import
    import transformers  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        read = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(read)
    return type(model).__name__, sum(p.numel() for p in model.parameters())


def check_config(config: Mapping[str, Any]) -> str:
    """What transformers makes of a config, in a sentence; empty where it is not installed."""
    if not can_instantiate():
        return ""
    ours = read_hf_config(config).params_total
    try:
        name, theirs = meta_params(config)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        return f"transformers makes no model of this config.json: {str(error)[:160]}"
    agrees = abs(theirs / ours - 1.0) <= NEGLIGIBLE
    verdict = "agrees" if agrees else f"differs from the planner's {ours / 1e9:.3f}B"
    return f"transformers makes {name} of {theirs / 1e9:.3f}B parameters of it, which {verdict}"
