"""How one start command becomes another, option by option."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from autotune.tune.records import Record


class Change(Record):
    """How the launch changes."""

    argv: tuple[str, ...]
    """The command to start from now on."""
    remove: tuple[str, ...] = ()
    """Words of the present command that go."""
    add: tuple[str, ...] = ()
    """Words that come in their place."""


def change_between(before: Sequence[str], after: Sequence[str]) -> Change:
    """Words that go and words that come; an option keeps its value beside it."""
    old, new = _options(before), _options(after)
    removed: list[str] = []
    added: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += [word for option in old[a:b] for word in option]
            added += [word for option in new[c:d] for word in option]
    return Change(argv=tuple(after), remove=tuple(removed), add=tuple(added))


def _options(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The command as options with their values, so that a changed value shows its option."""
    found: list[tuple[str, ...]] = []
    for word in words:
        if found and found[-1][0].startswith("-") and len(found[-1]) == 1 and word[:1] != "-":
            found[-1] = (*found[-1], word)
        else:
            found.append((word,))
    return found
