"""The question of `recommend` and `explain`, as typed: None means that the planner chooses."""

from dataclasses import dataclass

from planner.errors import InputError


@dataclass(frozen=True, slots=True)
class Question:
    """What to plan for. Free text goes through the same look-ups everywhere."""

    model: str
    """Catalog name, hub id, config.json, checkpoint folder or .gguf."""
    gpu: str
    """GPU name, with a count in front where there are several: `2x3090`."""
    host: str | None = None
    """Host profile or processor with its memory: `EPYC 7302P, 256 GB`."""
    engine: str | None = None
    """vllm, sglang, trtllm or llama.cpp, with an optional `==VERSION`."""
    drafter: str | None = None
    """Drafter family, or `none`."""
    drafter_path: str | None = None
    """The user's own drafter: folder, config or .gguf."""
    drafter_device: str | None = None
    """Where the drafter runs when not on the target's GPUs: `cpu` or a GPU name."""
    batch: tuple[int, ...] | None = None
    """Sequences over the whole deployment."""
    context: tuple[int, ...] | None = None
    """Tokens."""
    concurrency: int | None = None
    """Requests in flight."""
    qps: float | None = None
    """Requests per second."""
    prompt_len: int | None = None
    """Tokens of the prompt, mean."""
    output_len: int | None = None
    """Tokens of the answer, mean."""
    max_ttft_s: float | None = None
    """Longest time to the first token."""
    max_tpot_s: float | None = None
    """Longest mean time between tokens of one answer."""
    workload: str | None = None
    """Workload class or free text."""
    temperature: float | None = None
    """Sampling temperature."""
    quant: str | None = None
    """Weight format: `fp8`, `w4a16`, `Q4_K_M`."""
    kv_dtype: str | None = None
    """Element type of the KV cache."""
    tp: int | None = None
    """GPUs that share each layer."""
    offload: str | None = None
    """`auto`, or what stays in host memory: `layers=12`, `experts=30`."""
    power_limit_w: float | None = None
    """Power cap of each GPU, W."""
    acceptance: str | None = None
    """File with measured acceptance."""
    tokens_per_round: float | None = None
    """E[L] to use instead of any prior."""
    measured_draft_len: int | None = None
    """D at which that was measured; None for the one that the drafter is usually served with."""
    draft_len: int | None = None
    """The only D that comes into question."""
    calibration: str | None = None
    """File, or `none` for the shipped constants alone; None looks in the user data directory."""
    tile_rows: int = 128
    """Top of the tile ladder that G*(1+D) may fill, rows."""
    max_vram_mib: float | None = None
    """Memory of each GPU that may be used, MiB."""
    set_aside: tuple[tuple[str, str], ...] = ()
    """Drafters not to offer, each with the reason: those that the engine's rules refused."""
    seed: int = 0
    """Seed of everything that is sampled."""

    def __post_init__(self) -> None:
        """Refuse what a caller wrote as the command line would take it.

        Raises:
            InputError: batch or context is not a sequence of whole numbers from 1.
        """
        for name, values in (("batch", self.batch), ("context", self.context)):
            if values is None:
                continue
            if not isinstance(values, (tuple, list)) or not all(map(_counts, values)):
                raise InputError(
                    f"Question({name}={ascii(values)[:60]}) takes whole numbers from 1 in a tuple; "
                    f"write for example {name}={_EXAMPLES[name]}"
                )
            object.__setattr__(self, name, tuple(values))  # a list could not be looked up again


_EXAMPLES = {"batch": "(1, 4)", "context": "(4096, 32768)"}


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
