"""llama.cpp's relations between flags: one predicate per rule id of its rule book.

Flags come in the one spelling that the rule book's `options` use; D is `--spec-draft-n-max`, or
size-m for the n-gram types. A verification step has 1+D rows per slot.
"""

import re
from collections.abc import Mapping, Sequence

from planner.emit.check import Facts, Predicate, Settings, integer, text
from planner.emit.rules import RuleBook
from planner.errors import EngineUnsupported

TYPES = (
    "none",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "draft-dflash",
    "draft-dspark",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
)
_READS_STATES = ("draft-eagle3", "draft-dflash", "draft-dspark")
_NEEDS_FILE = ("draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark")
_CACHE_BLOCK = 32
"""Elements of one block of every quantised cache type."""
_QUANTISED = ("q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
_LENGTH_FLAG = {
    "ngram-simple": "--spec-ngram-simple-size-m",
    "ngram-map-k": "--spec-ngram-map-k-size-m",
    "ngram-map-k4v": "--spec-ngram-map-k4v-size-m",
    "ngram-mod": "--spec-ngram-mod-n-max",
}
_DEFAULT_LENGTH = {"ngram-simple": 48, "ngram-map-k": 48, "ngram-map-k4v": 48, "ngram-mod": 64}
"""common/common.h: the engine's own sizes, which apply where a flag is left out."""
_DEFAULT_DRAFT_LEN = 3


def settings_of(book: RuleBook, argv: Sequence[str]) -> dict[str, object]:
    """The command line (without the program) as one value per flag.

    Raises:
        EngineUnsupported: a flag is unknown, was removed, or lacks its value.
    """
    spelling = {a: name for name, option in book.options.items() for a in option.aliases}
    flags = book.flags
    with_value = {*book.removed, *(flags.with_value if flags else ())}
    found: dict[str, object] = {}
    items = iter(argv)
    for item in items:
        name = spelling.get(item, item)
        if item not in with_value:
            found[name] = True
            continue
        value = next(items, None)
        if value is None:
            raise EngineUnsupported(f"llama.cpp {book.version}: {item} needs a value")
        found[name] = value
    return found


def predicates(book: RuleBook) -> Mapping[str, Predicate]:
    """All predicates, by rule id."""
    step = int(book.numbers["context_step"])
    batch, ubatch = int(book.numbers["default_batch"]), int(book.numbers["default_ubatch"])

    def slot_context(settings: Settings, facts: Facts) -> str | None:
        total, slots = integer(settings, "-c") or 0, integer(settings, "-np") or 1
        if total == 0 or facts.context_len == 0:
            return None
        whole = total % (slots * step) == 0
        if whole and total // slots >= facts.context_len:
            return None
        return f"-c {total} for {slots} slots of {facts.context_len} tokens"

    def verify_batch(settings: Settings, _facts: Facts) -> str | None:
        rows, size = verify_rows(settings), integer(settings, "-b") or batch
        return f"-b {size} for {rows} rows" if rows > size else None

    def verify_ubatch(settings: Settings, _facts: Facts) -> str | None:
        rows, size = verify_rows(settings), integer(settings, "-ub") or ubatch
        whole = integer(settings, "-b") or batch
        return f"-ub {size}, -b {whole} for {rows} rows" if rows > size or size > whole else None

    return {
        **_PREDICATES,
        "hidden-states": _known_to(book.lists["hidden_states"], _READS_STATES),
        "mtp-graph": _known_to(book.lists["mtp_graph"], ("draft-mtp",)),
        "slot-context": slot_context,
        "verify-batch": verify_batch,
        "verify-ubatch": verify_ubatch,
    }


def _known_to(architectures: Sequence[str], types: Sequence[str]) -> Predicate:
    """Whether the target's graph has what these speculative types need; unknown targets pass."""
    known = re.compile("|".join(architectures), re.IGNORECASE)

    def predicate(settings: Settings, facts: Facts) -> str | None:
        asked = [t for t in types_of(settings) if t in types]
        # An MTP file of its own brings its graph along.
        apart = "draft-mtp" in types and "-md" in settings
        if not asked or apart or not facts.architecture or known.match(facts.architecture):
            return None
        return f"{asked[0]} with {facts.architecture}"

    return predicate


def types_of(settings: Settings) -> tuple[str, ...]:
    """The speculative types that the command asks for."""
    named = text(settings, "--spec-type")
    return tuple(t for t in named.split(",") if t != "none") if named else ()


def draft_len_of(settings: Settings) -> int:
    """The longest draft of the command; 0 without speculation."""
    lengths = [0]
    for kind in types_of(settings):
        flag = _LENGTH_FLAG.get(kind, "--spec-draft-n-max")
        given = integer(settings, flag)
        default = _DEFAULT_LENGTH.get(kind, _DEFAULT_DRAFT_LEN)
        lengths.append(default if given is None else given)
    return max(lengths)


def verify_rows(settings: Settings) -> int:
    """Rows of one verification step over all slots."""
    return (integer(settings, "-np") or 1) * (1 + draft_len_of(settings))


def _spec_type(settings: Settings, _facts: Facts) -> str | None:
    bad = [t for t in types_of(settings) if t not in TYPES]
    return repr(bad[0]) if bad else None


def _zero_is_not_off(settings: Settings, _facts: Facts) -> str | None:
    for flag in ("--spec-draft-n-max", *_LENGTH_FLAG.values()):
        if integer(settings, flag) == 0:
            return f"{flag} 0"
    return None


def _orphan_draft_flags(settings: Settings, _facts: Facts) -> str | None:
    if types_of(settings):
        return None
    flags = [f for f in settings if f.startswith("--spec-") and f != "--spec-type"]
    own = [f for f in ("-md", "-ngld", "-ctkd", "-ctvd") if f in settings]
    return f"{(flags + own)[0]} alone" if flags or own else None


def _draft_model_given(settings: Settings, _facts: Facts) -> str | None:
    types = types_of(settings)
    needs = [t for t in types if t in _NEEDS_FILE]
    if needs and "-md" not in settings:
        return f"{needs[0]} without -md"
    drafts = needs or "draft-mtp" in types
    return "-md beside n-gram types" if types and "-md" in settings and not drafts else None


def _draft_on_gpu(settings: Settings, _facts: Facts) -> str | None:
    if "-md" not in settings:
        return None
    layers = text(settings, "-ngld")
    if layers == "0" and text(settings, "-devd") == "none":
        return None
    return f"-ngld {layers}" if layers in (None, "0") else None


def _ngram_sizes(settings: Settings, _facts: Facts) -> str | None:
    if "ngram-simple" not in types_of(settings):
        return None
    key = integer(settings, "--spec-ngram-simple-size-n") or 12
    draft = integer(settings, "--spec-ngram-simple-size-m") or 48
    return f"size-n {key}, size-m {draft}" if draft < key else None


def _quantised_v(settings: Settings, _facts: Facts) -> str | None:
    off = text(settings, "-fa") == "off"
    kinds = (text(settings, "-ctv"), text(settings, "-ctvd"))
    wrong = [kind for kind in kinds if kind in _QUANTISED]
    return f"{wrong[0]} with -fa off" if off and wrong else None


def _quantised_heads(settings: Settings, facts: Facts) -> str | None:
    kinds = [kind for kind in (text(settings, "-ctk"), text(settings, "-ctv")) if kind]
    wrong = sorted(width for width in facts.head_dims if width % _CACHE_BLOCK)
    if not wrong or not any(kind in _QUANTISED for kind in kinds):
        return None
    return f"{kinds[0]} with heads of {wrong[0]}"


def _split_tensor(settings: Settings, _facts: Facts) -> str | None:
    wrong = text(settings, "-sm") == "tensor" and text(settings, "-fa") == "off"
    return "-sm tensor with -fa off" if wrong else None


def _trained_block(settings: Settings, facts: Facts) -> str | None:
    blocks = {"draft-dflash", "draft-dspark"} & set(types_of(settings))
    limit, draft_len = facts.max_draft_len, draft_len_of(settings)
    if not blocks or limit is None or draft_len <= limit:
        return None
    return f"D = {draft_len}, trained block {limit}"


def _mtp_heads(settings: Settings, facts: Facts) -> str | None:
    heads, draft_len = facts.mtp_layers or 1, draft_len_of(settings)
    if "draft-mtp" not in types_of(settings) or heads <= 1 or draft_len <= heads:
        return None
    return f"D = {draft_len} with {heads} heads"


def _tensor_split(settings: Settings, facts: Facts) -> str | None:
    shares = text(settings, "-ts")
    if shares is None or len(shares.replace("/", ",").split(",")) == facts.num_gpus:
        return None
    return f"-ts {shares} for {facts.num_gpus} GPUs"


def _draft_min(settings: Settings, _facts: Facts) -> str | None:
    low = integer(settings, "--spec-draft-n-min")
    high = integer(settings, "--spec-draft-n-max")
    if low is None or low <= (_DEFAULT_DRAFT_LEN if high is None else high):
        return None
    return f"{low} > {high}"


def _synthetic(settings: Settings, _facts: Facts) -> str | None:
    rates = text(settings, "--spec-synth-rates")
    if rates is None:
        return None
    if "--spec-synth-len" in settings:
        return "both rates and length"
    count, draft_len = len(rates.split(",")), draft_len_of(settings)
    return f"{count} rates for D = {draft_len}" if count != draft_len else None


_PREDICATES: dict[str, Predicate] = {
    "spec-type": _spec_type,
    "zero-is-not-off": _zero_is_not_off,
    "orphan-draft-flags": _orphan_draft_flags,
    "draft-model-given": _draft_model_given,
    "draft-on-gpu": _draft_on_gpu,
    "ngram-sizes": _ngram_sizes,
    "quantised-v": _quantised_v,
    "quantised-heads": _quantised_heads,
    "split-tensor": _split_tensor,
    "trained-block": _trained_block,
    "mtp-heads": _mtp_heads,
    "tensor-split": _tensor_split,
    "draft-min": _draft_min,
    "synthetic": _synthetic,
}
