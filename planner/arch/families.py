"""What an architecture's own code fixes and its config file does not say.

Source of every table: the config classes of Hugging Face transformers (defaults of the class), or
the modelling code where named. A default taken from here is listed among the assumptions.
"""

TIED_BY_DEFAULT = (
    "gemma", "gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "mpt", "falcon", "refinedweb",
    "cohere", "lfm2", "smollm3", "starcoder2", "vaultgemma", "xglm", "biogpt", "ernie4_5",
    "granite_swa", "minicpm3", "youtu", "mamba", "phi3small",
)  # fmt: skip
"""Class default `tie_word_embeddings=True`; all others that are read here default to False."""

KNOWN_CLASSES = (
    "afmoe", "apertus", "arcee", "arctic", "baichuan", "bailing", "bamba", "bloom", "chatglm",
    "codegen", "cohere", "dbrx", "deci", "deepseek", "dots", "ernie", "exaone", "falcon", "gemma",
    "glm", "gpt", "granite", "hunyuan", "hyv", "internlm", "jamba", "kimi", "lfm", "llama",
    "llava", "longcat", "mamba", "mimo", "minicpm", "minimax", "ministral", "mistral", "mixtral",
    "mllama", "mpt", "muse", "nemotron", "olmo", "opt", "persimmon", "phi", "pixtral", "qwen",
    "rw", "seedoss", "smollm", "stablelm", "starcoder", "step", "xglm", "yi",
)  # fmt: skip
"""Beginnings of the class names whose shape follows from keys as they are read here."""

HEAD_DIM_DEFAULT = {
    "gemma": 256,
    "gemma2": 256,
    "gemma3_text": 256,
    "gemma3": 256,
    "gemma3n_text": 256,
    "gemma3n": 256,
    "gemma4_text": 256,
    "gemma4": 256,
    "qwen3": 128,
    "gpt_oss": 64,
}
"""Head width of the class where the file leaves it out."""

ALWAYS_MHA = frozenset(
    {"gpt2", "bloom", "opt", "gpt_neox", "gptj", "gpt_neo", "codegen", "mpt", "xglm", "baichuan",
     "qwen", "persimmon", "hf_olmo", "internlm", "biogpt", "gpt_neox_japanese"}
)  # fmt: skip
"""Architectures whose code has no grouped KV heads at all (mpt unless `kv_n_heads` is given)."""

MIXER_ONLY = frozenset({"mamba", "mamba2", "falcon_mamba"})
"""Classes whose layers have no feed-forward block."""

GATED_ATTENTION = ("qwen3_next", "qwen3_5", "qwen4_exp", "afmoe")
"""Beginnings of classes whose attention always has an output gate as wide as Q."""

DENSE_BESIDE_MOE = ("gemma4", "longcat_flash", "arctic")
"""Beginnings of classes whose routed layers run a dense block too."""

PLAIN_FFN = frozenset(
    {
        "gpt2",
        "bloom",
        "opt",
        "gpt_neox",
        "gptj",
        "gpt_neo",
        "codegen",
        "mpt",
        "falcon",
        "refinedweb",
        "refinedwebmodel",
        "nemotron",
        "nemotron_h",
        "phi",
        "starcoder2",
        "gpt_bigcode",
        "arcee",
        "apertus",
        "persimmon",
        "xglm",
        "biogpt",
        "jais2",
        "nanochat",
        "gpt_neox_japanese",
    }
)
"""Feed-forward of two matrices (up, down); everything else has a gate too, hence three."""

FFN_IS_4X = frozenset(
    {"gpt2", "bloom", "gptj", "gpt_neo", "codegen", "falcon", "refinedweb", "refinedwebmodel",
     "gpt_bigcode"}
)  # fmt: skip
"""Feed-forward width 4 * hidden_size where the file leaves it out."""

WINDOW_ON_ALL = frozenset({"mistral", "mixtral", "phi3", "starcoder2"})
"""A `sliding_window` that is not null holds for every layer."""

WINDOW_ALTERNATES = {"gemma2": 2, "cohere2": 4, "gemma3_text": 6, "gemma3": 6}
"""Every n-th layer attends to everything, the others to the window."""

MODEL_TYPE_OF_CLASS = {
    "rwforcausallm": "refinedweb",
    "falconforcausallm": "falcon",
    "llamaforcausallm": "llama",
    "mistralforcausallm": "mistral",
    "mixtralforcausallm": "mixtral",
    "bloomforcausallm": "bloom",
    "mptforcausallm": "mpt",
    "gpt2lmheadmodel": "gpt2",
    "optforcausallm": "opt",
    "gptneoxforcausallm": "gpt_neox",
    "gemmaforcausallm": "gemma",
    "gemma2forcausallm": "gemma2",
    "gemma3forcausallm": "gemma3_text",
    "qwen2forcausallm": "qwen2",
    "qwen3forcausallm": "qwen3",
    "phi3forcausallm": "phi3",
}
"""Model type of a class name, for files that carry only `architectures`."""


def tied_by_default(model_type: str) -> bool:
    """Whether the config class shares embedding and head unless the file says otherwise."""
    return model_type.startswith(TIED_BY_DEFAULT) and model_type not in {"gpt_neox", "mamba2"}
