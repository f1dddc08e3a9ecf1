"""Models for which no decode step is known here, told by their class before anything is counted."""

from planner.arch.fields import Fields
from planner.errors import InputError

_ENCODER = "an encoder, which generates no text token by token"
_PAIR = "an encoder with a decoder, whose cross attention has no reader here"
_DIFFUSION = "a diffusion language model: it fills blocks at once, so there is no draft to verify"
_SPEECH = "a speech or audio model, whose several token streams have no reader here"

_REASONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("bert", "roberta", "xlm_roberta", "xlnet", "electra", "deberta", "albert",
         "modernbert", "nomic_bert", "neo_bert", "modern_bert",
         "gemma_embedding", "mpnet", "camembert", "distilbert", "eurobert", "jina",
         "vit", "clip", "siglip", "dinov2", "swin", "convnext", "resnet", "esm", "gte"),
        _ENCODER,
    ),
    (
        ("t5", "mt5", "umt5", "bart", "mbart", "pegasus", "marian", "m2m_100", "nllb", "led",
         "blenderbot", "t5gemma", "prophetnet", "switch_transformers", "fsmt", "bigbird_pegasus",
         "trocr", "pix2struct", "florence2"),
        _PAIR,
    ),
    (("whisper", "moshi", "seamless", "speech", "wav2vec", "hubert", "musicgen", "bark", "csm",
      "kyutai", "wavtokenizer"), _SPEECH),
    (("llada", "dream", "rnd1", "sdar", "diffusion", "diffucoder", "mdlm", "bd3lm"), _DIFFUSION),
    (("rwkv", "arwkv"), "an RWKV model, whose states and weights have no reader here"),
    (("xlstm",), "an xLSTM model, whose states and weights have no reader here"),
    (("zamba",), "a Zamba model: its attention blocks share weights, which has no reader here"),
    (("recurrent_gemma", "recurrentgemma"),
     "a Griffin model, whose RG-LRU layers have no reader here"),
    (("phi4flash", "phi4_flash"), "a SambaY model, whose shared memory layers have no reader here"),
    (("hymba", "plamo2", "plamo3", "nemotron_flash", "samba", "yoco", "retnet", "hyena",
      "stripedhyena", "jetmoe", "jetnemotron", "zaya", "doge", "mamba3"),
     "of a family whose mixers have no reader here"),
)  # fmt: skip
"""Beginnings of a model type -> why it is refused."""

_HEADLESS = (
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForImageClassification",
    "ForRewardModel",
    "RewardModel",
    "ForMultipleChoice",
)
_RECURRENT_KEYS = (
    "mamba_d_state", "mamba_expand", "ssm_state_size", "mamba_num_heads", "mamba_n_heads",
    "ssm_cfg", "lru_width", "time_mix_extra_dim", "gla_config", "rnn_hidden_size",
)  # fmt: skip


def refuse_unreadable(outer: Fields, inner: Fields, model_type: str) -> None:
    """Return when the class may be a decoder that generates token by token.

    Raises:
        InputError: it is not, or it keeps a state of a kind that no reader knows.
    """
    for stated in (model_type, (outer.text("model_type") or "").lower()):
        refuse_family(stated, outer.where)
    if outer.flag("is_encoder_decoder") is True or inner.flag("is_encoder_decoder") is True:
        raise _refusal(outer.where, model_type, _PAIR)
    listed = outer.items("architectures") or ()
    name = str(listed[0])[:120] if listed else ""
    for ending in _HEADLESS:
        if name.endswith(ending):
            raise _refusal(
                outer.where, name, "an encoder or a classifier: it has no head for tokens"
            )


def refuse_family(stated: str, where: str) -> None:
    """Return when the model type, or the architecture of a GGUF, may be read.

    Raises:
        InputError: it is of a family that has no decode step, or no reader, here.
    """
    for beginnings, reason in _REASONS:
        if stated.lower().replace("-", "_").startswith(beginnings):
            raise _refusal(where, stated, reason)


def refuse_unplaced_states(config: Fields, *, has_state: bool) -> None:
    """Return unless the file has keys of recurrent layers that the layer plan does not place.

    Raises:
        InputError: such layers would be counted as attention, with a cache that is not there.
    """
    found = [key for key in _RECURRENT_KEYS if config.has(key)]
    if found and not has_state:
        raise InputError(
            f"{config.where}: {', '.join(found[:3])} belong to recurrent layers, but nothing that "
            "is read here says which layers those are; add layer_types (mamba, full_attention, "
            "one entry a layer) to the file"
        )


def _refusal(where: str, what: str, reason: str) -> InputError:
    return InputError(
        f"{where}: {ascii(what)[1:-1][:60]} is {reason}; give a decoder-only language model instead"
    )
