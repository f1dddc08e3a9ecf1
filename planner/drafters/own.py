"""`--drafter-path`: the user's own drafter, from its config (HF, speculators, DFlash, DSpark)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from planner.arch.fields import Fields
from planner.arch.load import load_model
from planner.arch.records import ModelArch, MtpShape
from planner.arch.weights import weight_counts
from planner.drafters.own_config import DraftConfig, read_config
from planner.drafters.records import DrafterSpec, Family
from planner.drafters.shapes import (
    BF16_BITS,
    DraftShape,
    target_bits,
    target_head_weights,
)
from planner.errors import InputError

MAX_LAYERS = 64
MAX_PAD = 128
"""Vocabulary sizes that differ by no more than this are one vocabulary, padded (llama.cpp)."""
_QUANT_BITS = (("fp8", 8.5), ("nvfp4", 4.5), ("mxfp4", 4.25), ("int4", 4.5), ("w4a16", 4.5))


@dataclass(frozen=True, slots=True)
class _Own:
    """What every form of drafter config has."""

    config: DraftConfig
    shape: DraftShape
    layers: int
    target_hidden: int
    bits: float
    max_position: int | None
    window: int | None
    windowed_layers: int
    path: Path

    @property
    def fields(self) -> Fields:
        """The keys of the config."""
        return self.config.fields

    def spec(self, family: Family, core: int, head: int) -> DrafterSpec:
        """The record, with an own head; each form changes what differs."""
        windowed = self.window is not None and self.windowed_layers == self.layers
        return DrafterSpec(
            family=family,
            drafter_id=str(self.path),
            kind="derived",
            source=f"{self.config.where}: {self.config.architecture}",
            layers=self.layers,
            hidden_size=self.shape.hidden_size,
            core_weights=core,
            head_weights=head,
            weight_bytes=int((core + head) * self.bits / 8),
            core_bits=self.bits,
            head_bits=self.bits,
            kv_bytes_per_token=self.shape.kv_bytes_per_token(self.layers),
            num_heads=self.shape.num_heads,
            num_kv_heads=self.shape.num_kv_heads,
            head_dim=self.shape.head_dim,
            default_draft_len=self.config.served_draft_len,
            # a drafter that only sees a window never meets a position it was not trained for
            max_position=None if windowed else self.max_position,
            window=self.window if windowed else None,
        )


def read_drafter(path: Path, arch: ModelArch) -> DrafterSpec:
    """The drafter that a config.json, a folder holding one, or a .gguf describes.

    Raises:
        InputError: unreadable, out of range, of an unknown form, or made for another target.
    """
    if path.suffix.lower() == ".gguf":
        return draft_model(load_model(str(path)), str(path), arch)
    config = read_config(path)
    form = _form(config)
    if form is None:
        return draft_model(load_model(str(path)), str(path), arch)
    return _FORMS[form](_own(config, path), arch)


def inspect_drafter(path: Path) -> tuple[str, DrafterSpec] | None:
    """Form and record of a drafter's config without its target; None for a whole language model.

    The target's hidden size and vocabulary are those that the config names itself; a head that the
    target shares is counted at 16 bits.

    Raises:
        InputError: unreadable or out of range.
    """
    config = read_config(path)
    form = _form(config)
    if form is None:
        return None
    own = _own(config, path)
    vocabulary = own.shape.vocab_size or config.fields.need_int(
        "draft_vocab_size", "truncated_vocab_size"
    )
    target = ModelArch(
        name="its target",
        source=str(path),
        architecture="",
        hidden_size=own.target_hidden,
        vocab_size=vocabulary,
        num_layers=0,
        tied_embeddings=False,
        groups=(),
        mtp=MtpShape(status="none"),
        max_position=None,
        native_format=None,
    )
    return form, _FORMS[form](own, target)


def draft_model(draft: ModelArch, where: str, arch: ModelArch) -> DrafterSpec:
    """A whole language model as external drafter.

    Raises:
        InputError: its vocabulary is not the target's.
    """
    if abs(draft.vocab_size - arch.vocab_size) > MAX_PAD:
        raise InputError(
            f"the draft model {where} has a vocabulary of {draft.vocab_size}, {arch.name} has "
            f"{arch.vocab_size}: drafting needs the same tokens; choose a smaller model of the "
            "target's own family"
        )
    mixer, head = draft.main_attention, draft.vocab_size * draft.hidden_size
    core_bits, head_bits = target_bits(draft)
    outside = head if draft.tied_embeddings else 2 * head
    stored = (draft.params_total - outside) * core_bits / 8 + outside * head_bits / 8
    return DrafterSpec(
        family="external",
        drafter_id=where,
        kind=draft.params_kind,
        source=draft.source,
        layers=draft.num_layers,
        hidden_size=draft.hidden_size,
        core_weights=max(0, draft.params_active - outside),
        head_weights=head,
        weight_bytes=draft.checkpoint_bytes or int(stored),
        core_bits=core_bits,
        head_bits=head_bits,
        kv_bytes_per_token=draft.kv_bytes_per_token or 0,
        state_bytes_per_seq=draft.state_bytes_per_seq,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        head_dim=mixer.head_dim,
        max_position=draft.max_position,
        routed_weights=weight_counts(draft).experts,
        notes=(*draft.assumptions, *draft.warnings),
    )


def _form(config: DraftConfig) -> str | None:
    """The form of drafter; None for a plain language model."""
    name = config.architecture
    projector = str(config.block_section.get("projector_type", "")).lower()
    signs = (
        ("dspark", "dspark" in name or projector == "dspark"),
        ("dspark", config.fields.has("dspark_block_size")),
        ("dflash", "dflash" in name or bool(config.block_section)),
        ("peagle", "peagle" in name or "p_eagle" in name),
        ("eagle3", "eagle3" in name),
        ("eagle3", config.fields.has("draft_vocab_size", "truncated_vocab_size")),
        ("eagle1", "eagle" in name),
        ("mtp", any(word in name for word in ("mtp", "nextn", "assistant"))),
    )
    return next((form for form, seen in signs if seen), None)


def _own(config: DraftConfig, path: Path) -> _Own:
    fields = config.fields
    hidden, heads = fields.need_int("hidden_size"), fields.need_int("num_attention_heads")
    layers = fields.need_int("num_hidden_layers", high=MAX_LAYERS)
    kinds = [str(kind) for kind in fields.items("layer_types") or ()]
    slides = fields.value("use_sliding_window")[1] is not False
    window = fields.count("sliding_window") or None if slides else None
    windowed = sum("sliding" in kind for kind in kinds) if kinds else layers
    shape = DraftShape(
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=fields.need_int("num_key_value_heads"),
        head_dim=fields.count("head_dim") or hidden // heads,
        ffn_width=fields.need_int("intermediate_size"),
        vocab_size=fields.count("vocab_size"),
    )
    if shape.num_heads % shape.num_kv_heads:
        raise InputError(
            f"{config.where}: {shape.num_heads} heads do not divide into "
            f"{shape.num_kv_heads} KV heads"
        )
    return _Own(
        config=config,
        shape=shape,
        layers=layers,
        target_hidden=fields.count("target_hidden_size") or hidden,
        bits=_bits(config),
        max_position=fields.count("max_position_embeddings") or None,
        window=window,
        windowed_layers=windowed if window else 0,
        path=path,
    )


def _bits(config: DraftConfig) -> float:
    quant = config.raw.get("quantization_config")
    text = str(quant)[:4000].lower() if isinstance(quant, dict) else ""
    return next((bits for word, bits in _QUANT_BITS if word in text), BF16_BITS)


def _check_target(own: _Own, arch: ModelArch) -> None:
    """A head on the target's hidden states fits one hidden size and one vocabulary."""
    if own.target_hidden != arch.hidden_size:
        raise InputError(
            f"{own.config.where} drafts from hidden states of width {own.target_hidden}, but "
            f"{arch.name} has {arch.hidden_size}: it was made for another target"
        )
    _check_vocabulary(own, arch)


