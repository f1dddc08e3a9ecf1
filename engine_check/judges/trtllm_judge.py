"""TensorRT-LLM: the emitted YAML against its argument models, declared anew here.

usage: python trtllm_judge.py cases.json results.json
No package of TensorRT-LLM can be imported without its libraries, so the models below restate
tensorrt_llm/llmapi/llm_args.py at commit 0004396720: fields, defaults and validators of what is
emitted. This is a second reading of the same source and not the engine's own word.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]


class Strict(BaseModel):
    """StrictBaseModel: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class Graphs(Strict):
    """BaseCudaGraphConfig and DecodeCudaGraphConfig."""

    batch_sizes: list[int] | None = None
    max_batch_size: Whole = 0
    enable_padding: bool = False
    mode: Literal["decode"] = "decode"

    @model_validator(mode="after")
    def _largest(self) -> "Graphs":
        if self.batch_sizes and self.max_batch_size not in (0, max(self.batch_sizes)):
            raise ValueError("max_batch_size must equal max(batch_sizes)")
        return self


class KvCache(Strict):
    """KvCacheConfig, the fields that are emitted."""

    dtype: Literal["auto", "float16", "bfloat16", "float32", "fp8", "fp8_ds_mla", "nvfp4"] = "auto"
    free_gpu_memory_fraction: Annotated[float, Field(ge=0, le=1)] = 0.9
    max_tokens: int | None = None
    enable_block_reuse: bool = True


class Decoding(Strict):
    """DecodingBaseConfig."""

    max_draft_len: Whole | None = None
    max_total_draft_tokens: int | None = None
    speculative_model: str | None = None
    max_concurrency: Positive | None = None
    draft_len_schedule: dict[int, int] | None = None
    acceptance_rate_window_size: Whole | None = None
    acceptance_rate_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    use_rejection_sampling: bool = False

    @model_validator(mode="after")
    def _schedule(self) -> "Decoding":
        schedule, most = self.draft_len_schedule, self.max_draft_len
        if schedule is None:
            return self
        if self.max_concurrency is not None:
            raise ValueError("max_concurrency and draft_len_schedule are mutually exclusive")
        if min(schedule) < 1 or min(schedule.values()) < 0:
            raise ValueError("batch size threshold must be >= 1, draft length >= 0")
        if most is not None and schedule[min(schedule)] != most:
            raise ValueError("the smallest batch-size key must map to max_draft_len")
        if most is not None and max(schedule.values()) > most:
            raise ValueError("all draft lengths must be <= max_draft_len")
        return self


def _needs(config: Decoding, *, model: bool) -> None:
    if not config.max_draft_len:
        raise ValueError("max_draft_len must be > 0")
    if model and config.speculative_model is None:
        raise ValueError("Draft model must be provided")


class Eagle3(Decoding):
    """Eagle3DecodingConfig."""

    decoding_type: Literal["Eagle3"]

    @model_validator(mode="after")
    def _complete(self) -> "Eagle3":
        _needs(self, model=True)
        return self


class Mtp(Decoding):
    """MTPDecodingConfig."""

    decoding_type: Literal["MTP"]

    @model_validator(mode="after")
    def _complete(self) -> "Mtp":
        _needs(self, model=False)
        return self


class DraftTarget(Decoding):
    """DraftTargetDecodingConfig."""

    decoding_type: Literal["Draft_Target"]

    @model_validator(mode="after")
    def _complete(self) -> "DraftTarget":
        _needs(self, model=True)
        return self


class Pard(Decoding):
    """PARDDecodingConfig."""

    decoding_type: Literal["PARD"]
    mask_token_id: int | None = None


class DFlash(Decoding):
    """DFlashDecodingConfig."""

    decoding_type: Literal["DFlash"]
    mask_token_id: int | None = None
    target_layer_ids: list[int] | None = None
    attention_backend: Literal["VANILLA", "TRTLLM"] = "VANILLA"

    @model_validator(mode="after")
    def _complete(self) -> "DFlash":
        _needs(self, model=True)
        return self


class DSpark(DFlash):
    """DSparkDecodingConfig; the block is read from the draft's config.json."""

    decoding_type: Literal["DSpark"]  # type: ignore[assignment]
    block_size: Positive | None = None

    @model_validator(mode="after")
    def _block(self) -> "DSpark":
        file = Path(self.speculative_model or "") / "config.json"
        block = self.block_size
        if block is None and file.exists():
            raw = json.loads(file.read_text())
            block = raw.get("dspark_block_size") or raw.get("block_size")
        if block not in (None, self.max_draft_len):
            raise ValueError("DSpark block_size must equal max_draft_len")
        return self


class NGram(Decoding):
    """NGramDecodingConfig."""

    decoding_type: Literal["NGram"]
    max_matching_ngram_size: Positive = 2
    is_keep_all: bool = True
    is_use_oldest: bool = True
    is_public_pool: bool = True

    @model_validator(mode="after")
    def _complete(self) -> "NGram":
        _needs(self, model=False)
        return self


class SuffixAutomaton(Decoding):
    """SADecodingConfig."""

    decoding_type: Literal["SA"]
    max_matching_ngram_size: int = -1
    enable_global_pool: bool = False
    global_pool_size: Positive | None = None

    @model_validator(mode="after")
    def _complete(self) -> "SuffixAutomaton":
        _needs(self, model=False)
        if self.max_matching_ngram_size == 0:
            raise ValueError("max_matching_ngram_size must be > 0 or -1")
        return self


Speculative = Annotated[
    Eagle3 | Mtp | DraftTarget | Pard | DFlash | DSpark | NGram | SuffixAutomaton,
    Field(discriminator="decoding_type"),
]


class LlmArgs(Strict):
    """BaseLlmArgs and TorchLlmArgs, the fields that are emitted."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    max_batch_size: int = 2048
    max_num_tokens: int = 8192
    max_seq_len: int | None = None
    enable_chunked_prefill: bool = False
    disable_overlap_scheduler: bool = False
    enable_iter_perf_stats: bool = False
    return_perf_metrics: bool = False
    kv_cache_config: KvCache = Field(default_factory=KvCache)
    cuda_graph_config: Graphs | None = Field(default_factory=Graphs)
    speculative_config: Speculative | None = None


def judge(case: dict[str, Any]) -> dict[str, Any]:
    """accepted or refused (with the model's words)."""
    config = yaml.safe_load((Path(case["folder"]) / case["argv"][-1]).read_text())
    try:
        args = LlmArgs.model_validate(config)
    except ValidationError as error:
        return {"verdict": "refused", "says": " ".join(str(error).split())[:600]}
    spec = args.speculative_config
    on = bool(spec and spec.max_draft_len)
    if on != (case["draft_len"] > 0):
        return {"verdict": "changed", "says": f"speculation {on} for D = {case['draft_len']}"}
    return {"verdict": "accepted", "says": ""}


if __name__ == "__main__":
    from answers import answer  # beside this script; the tests import the models alone

    answer("trtllm", "own models of commit 0004396720", judge)
