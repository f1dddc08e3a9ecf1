"""The question of `recommend` and `explain`, as typed: None means that the planner chooses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """What to plan for. Free text goes through the same look-ups everywhere."""

    model: str
    """Catalog name, hub id, config.json, checkpoint folder or .gguf."""
    gpu: str
    """GPU name, with a count in front where there are several: `2x3090`."""
    host: str | None = None
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
    quant: str | None = None
    kv_dtype: str | None = None
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
