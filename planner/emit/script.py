"""The text of launch.sh: one `exec` of a command, safe against any name."""

import shlex
from collections.abc import Mapping, Sequence

from planner.emit.names import one_line

_SHELLS_OWN = frozenset("$`\\")
# Not $(dirname ...), which takes line breaks from the end of a folder's name; and CDPATH would lead
# elsewhere.
_INTO_FOLDER = "[[ ${BASH_SOURCE[0]} != */* ]] || CDPATH='' cd -- \"${BASH_SOURCE[0]%/*}/\""


def launch_script(
    head: Sequence[str],
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    unset: Sequence[str] = (),
) -> str:
    """A bash script that starts `argv` from the script's own folder.

    `head` becomes comments; `unset` are patterns such as `LLAMA_ARG_SPEC_` whose variables would
    change what the command means. Further arguments are passed on.
    """
    lines = ["#!/usr/bin/env bash", *(f"# {one_line(line)}".rstrip() for line in head)]
    if any(set(word) & _SHELLS_OWN for word in (*argv, *env.values())):
        lines += ["# A name below holds characters of the shell; they are meant as they stand."]
        lines += ["# shellcheck disable=SC1003,SC2016"]
    lines += ["set -euo pipefail", _INTO_FOLDER]
    lines += [f'unset "${{!{prefix}@}}"' for prefix in unset]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    lines.append("exec " + " \\\n  ".join([*_rows(argv), '"$@"']))
    return "\n".join(lines) + "\n"


def command(argv: Sequence[str]) -> str:
    """The command as one line to copy."""
    return one_line(shlex.join(argv))


def _rows(argv: Sequence[str]) -> list[str]:
    """One row per option with its value, so that a person can read the command."""
    rows: list[str] = []
    for item in argv:
        quoted = shlex.quote(item)
        if rows and not item.startswith("-") and (len(rows) == 1 or " " not in rows[-1]):
            rows[-1] += " " + quoted
        else:
            rows.append(quoted)
    return rows
