"""Runs a command that ends when the process that started it does, even when that was killed.

usage: python guard.py PARENT_PID COMMAND [ARGUMENT...]

The command hears the signals that stop it even where this was started with them ignored, as a
shell's background jobs are.
The kernel sends SIGTERM to the command when the thread that started it ends (Linux; elsewhere the
command just runs). Only the standard library is used: this starts in a bare interpreter.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Become the command; the process keeps its id."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel was asked
            sys.exit(1)
    for what in (signal.SIGINT, signal.SIGTERM):
        signal.signal(what, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