def _check_vocabulary(own: _Own, arch: ModelArch) -> None:
    if own.shape.vocab_size and own.shape.vocab_size != arch.vocab_size:
        raise InputError(
            f"{own.config.where} has a vocabulary of {own.shape.vocab_size}, but {arch.name} has "
            f"{arch.vocab_size}: it was made for another target"
        )


def _eagle3(own: _Own, arch: ModelArch) -> DrafterSpec:
    """attn(2h) + FFN in the first layer, plain layers after it, and 3 hidden states into h."""
    _check_target(own, arch)
    h = own.shape.hidden_size
    core = own.shape.layer_weights(2 * h) + (own.layers - 1) * own.shape.layer_weights()
    return own.spec("eagle3", core + 3 * own.target_hidden * h, _draft_head(own, arch))


def _peagle(own: _Own, arch: ModelArch) -> DrafterSpec:
    """Plain layers over 3 hidden states; all D tokens in one pass."""
    _check_target(own, arch)
    h = own.shape.hidden_size
    core = own.layers * own.shape.layer_weights() + 3 * own.target_hidden * h
    return replace(own.spec("eagle3", core, _draft_head(own, arch)), parallel=True)


def _eagle1(own: _Own, arch: ModelArch) -> DrafterSpec:
    """One plain layer and a 2h x h projection; the target's head is read in full."""
    _check_target(own, arch)
    h = own.shape.hidden_size
    core = own.layers * own.shape.layer_weights() + 2 * h * h
    return _shared_head(own.spec("eagle3", core, 0), arch)


