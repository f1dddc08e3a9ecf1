"""Other ways to start the same engine: without speculation, and at other draft lengths."""

from collections.abc import Callable, Mapping, Sequence

from planner.errors import EngineUnsupported

Argv = tuple[str, ...]
Arms = dict[str, Argv]


def arms_of(
    command: Callable[[int], Argv], draft_lens: Sequence[int]
) -> tuple[Arms, tuple[str, ...]]:
    """Whole commands for `off` and each draft length that the rules allow, and one refusal."""
    arms, refused = {"off": command(0)}, []
    for draft_len in draft_lens:
        try:
            arms[f"draft_len={draft_len}"] = command(draft_len)
        except EngineUnsupported as error:
            refused.append(f"no arm for draft_len={draft_len}: {error}")
    return arms, tuple(refused[:1])


def variants_of(commands: Mapping[str, Callable[[], Argv]]) -> tuple[Arms, tuple[str, ...]]:
    """Commands of further variants by arm name, and why the others are missing."""
    arms: Arms = {}
    refused = []
    for name, command in commands.items():
        try:
            arms[name] = command()
        except EngineUnsupported as error:
            refused.append(f"no arm {name}: {error}")
    return arms, tuple(refused)
