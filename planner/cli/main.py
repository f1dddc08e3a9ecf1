"""The `planner` command: finds the verb, imports only that, and turns failures into exit codes."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from planner import __version__
from planner.cli.completion import typed_words
from planner.cli.progress import QUIET
from planner.cli.verbs import (
    VERBS,
    attach_listing,
    attach_plugin,
    attach_verb,
    find_plugin,
    plugins,
)
from planner.errors import InputError, NoFeasiblePlan, OutsideFailure, PlannerError
from planner.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

COMMON = ("-v", "--verbose", "-q", "--quiet")
"""Options that may stand before and behind the verb."""

EXIT_OUR_BUG = 1
EXIT_INPUT = 2
EXIT_NOTHING_FEASIBLE = 3
EXIT_OUTSIDE = 4
EXIT_INTERRUPTED = 130

EXIT_CODES = (
    (InputError, EXIT_INPUT),
    (NoFeasiblePlan, EXIT_NOTHING_FEASIBLE),
    (OutsideFailure, EXIT_OUTSIDE),
    (OSError, EXIT_OUTSIDE),
)
"""Family of failure -> exit code."""

EPILOG = """\b
Exit codes:
  0    answered (also when the answer is "do not speculate")
  1    a bug of the planner
  2    wrong input, a missing fact, or an extra that is not installed
  3    nothing feasible
  4    something outside failed: endpoint, compiler, disk
  130  interrupted

\b
`planner VERB --help` lists the options of a verb."""


def main() -> None:
    """Console entry point."""
    arguments = _everywhere(sys.argv[1:])
    before_verb = list(takewhile(lambda word: word.startswith("-"), arguments))
    verbose = any(word in {"-v", "--verbose"} for word in before_verb)
    QUIET.set(any(word in {"-q", "--quiet"} for word in before_verb))
    sys.excepthook = _report_bug_verbosely if verbose else _report_bug
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        _never_fail_to_encode(stream)
    try:
        code = run(arguments)
    except BrokenPipeError:
        code = _abandon_stdout()
    except (PlannerError, OSError) as failure:
        if verbose:
            traceback.print_exc()
        code = _complain(failure)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = EXIT_INTERRUPTED
    sys.exit(code)


def _everywhere(arguments: Sequence[str]) -> list[str]:
    """The words with -v and -q in front of the verb, wherever they were typed."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    typed, rest = list(arguments[:end]), list(arguments[end:])
    common = [word for word in typed if word in COMMON]
    return [*common, *(word for word in typed if word not in COMMON), *rest]


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; expected failures are raised."""
    words = typed_words() or arguments
    word = next((word for word in words if not word.startswith("-")), None)
    code: object = 0
    try:
        typer.main.get_command(_app_for(word))(args=list(arguments), prog_name="planner")
    except ModuleNotFoundError as missing:
        from planner.cli.packages import needs_extra  # noqa: PLC0415  # reads metadata

        raise needs_extra(missing) from missing
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer makes it exit 1, our bug's code
            raise stop.__context__ from None
        if stop.code == EXIT_INTERRUPTED:  # typer says nothing of it
            raise KeyboardInterrupt from None
        code = stop.code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _app_for(word: str | None) -> typer.Typer:
    """An application that knows the typed verb; all of them by name when none was recognised."""
    app = typer.Typer(
        # A verb does without the two options that install it.
        add_completion=word not in VERBS or "_PLANNER_COMPLETE" in os.environ,
        no_args_is_help=True,
        rich_markup_mode=None,
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_planner)
    if word in VERBS:
        with _one_blas_thread(), _collector_paused():
            attach_verb(app, word)
    elif word and (plugin := find_plugin(word)):
        attach_plugin(app, plugin)
    else:
        attach_listing(app, plugins())
    return app


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Import numpy without its pool of threads, which would cost 50 ms and is never used.

    The variable is taken back: a process that is started later may want its threads.
    """
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Import without collecting cycles, and leave what was imported out of later collections.

    Imports make a hundred thousand objects and no garbage; looking for it is 12 % of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"planner {__version__}")
        raise typer.Exit


def _planner(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the traceback of a failure.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Plan speculative decoding: whether it pays on your card, with which drafter and length."""


def _complain(failure: PlannerError | OSError) -> int:
    """Say what was wrong, rule, values and next step, and return the family's exit code."""
    message = plain(str(failure), keep="\n")
    sys.stderr.write(f"error: {message}\n")
    codes = (code for family, code in EXIT_CODES if isinstance(failure, family))
    return next(codes, EXIT_OUR_BUG)


def _report_bug(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    sys.stderr.write(
        f"bug: {kind.__name__}: {plain(str(error))}\n"
        "This is a bug of the planner, not of your input. "
        "`planner -v ...` shows where; please report it with the command line.\n"
    )


def _report_bug_verbosely(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    traceback.print_exception(kind, error, trace)
    _report_bug(kind, error, trace)


def _open_closed_streams() -> None:
    """A caller may start us with closed streams (`>&-`); what goes there is not wanted."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _never_fail_to_encode(stream: TextIO) -> None:
    """A name that the terminal cannot show is escaped; it must not cost the answer."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _abandon_stdout() -> int:
    """The reader has seen enough: keep the interpreter from flushing into a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
