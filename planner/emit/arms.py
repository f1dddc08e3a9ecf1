"""Other ways to start the same engine: without speculation, at other draft lengths, otherwise."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from planner.errors import EngineUnsupported

Argv = tuple[str, ...]
Arms = dict[str, Argv]


def arms_of(
    command: Callable[[int], Argv], draft_lens: Sequence[int]
) -> tuple[Arms, tuple[str, ...]]:
    """Whole commands for `off` and each draft length that the rules allow, and one refusal."""
    off = command(0)
    arms, refused = variants_of({f"draft_len={n}": partial(command, n) for n in draft_lens})
    return {"off": off, **arms}, refused[:1]


def variants_of(commands: Mapping[str, Callable[[], Argv]]) -> tuple[Arms, tuple[str, ...]]:
    """Commands by the name of their arm, and why the others are missing."""
    arms: Arms = {}
    refused = []
    for name, command in commands.items():
        try:
            arms[name] = command()
        except EngineUnsupported as error:
            refused.append(f"no arm for {name}: {error}")
    return arms, tuple(refused)
