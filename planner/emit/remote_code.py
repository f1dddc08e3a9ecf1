"""Checkpoints whose configuration is a program of their own: said, never switched on."""

from planner.emit.rules import RuleBook
from planner.search.records import Plan


def remote_code_notes(book: RuleBook, plan: Plan) -> tuple[str, ...]:
    """What such a model needs, and what that means; nothing where the engine reads the config.

    The flag is left to the user: it runs Python from the download with the server's rights.
    """
    if plan.inputs.architecture not in book.lists.get("remote_code", ()):
        return ()
    return (
        f"{book.engine} cannot read the configuration of {plan.inputs.architecture} by itself: the "
        "repository brings Python for it, which the engine runs only with --trust-remote-code. "
        "That flag lets the download run code on this machine, so it is not in the files: read "
        "the repository's *.py, then start ./launch.sh --trust-remote-code",
    )
