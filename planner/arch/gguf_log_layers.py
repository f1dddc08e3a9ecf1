"""Layers of a model of which only llama.cpp's `print_info` lines are at hand."""

import re
from dataclasses import replace
from pathlib import Path

from planner.arch.assemble import Feed, Layer, group_layers, with_parameters
from planner.arch.families import PLAIN_FFN
from planner.arch.feedforward import FeedForward
from planner.arch.gguf_layers import DENSE_FIRST, SWA_PERIOD
from planner.arch.gguf_log import PrintInfo, read_print_info
from planner.arch.mixers import CACHE_ELEMENT_BYTES, state_space
from planner.arch.quant import weight_format
from planner.arch.quant_text import parse_quant
from planner.arch.records import AttentionShape, ModelArch, MoeShape, MtpShape, WeightFormat
from planner.errors import InputError

_PERIOD = {**SWA_PERIOD, "gemma4": 6}
_OFF_BY = 0.05
"""Share by which counted and printed parameters may differ before it is said."""


def read_gguf_log(path: Path) -> ModelArch:
    """The model that a start-up log describes.

    Raises:
        InputError: lines are missing (named), or they contradict each other.
    """
    info = read_print_info(path)
    if info.missing:
        raise InputError(
            f"{path} is a part of a start-up log: the lines {', '.join(info.missing)} are missing, "
            "so no shape follows; give the whole log or the .gguf (planner inspect shows the part)"
        )
    architecture = info.words["arch"]
    reader = _Reader(info, architecture)
    fmt, size = _format(info)
    layers = reader.layers()
    arch = ModelArch(
        name=info.words.get("general.name") or path.stem,
        source=str(path),
        architecture=architecture,
        hidden_size=reader.hidden,
        vocab_size=reader.need("n_vocab"),
        num_layers=len(layers),
        tied_embeddings=False,
        groups=group_layers(layers),
        mtp=MtpShape(status="none"),
        max_position=info.one("n_ctx_train"),
        native_format=fmt,
        checkpoint_bytes=size,
        assumptions=tuple(reader.assumptions),
        warnings=tuple(reader.warnings),
    )
    return _held_to_print(with_parameters(arch), info)


def _held_to_print(arch: ModelArch, info: PrintInfo) -> ModelArch:
    """Embedding and head shared where that is what the printed parameters say."""
    printed = info.params
    if not printed:
        return arch
    table = arch.vocab_size * arch.hidden_size
    tied = replace(
        arch,
        tied_embeddings=True,
        params_total=arch.params_total - table,
        params_active=arch.params_active - table,
    )
    nearest = min((arch, tied), key=lambda a: abs(a.params_total - printed))
    off = nearest.params_total / printed - 1
    if abs(off) <= _OFF_BY:
        return nearest
    said = (
        f"the log prints {printed / 1e9:.2f} B parameters, its shapes give "
        f"{nearest.params_total / 1e9:.2f} B: layers of a kind that it does not list are missing"
    )
    return replace(nearest, warnings=(*nearest.warnings, said))


def _format(info: PrintInfo) -> tuple[WeightFormat | None, int | None]:
    """Type of the file and its true bytes, where printed."""
    stated = info.words.get("file type", "").removeprefix("mostly ")
    stated = re.sub(r" - ([SML])\w*$", r"_\1", stated)
    named = parse_quant(stated).weight or weight_format(stated)
    sized = info.file_size
    if sized is None:
        return named, None
    size, bits = sized
    base = named or WeightFormat(stated or "GGUF", bits, "gguf", "int8")
    made = replace(base, bits_per_weight=bits, head_bits=bits, expert_bits=None, kind="derived")
    return made, int(size)


