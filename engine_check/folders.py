"""Model folders with a config.json and nothing else: targets and the drafters that fit them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "tests" / "data" / "engines"
BLOCKS = {"dflash": 16, "dspark": 7}
"""Trained blocks of the made-up block drafters; DFlash counts the anchor."""


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of model, and how it is planned for."""

    kind: str
    config: str
    gpu: str
    families: tuple[str, ...]
    quant: str | None = None
    kv_dtype: str | None = None
    tp: int | None = None
    offload: str | None = None
    host: str | None = None
    batches: tuple[int, ...] = (1, 64)


_REMOTE_CODE = """\
from transformers import Qwen2Config


class {own}(Qwen2Config):
    model_type = "{model_type}"
"""
"""What such a repository brings: the config class of a Qwen2 with extra keys."""
_ALL = ("external", "eagle3", "dflash", "dspark", "ngram")
TARGETS = (
    Target("dense", "qwen3-8b", "H100", (*_ALL, "pard", "peagle")),
    Target("dense with MTP", "mimo-7b", "H100", ("mtp",)),
    Target("dense, FP8 weights and cache", "qwen3-8b", "H100", _ALL, "fp8", "fp8"),
    Target("dense, two GPUs by TP", "qwen3-8b", "2xH100", _ALL, tp=2),
    Target("dense, two GPUs by layers", "qwen3-8b", "2xH100", _ALL, tp=1),
    Target("MoE", "qwen3-30b-a3b", "H100", (*_ALL, "pard", "peagle")),
    Target(
        "MoE, experts in the memory of two sockets",
        "qwen3-30b-a3b",
        "3060",
        ("external", "eagle3", "ngram"),
        offload="auto",
        host="dual EPYC 7642, 16 channels, 512 GB",
        batches=(1,),
    ),
    Target("MoE with MTP", "glm-4.5-air", "4xH200", ("mtp",)),
    Target("MLA", "deepseek-v3-lite", "H100", ("mtp", *_ALL)),
    Target("hybrid", "qwen3.5-27b", "H200", ("mtp", *_ALL)),
    Target("hybrid, two GPUs by layers", "qwen3.5-27b", "2xH100", ("mtp", "ngram"), tp=1),
)
VARIANT_OF = {"pard": "external", "peagle": "eagle3"}
"""Drafters that the planner knows as a variant of a family."""


def target_folder(work: Path, target: Target) -> Path:
    """The target's folder."""
    config = json.loads((DATA / f"{target.config}.json").read_text("utf-8"))
    folder = _write(work / "models" / target.config, config)
    for name in config.get("auto_map", {}).values():
        module, _, own = name.partition(".")
        text = _REMOTE_CODE.format(own=own, model_type=config["model_type"])
        (folder / f"{module}.py").write_text(text)
    return folder


def drafter_folder(work: Path, target: Target, family: str) -> Path | None:
    """A drafter of the family for the target; None where nothing of its own is loaded."""
    if family not in _MAKERS:
        return None
    config = json.loads((DATA / f"{target.config}.json").read_text("utf-8"))
    decoder = config.get("text_config", config)
    made = _MAKERS[family](decoder)
    return _write(work / "models" / f"{target.config}-{family}", made)


def _write(folder: Path, config: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return folder


def _llama(target: dict[str, Any], **own: Any) -> dict[str, Any]:
    """A Llama-like decoder of the target's width and vocabulary."""
    hidden = target["hidden_size"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_attention_heads": hidden // 128,
        "num_key_value_heads": max(1, hidden // 512),
        "head_dim": 128,
        "num_hidden_layers": 1,
        "vocab_size": target["vocab_size"],
        "max_position_embeddings": target["max_position_embeddings"],
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **own,
    }


def _external(target: dict[str, Any]) -> dict[str, Any]:
    return _llama(
        target,
        hidden_size=1024,
        intermediate_size=3072,
        num_attention_heads=16,
        num_key_value_heads=8,
        num_hidden_layers=12,
        tie_word_embeddings=True,
    )


def _eagle3(target: dict[str, Any]) -> dict[str, Any]:
    """The form that SpecForge writes."""
    return _llama(target, architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=32000)


def _block(target: dict[str, Any], kind: str, **section: Any) -> dict[str, Any]:
    layers = target["num_hidden_layers"]
    hooks = [1 + round(i * (layers - 3) / 4) for i in range(5)]
    return _llama(
        target,
        model_type="qwen3",
        num_hidden_layers=5,
        num_target_layers=layers,
        block_size=BLOCKS[kind],
        layer_types=["full_attention"] * 5,
        attention_bias=False,
        rope_theta=1000000,
        sliding_window=None,
        use_sliding_window=False,
        dflash_config={
            "target_layer_ids": hooks,
            "mask_token_id": target["vocab_size"] - 1,
            **section,
        },
    )


def _dflash(target: dict[str, Any]) -> dict[str, Any]:
    return {**_block(target, "dflash"), "architectures": ["DFlashDraftModel"]}


def _dspark(target: dict[str, Any]) -> dict[str, Any]:
    """The form of DeepSpec's Qwen3 drafts."""
    config = _block(
        target,
        "dspark",
        projector_type="dspark",
        markov_rank=256,
        markov_head_type="vanilla",
        enable_confidence_head=True,
        confidence_head_with_markov=True,
    )
    return {**config, "architectures": ["Qwen3DSparkModel"]}


def _peagle(target: dict[str, Any]) -> dict[str, Any]:
    """The form of the speculators library."""
    layers = target["num_hidden_layers"]
    return {
        "architectures": ["PEagleSpeculator"],
        "speculators_model_type": "peagle",
        "speculators_version": "0.5.0",
        "draft_vocab_size": 32000,
        "mask_token_id": target["vocab_size"] - 1,
        "eagle_aux_hidden_state_layer_ids": [2, layers // 2, layers - 3],
        "transformer_layer_config": _llama(target, num_hidden_layers=4),
        "speculators_config": {
            "algorithm": "peagle",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 7}],
            "verifier": {"name_or_path": "target", "architectures": []},
        },
    }


def _pard(target: dict[str, Any]) -> dict[str, Any]:
    """A small model with a token that stands for what is still to be drafted."""
    return {**_external(target), "pard_token": target["vocab_size"] - 1}


_MAKERS = {
    "external": _external,
    "eagle3": _eagle3,
    "dflash": _dflash,
    "dspark": _dspark,
    "peagle": _peagle,
    "pard": _pard,
}
