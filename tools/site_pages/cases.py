"""When not to speculate: the break-even, and what was measured to lose."""

from collections.abc import Iterator

from planner.cost.interval import HELPS, HURTS
from planner.evidence.load import rows
from planner.evidence.records import EvidenceRow
from planner.report.wording import family_title
from tools.site_pages.markdown import source, table, text

INTRODUCTION = """# When not to

Speculation pays when a round yields more tokens than it costs plain steps: **E[L] > R**. R rises
with D, with the batch, with the share of the drafter in the target, and where the kernel or the
host charges more for many rows; E[L] falls with traffic that is hard to guess. So it tends to lose
with

- a small or heavily quantised target: a plain step is cheap, drafting is not;
- large batches: the idle arithmetic that verification uses is gone;
- mixture-of-experts targets at small batch: a verified row may touch experts that a plain step does
  not read;
- experts in host memory, for the same reason at a tenth of the bandwidth;
- long contexts on a kernel that stops splitting the cache above one query token;
- creative text, high temperature, or a drafter trained for other traffic;
- memory that is needed for the KV cache.

`planner recommend` says so with the break-even: "Don't", or "Depends" with the E[L] above which it
pays.
"""


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown)."""
    found = sorted((row for row in rows() if row.speedup < HELPS), key=lambda row: row.speedup)
    lost = [row for row in found if row.speedup <= HURTS]
    even = [row for row in found if row.speedup > HURTS]
    head = ("speedup", "model", "card", "engine", "drafter, D", "batch", "where", "source")
    yield (
        "when-not.md",
        "\n".join(
            [
                INTRODUCTION,
                f"## Measured to lose\n\nThe {len(lost)} of {len(list(rows()))} scored speedups "
                f"at or below {HURTS}, slowest first.\n",
                table(head, map(_row, lost)),
                f"## Measured to change nothing\n\nBetween {HURTS} and {HELPS}.\n",
                table(head, map(_row, even)),
            ]
        ),
    )


def _row(row: EvidenceRow) -> tuple[str, ...]:
    ask = row.ask
    count = f"{ask['num_gpus']}x " if ask.get("num_gpus", 1) > 1 else ""
    where = [str(ask[key]) for key in ("workload", "host") if ask.get(key)]
    where += [f"context {ask['context_len']}"] if ask.get("context_len") else []
    return (
        f"{row.speedup:.2f}x",
        text(f"{ask['model']}, {ask.get('quant', 'format not stated')}"),
        text(f"{count}{ask['gpu']}"),
        text(ask.get("engine", "not stated")),
        text(f"{family_title(ask['drafter'])}, {ask.get('draft_len', 'tree')}"),
        str(ask.get("batch", "-")),
        text(", ".join(where) or "-"),
        source(row.source),
    )
