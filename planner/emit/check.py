"""Holds a configuration against an engine version's rules before anything is returned.

Settings are flat: nested mappings are dotted (`speculative-config.method`), command lines are
mapped to one spelling per flag. Relations between settings are predicates, one per rule id, that
return the offending values or None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite

from planner.emit.rules import Option, Rule, RuleBook
from planner.errors import EngineUnsupported

Settings = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule must know besides the settings."""

    max_draft_len: int | None = None
    """Trained block or depth of the drafter."""
    mtp_layers: int | None = None
    """n_predict: MTP layers of the checkpoint."""
    checkpoint_quantised: bool = False
    """Whether the checkpoint's name says that it is quantised already."""
    context_len: int = 0
    """Context that each sequence was promised, tokens."""
    max_position: int | None = None
    """Longest context that the target's config states, tokens."""
    num_gpus: int = 1
    architecture: str = ""
    """Model class of the target's config, or architecture of its GGUF; empty: unknown."""
    schedule_draft_lens: frozenset[int] = frozenset()
    """Every D that the schedule names."""
    head_dims: frozenset[int] = frozenset()
    """Widths of the K and V heads of all layers; empty: unknown."""
    aux_over_pipeline: bool = False
    """Whether the target passes hidden states between pipeline stages."""


Predicate = Callable[[Settings, Facts], str | None]


def check(
    book: RuleBook, settings: Settings, facts: Facts, predicates: Mapping[str, Predicate]
) -> None:
    """Return when the engine accepts the settings.

    Raises:
        EngineUnsupported: with the rule, the values, the nearest alternative and the source.
    """
    for name, value in settings.items():
        _check_option(book, name, value)
    for rule in book.rules:
        found = predicates[rule.id](settings, facts)
        if found:
            raise EngineUnsupported(_message(book, rule, found))


def integer(settings: Settings, name: str) -> int | None:
    """The setting as an int, or None where it is absent."""
    value = settings.get(name)
    return int(value) if isinstance(value, (int, float, str)) else None


def text(settings: Settings, name: str) -> str | None:
    """The setting as text, or None where it is absent."""
    value = settings.get(name)
    return None if value is None else str(value)


def numbers(settings: Settings, name: str) -> tuple[float, ...] | None:
    """The setting as a list of numbers, or None where it is absent."""
    value = settings.get(name)
    if value is None or isinstance(value, str) or not isinstance(value, Sequence):
        return None
    return tuple(float(item) for item in value)


def keys_of_method(book: RuleBook, prefix: str, method: str, model: str) -> Predicate:
    """Whether every key below `prefix` is one that the named method reads, with its model.

    `method` and `model` are the engine's names of the keys that hold them.
    """
    keys = book.keys

    def predicate(settings: Settings, _facts: Facts) -> str | None:
        name = text(settings, prefix + method) or ""
        if name not in keys.methods:
            return None
        given = {key.removeprefix(prefix) for key in settings if key.startswith(prefix)}
        needs = keys.methods[name].model
        if needs == "required" and model not in given:
            return f"{name} without {model}"
        alien = given - keys.allowed(name) - ({model} if needs == "optional" else set())
        return f"{', '.join(sorted(alien))} with {name}" if alien else None

    return predicate


def nearest(word: str, known: Sequence[str]) -> str:
    """The closest known spelling, or the first ones."""
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    return close[0] if close else "one of " + ", ".join(known[:8])


def _message(book: RuleBook, rule: Rule, found: str) -> str:
    return (
        f"{book.engine} {book.version} ({rule.id}): {rule.says}; got {found}; "
        f"use {rule.use} [{rule.source}]"
    )


def _check_option(book: RuleBook, name: str, value: object) -> None:
    if name in book.removed:
        gone = book.removed[name]
        raise EngineUnsupported(
            f"{book.engine} {book.version} refuses {name}; use {gone.use} [{gone.source}]"
        )
    option = book.options.get(name)
    if option is None:
        if name in book.spellings:
            return
        near = nearest(name, [*book.options, *book.spellings])
        raise EngineUnsupported(
            f"{book.engine} {book.version} has no setting {name!r}; use {near} [{book.read_at}]"
        )
    problem = _value_problem(option, value)
    if problem:
        raise EngineUnsupported(
            f"{book.engine} {book.version}: {name} must be {problem}; got {value!r} "
            f"[{option.source}]"
        )


def _value_problem(option: Option, value: object) -> str | None:
    """What the value should have been, or None when it is right."""
    if option.type == "bool":
        return None if isinstance(value, bool) else "true or false"
    if option.type == "str":
        return _text_problem(option, value)
    if option.type == "int_map":
        pairs = list(value.items()) if isinstance(value, dict) else []
        whole = all(type(k) is int and type(v) is int for k, v in pairs)
        return None if pairs and whole else "a mapping of whole numbers"
    if option.type in ("ints", "floats", "triples"):
        return _list_problem(option, value)
    return None if value in option.words else _number_problem(option, value)


def _list_problem(option: Option, value: object) -> str | None:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        return "a list"
    if option.type == "triples":
        return None
    return next((p for p in (_number_problem(option, item) for item in value) if p), None)


def _text_problem(option: Option, value: object) -> str | None:
    if not isinstance(value, str) or not value:
        return "text"
    if option.choices and value not in option.choices:
        return f"{nearest(value, option.choices)} (known: {', '.join(option.choices)})"
    return None


def _number_problem(option: Option, value: object) -> str | None:
    try:
        number = float(str(value))
    except ValueError:
        return "a number" + (f" or {' or '.join(option.words)}" if option.words else "")
    whole = option.type in ("int", "ints", "layers")
    if not isfinite(number) or (whole and number != int(number)):
        return "a whole number" if whole else "a finite number"
    bounds = (
        (f"at least {option.min}", option.min is not None and number < option.min),
        (f"above {option.above}", option.above is not None and number <= option.above),
        (f"at most {option.max}", option.max is not None and number > option.max),
    )
    return next((text for text, broken in bounds if broken), None)
