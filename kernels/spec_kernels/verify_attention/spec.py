"""What a verification kernel computes and with which tile: plain numbers, no torch.

One KV head serves G query heads, so the (1+D) tokens of a sequence bring G*(1+D) query rows to it.
They are packed into tiles of `block_m` rows; rows beyond the largest tile take several.
"""

from dataclasses import dataclass
from typing import Literal

from spec_kernels.arch import arch_limits
from spec_kernels.errors import UnsupportedShape

Dtype = Literal["bf16", "fp16", "fp32"]
KvDtype = Literal["same", "fp8_e4m3"]
"""Of the KV cache: as the queries, or float8 with a scale."""
Scales = Literal["head", "token"]
"""head: one for all tokens of a KV head (or for everything); token: one for each token and head."""
FP8_CAPABILITY = 89
"""From here on an instruction converts float8; before, the kernel does so with integers."""
Mask = Literal["causal", "block", "tree"]
"""causal: earlier tokens and itself; block: all of it, as block drafters attend; tree: what a row
of bits says."""

HEAD_DIMS = (64, 80, 96, 128, 192, 256, 512)
ROPE_DIMS = (0, 64)
TILES = (16, 32, 64, 128)
PAGE_SIZES = (1, 65536)
"""Smallest and largest page, tokens; anything between, powers of two or not."""
MAX_SPLITS = 128
TREE_WORDS = (0, 1, 2, 4)
"""Words of 32 bits that a row of a tree mask may have; a few classes keep the builds few."""
ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True, slots=True)
class VerifySpec:
    """The part of a problem that a kernel is compiled for; G, D, batch and context are not."""

    head_dim: int
    page_size: int
    """Tokens of one page of the KV cache."""
    dtype: Dtype = "bf16"
    """Of queries and output; fp32 is for checking, it is never built."""
    kv_dtype: KvDtype = "same"
    kv_scales: Scales = "head"
    """Granularity of the scales of a float8 cache."""
    mask: Mask = "causal"
    """What a token of the block sees of the block; of the prefix it sees all."""
    rope_dim: int = 0
    """Latent attention (MLA): a key is `head_dim` latent numbers and this many rotary ones, and
    its value is the latent part. 0 where keys and values are apart."""
    tree_words: int = 0
    """Words of 32 bits in a row of the tree mask: 1, 2 or 4; 0 where there is none."""
    window: bool = False
    """Whether a row sees a limited number of tokens before it; how many is a run-time argument."""
    softcap: bool = False
    """Whether scores are bounded by a hyperbolic tangent."""
    sinks: bool = False
    """Whether each head has a logit without a value; the merge adds it."""

    def __post_init__(self) -> None:
        if self.head_dim not in HEAD_DIMS:
            raise UnsupportedShape(
                f"head_dim {self.head_dim} is not one of {', '.join(map(str, HEAD_DIMS))}"
            )
        if self.rope_dim not in ROPE_DIMS:
            raise UnsupportedShape(
                f"rope_dim {self.rope_dim} is not one of {', '.join(map(str, ROPE_DIMS))}"
            )
        if not PAGE_SIZES[0] <= self.page_size <= PAGE_SIZES[1]:
            raise UnsupportedShape(
                f"page_size {self.page_size} is outside {PAGE_SIZES[0]}..{PAGE_SIZES[1]} tokens"
            )
        if (self.mask == "tree") != (self.tree_words > 0) or self.tree_words not in TREE_WORDS:
            raise UnsupportedShape(
                f"a tree mask takes {', '.join(map(str, TREE_WORDS[1:]))} words a row (up to "
                f"{32 * TREE_WORDS[-1]} tokens) and no other mask any; got {self.tree_words} words "
                f"and mask {self.mask}"
            )
        if self.dtype not in ELEMENT_BYTES:
            raise UnsupportedShape(
                f"dtype {self.dtype} is not one of {', '.join(ELEMENT_BYTES)}; convert the queries"
            )

    @property
    def element_bytes(self) -> int:
        """Of one element of the KV cache."""
        return 1 if self.kv_dtype == "fp8_e4m3" else ELEMENT_BYTES[self.dtype]

    @property
    def token_bytes(self) -> int:
        """Cache of one token and KV head: key and value, or the one latent key."""
        columns = self.head_dim + self.rope_dim if self.rope_dim else 2 * self.head_dim
        return columns * self.element_bytes

    @property
    def label(self) -> str:
        """Short name for files: the shape and whatever departs from plain attention."""
        flags = {
            f"mla{self.rope_dim}": self.rope_dim > 0,
            self.kv_dtype: self.kv_dtype != "same",
            f"{self.kv_scales}scales": self.kv_scales != "head",
            f"{self.mask}{self.tree_words or ''}": self.mask != "causal",
            "window": self.window,
            "softcap": self.softcap,
            "sinks": self.sinks,
        }
        features = "".join(f"_{name}" for name, present in flags.items() if present)
        return f"hd{self.head_dim}_p{self.page_size}_{self.dtype}{features}"

    @property
    def padded_head_dim(self) -> int:
        """Head dim rounded up to a power of two, as the tile holds it."""
        return 1 << (self.head_dim - 1).bit_length()


@dataclass(frozen=True, slots=True)
class TileConfig:
    """How one thread block works: the knobs that the search turns."""

    block_m: int
    """Query rows of a tile."""
    block_n: int
    """KV tokens of one step."""
    num_warps: int
    num_stages: int
    """Depth of the load pipeline."""