def _mtp(own: _Own, arch: ModelArch) -> DrafterSpec:
    """A separate MTP module: its layers, a 2h x h projection, the target's head."""
    h = own.shape.hidden_size
    core = own.layers * own.shape.layer_weights() + 2 * h * own.target_hidden
    _check_vocabulary(own, arch)
    return replace(_shared_head(own.spec("mtp", core, 0), arch), retrofit=False)


def _dflash(own: _Own, arch: ModelArch) -> DrafterSpec:
    """Layers and a projection of the captured states; block 16 counts the anchor: D = 15."""
    _check_target(own, arch)
    block = own.fields.count("block_size")
    limit = max(1, block - 1) if block else None
    return _block(own, arch, "dflash", limit)


def _dspark(own: _Own, arch: ModelArch) -> DrafterSpec:
    """As DFlash; the block counts draft positions: D = block. Markov tables add memory."""
    _check_target(own, arch)
    block = own.fields.count("block_size", "dspark_block_size")
    spec = _block(own, arch, "dspark", block or None)
    rank = own.fields.count("markov_rank", "dspark_markov_rank")
    tables = 2 * arch.vocab_size * rank
    notes = (*spec.notes, f"Markov rank {rank}") if rank else spec.notes
    return replace(spec, weight_bytes=spec.weight_bytes + int(tables * own.bits / 8), notes=notes)


def _block(own: _Own, arch: ModelArch, family: Family, limit: int | None) -> DrafterSpec:
    states = own.fields.items(
        "target_layer_ids", "dspark_target_layer_ids", "aux_hidden_state_layer_ids"
    )
    captured = len(states or ()) or own.layers
    core = own.layers * own.shape.layer_weights()
    core += captured * own.target_hidden * own.shape.hidden_size
    spec = _shared_head(own.spec(family, core, 0), arch)
    draft_vocab = own.fields.count("draft_vocab_size")
    if draft_vocab and draft_vocab < arch.vocab_size:
        head = draft_vocab * own.shape.hidden_size
        spec = replace(own.spec(family, core, head), shared_head=False)
    served = own.config.served_draft_len
    return replace(spec, max_draft_len=limit or served, default_draft_len=served or limit)


def _shared_head(spec: DrafterSpec, arch: ModelArch) -> DrafterSpec:
    return replace(
        spec,
        head_weights=target_head_weights(arch),
        head_bits=target_bits(arch)[1],
        shared_head=True,
    )


def _draft_head(own: _Own, arch: ModelArch) -> int:
    words = (
        own.fields.optional_int("draft_vocab_size", "truncated_vocab_size", low=0)
        or arch.vocab_size
    )
    if words > arch.vocab_size:
        raise InputError(
            f"{own.config.where}: draft_vocab_size {words} is larger than the vocabulary of "
            f"{arch.name} ({arch.vocab_size})"
        )
    return words * own.shape.hidden_size


_FORMS: Mapping[str, Callable[[_Own, ModelArch], DrafterSpec]] = {
    "eagle1": _eagle1,
    "eagle3": _eagle3,
    "peagle": _peagle,
    "mtp": _mtp,
    "dflash": _dflash,
    "dspark": _dspark,
}