class _Reader:
    """Reads the layers of one log; collects what it had to assume."""

    def __init__(self, info: PrintInfo, architecture: str) -> None:
        self.info = info
        self.architecture = architecture
        self.count = self.need("n_layer")
        self.hidden = self.need("n_embd")
        self.assumptions: list[str] = []
        self.warnings: list[str] = []

    def need(self, name: str) -> int:
        found = self.info.one(name)
        if not found:
            raise InputError(f"{self.info.where}: {name} must be one number above 0")
        return found

    def layers(self) -> list[Layer]:
        heads = self.info.each("n_head", self.count) or []
        kv_heads = self.info.each("n_head_kv", self.count) or []
        windows = self._windows()
        feeds = self._feeds()
        return [
            Layer(self._mixer(i, heads[i], kv_heads[i], windows[i]), feeds[i])
            for i in range(self.count)
        ]

    def _windows(self) -> list[int | None]:
        size = self.info.one("n_swa") or 0
        if not size:
            return [None] * self.count
        period = _PERIOD.get(self.architecture)
        full = 0 if self.architecture in DENSE_FIRST else (period or 1) - 1
        if period is None:
            self.warnings.append(
                f"n_swa = {size} and the log does not say on which layers: all are counted as full "
                "attention"
            )
            return [None] * self.count
        self.assumptions.append(f"every {period}th layer attends to everything, as in llama.cpp")
        return [None if i % period == full else size for i in range(self.count)]

    def _mixer(
        self, i: int, heads: int, kv_heads: int, window: int | None
    ) -> AttentionShape | None:
        if not kv_heads:
            return self._recurrent()
        rank = self.info.one("n_lora_kv")
        if rank:
            raise InputError(
                f"{self.info.where}: an MLA model ({self.architecture}) needs more than its log "
                "prints; give the .gguf or the config.json"
            )
        key, value = self._widths(i, heads, kv_heads, window)
        q, kv = heads * key, kv_heads * (key + value)
        return AttentionShape(
            kind="gqa",
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=key,
            v_head_dim=value,
            window=window,
            kv_bytes_per_token_16bit=CACHE_ELEMENT_BYTES * kv,
            weights=self.hidden * (q + kv + heads * value),
        )

    def _widths(self, i: int, heads: int, kv_heads: int, window: int | None) -> tuple[int, int]:
        """Widths of a K and a V head: what a layer's own lists say comes first."""
        if heads % kv_heads:
            raise InputError(f"{self.info.where}: {heads} heads over {kv_heads} KV heads cannot be")
        swa = "_swa" if window is not None else ""
        found = []
        for side in ("k", "v"):
            wide = self.info.each(f"n_embd_{side}_gqa", self.count)
            stated = self.info.one(f"n_embd_head_{side}{swa}") or self.info.one(
                f"n_embd_head_{side}"
            )
            if wide is not None and wide[i] % kv_heads == 0 and wide[i]:
                found.append(wide[i] // kv_heads)
            else:
                found.append(stated or self.hidden // heads)
        return found[0], found[1]

    def _recurrent(self) -> AttentionShape | None:
        """A layer without KV heads: a recurrent state where the log prints its sizes."""
        inner, state = self.info.one("ssm_d_inner") or 0, self.info.one("ssm_d_state") or 0
        if not inner or not state:
            return None
        heads = self.info.one("ssm_dt_rank") or 1
        groups = self.info.one("ssm_n_group") or 1
        weights = self.hidden * (3 * inner + 2 * groups * state + heads)
        return state_space(heads, groups, inner, state, weights)

    def _feeds(self) -> list[Feed]:
        widths = self.info.each("n_ff", self.count) or [0] * self.count
        matrices = 2 if self.architecture in PLAIN_FFN else 3
        experts = self.info.one("n_expert") or 0
        dense: list[Feed] = [
            FeedForward(matrices * self.hidden * width, width) if width else None
            for width in widths
        ]
        if not experts:
            return dense
        each = self.info.one("n_ff_exp") or self.need("n_ff")
        top_k = self.need("n_expert_used")
        shared = self.info.one("n_ff_shexp") or 0
        made = MoeShape(
            num_experts=experts,
            top_k=min(top_k, experts),
            expert_weights=matrices * self.hidden * each,
            shared_weights=matrices * self.hidden * shared,
            router_weights=self.hidden * experts,
            expert_width=each,
        )
        lead = self.info.one("n_layer_dense_lead") or 0
        return [dense[i] if i < lead else made for i in range(self.count)]