def ladder(capability: int, spec: VerifySpec) -> tuple[int, ...]:
    """Tile heights that are legal for a compute capability, rows, smallest first.

    A 128-row tile of 256 columns is clean only where the accumulator need not stay in the
    registers of mma.sync (wgmma, tcgen05): elsewhere it spills, and it passes the shared memory
    that 8.6, 8.9 and 12.x offer. A float8 cache takes a step in two forms, which costs a rung.
    Without matrix instructions (7.5) the operands of a product lie in registers: 32 rows. Rows
    beyond the last step take several tiles.

    Raises:
        UnsupportedShape: no tile of this shape is clean for the compute capability.
    """
    matrix_rows = arch_limits(capability).matrix_rows
    columns = spec.padded_head_dim
    if matrix_rows == 0:
        _check_without_matrix(capability, spec)
        return TILES[:2]
    wide = matrix_rows >= 64
    if spec.kv_dtype == "fp8_e4m3":
        tallest = 128 if capability >= FP8_CAPABILITY else 64
        top = 128 if columns <= tallest else 64 if columns <= 256 else 32
    else:
        top = 128 if columns <= (256 if wide else 128) else 64
    return tuple(tile for tile in TILES if tile <= top)


def _check_without_matrix(capability: int, spec: VerifySpec) -> None:
    if spec.padded_head_dim > 256 or spec.dtype == "bf16":
        raise UnsupportedShape(
            f"compute capability {capability // 10}.{capability % 10} has no bf16 arithmetic, and "
            f"without tensor-core code tiles of more than 256 columns spill; got {spec.dtype} and "
            f"head dim {spec.head_dim}"
        )


def tile_for(capability: int, spec: VerifySpec, query_rows: int) -> int:
    """Smallest tile that takes all rows of a KV head, or the largest there is."""
    if query_rows < 1:
        raise UnsupportedShape(f"{query_rows} query rows; G and 1+D are at least 1")
    heights = ladder(capability, spec)
    return next((tile for tile in heights if tile >= query_rows), heights[-1])


def default_config(capability: int, spec: VerifySpec, query_rows: int) -> TileConfig:
    """A configuration that compiles without spills within the shared memory of every arch.

    The support matrix holds the proof; the build searches for a faster one.
    """
    block_m = tile_for(capability, spec, query_rows)
    if arch_limits(capability).matrix_rows == 0:
        return TileConfig(block_m, block_n=16, num_warps=8, num_stages=1)
    wide = spec.padded_head_dim
    block_n = {64: 64, 128: 64, 256: 32, 512: 16}[wide]
    if spec.kv_dtype == "fp8_e4m3" or spec.tree_words > 0 or spec.page_size < 16:
        # Conversion holds both forms of a step in registers; trees their bits; small pages many
        # addresses.
        block_n = max(16, block_n // 2)
    warps = 8 if block_m * wide >= 128 * 128 or block_m == 128 else 4
    return TileConfig(block_m, block_n, num_warps=warps, num_stages=2)


def choose_splits(programs: int, slots: int, kv_blocks: int) -> int:
    """KV splits: the fewest that come within 15 % of the best use of the SMs.

    Efficiency of s splits is waves / ceil(waves) with waves = programs * s / slots (the rule of
    FlashAttention-3, hopper/heuristics.h).

    Args:
        programs: Thread blocks without splitting: tiles * KV heads * sequences.
        slots: Thread blocks that the card runs at once.
        kv_blocks: Steps of `block_n` tokens in the longest context.
    """
    top = max(1, min(MAX_SPLITS, kv_blocks, slots))
    if programs * 5 >= slots * 4:
        return 1
    efficiency = []
    for splits in range(1, top + 1):
        waves = programs * splits / slots
        efficiency.append(waves / -(-programs * splits // slots))
    best = max(efficiency)
    return next(i + 1 for i, value in enumerate(efficiency) if value >= 0.85 * best)


MERGE_BLOCK = 16
"""Splits that the merge reads at once."""


def attend_constants(
    spec: VerifySpec, config: TileConfig, capability: int, *, upcast: bool = False
) -> dict[str, int | bool]:
    """Compile-time constants of the attention kernel.

    `upcast` converts the operands of products to float32, for an interpreter without bf16.
    """
    return {
        "HEAD_DIM": spec.head_dim,
        "ROPE_DIM": spec.rope_dim,
        "BLOCK_D": spec.padded_head_dim,
        "PAGE_SIZE": spec.page_size,
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "CAUSAL": spec.mask == "causal",
        "TREE_WORDS": spec.tree_words,
        "WINDOW": spec.window,
        "SOFTCAP": spec.softcap,
        "FP8": spec.kv_dtype == "fp8_e4m3",
        "FP8_HARDWARE": capability >= FP8_CAPABILITY,
        "TOKEN_SCALES": spec.kv_scales == "token",
        "UPCAST": upcast,
    }


def merge_constants(spec: VerifySpec) -> dict[str, int | bool]:
    """Compile-time constants of the merge kernel."""
    return {
        "HEAD_DIM": spec.head_dim,
        "BLOCK_D": spec.padded_head_dim,
        "BLOCK_S": MERGE_BLOCK,
        "SINKS": spec.sinks,
    }
