"""Renews the committed accuracy figures and the page made from them.

usage: python tools/accuracy.py [--page]

Without an option the model runs over the evidence and both are written; --page writes the page
from the figures as committed.
"""

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from planner.evidence import load
from planner.evidence.accuracy import accuracy
from planner.evidence.committed import committed
from planner.evidence.gate import MARGINS, compare, record
from planner.evidence.later import figures_now, looks
from planner.report.accuracy_words import (
    LEFT_OUT,
    MEASURES,
    OPERATION_TITLES,
    RESULTS,
    SAMPLES,
    WEIGHTS,
    arms_sentence,
    group_cells,
    group_title,
    made,
    measure,
    operation_cells,
    pair,
    percent,
    refusals_sentence,
    sample_of,
    validated,
)

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "planner" / "evidence" / "data" / "figures.json"
LATER = ROOT / "planner" / "evidence" / "data" / "later.json"
UNSEEN = ROOT / "planner" / "evidence" / "data" / "unseen.json"
PAGE = ROOT / "docs" / "accuracy.md"
INTRODUCTION = """# Accuracy

How wrong the predictions are, on measurements that others published. Made by `make accuracy` from
the rows of `planner/evidence/data/`; `planner evidence` computes the same from the code as it is,
and `planner evidence --json` lists every row that is not scored, with the reason.
"""
HOW = """## How it is measured

Each row is put to `planner predict` as its source describes it. Two questions are kept apart:

- **R**: the measured E[L] is given; is R = (T_draft + T_verify)/T_target equal to E[L]/speedup?
- **Speedup**: no acceptance is given; is the speedup right, is the measurement inside the 80 %
  interval, and is the verdict right? A neutral answer counts as right within 5 % of 1.

**The chosen D**: within one sweep over the draft length (3 lengths or more, all else equal), the
measured speed lost by taking the D that the model ranks first. Errors are
|predicted/measured - 1|.

{weights}

{left_out} (`python -m autotune.fit` finds what each origin moved.)

An unanswered row is counted as unanswered, never as right. Rows that contradict themselves (a
speedup above E[L], or more tokens a round than D + 1) are set aside by
`planner/evidence/load.py`; the others that are not scored are listed in
`planner/evidence/data/excluded.jsonl`. Flagged origins are scored like all others; the last
column of the first table shows what remains without them.
"""
GROUPS = """## By group

Two figures are in sample/origin left out; R and speedup are medians. Groups with fewer than 10
rows are not validated.
"""
OPERATIONS = """## Operations

Rows drawn from the performance tables of aiconfigurator-core 0.12.0 (Apache-2.0, Copyright (c)
2025-2026 NVIDIA CORPORATION & AFFILIATES; `planner/evidence/data/silicon/NOTICE`). The constants
of the kernels were fitted on the tables of these three cards, so these errors are in sample.
Median/9 of 10 rows within.
"""
LEFT_OUT_CARDS = """The same with the constants of each kernel as a fit without the row's card
moves them. What a library does (which tile it takes, whether it splits the cache) is read in its
source or off the tables of the card itself, and stays. Kernels that were timed on one card only
are not in these figures. They are somewhat optimistic: the laws were written, four widths of the
priors, three starting points of the L2 reach, the rules for tiles and splits, the edge of L2 and
what a small tile costs compared, with these same errors in view. The A100's SGLang tables are of
version 0.5.10, in which a rank multiplies all rows of the tokens that come to it; the law says so
for that card alone. The H100's have rows of that version and of 0.5.14 under one name; 0.5.14 is
fitted, both are scored.
"""
UNSEEN_TITLES = {
    "attention": "attention",
    "gemm": "matrix product",
    "moe": "routed experts",
    "sparse": "sparse attention",
}
UNSEEN_CARDS = """## Cards never used to fit

The same wheel has tables of further cards. No constant was fitted on them and no law was chosen
with them in view; they were first looked at on 2026-11-30, with the model as it is here. After that
look nvfp4, which had no constants, was given those of the fp8 kernels with its own weight size and
rate. Absolute times, at most 100 rows of each kernel and format; median/9 of 10 rows within, and
the share that was answered where it is not all (formats and kernels that no table here has).
`python -m autotune.fit unseen --wheel WHEEL` repeats it.
"""
LATER_ROWS = """## Rows collected after the constants were fixed

{rows} published measurements of {origins} origins, looked for and written down on {date} when every
constant stood (commit {commit}): model cards, studies of single cards, engine repositories
(`planner/evidence/data/later.jsonl`). No fit and no figure above uses them, but for the widths of
the interval of plain speed. "First" is what the model said to them before anything was changed,
{unanswered} rows refused for want of a catalog row: the clean test. After that look names, catalog
rows and readers were mended, SGLang's host time of draft trees was set with them in view (a flagged
origin that is older says the same), and llama.cpp's time for routing was found missing (its
constant was then fitted to other rows), so "now" is not clean. The RTX 3090 rows were looked at too
when llama.cpp's per-row product was made slower on cards with half the integer lanes, and those
with a draft model on a hybrid target when copies of its state were charged; no constant of either
was fitted to them.
"""
MISSING = """## What is missing

- **The chosen D.** Three sweeps of llama.cpp on a V100 are among those that lose most: one
  operator's prompts accept up to 100 % of what is drafted. With that acceptance given, the chosen D
  loses nothing on the two dense models, and 8 % on the MoE; `--acceptance FILE` gives it.
- **Trees on SGLang** (Tencent/AngelSlim#163): 5-9 ms of host time a round that no chain shows. A
  trace of one round with top-k 1 and one with 4, at the same number of nodes, would tell.
- **Losses that no hardware explains** (vllm-project/vllm#48766 and #35387): the drafter runs
  outside the CUDA graph. Which versions mark which drafter as compiled is not published; a profile
  of one round tells.
- **Eager transformers**: R of Spec-Bench is 25-30 % higher than that of the EAGLE-3 paper, whose
  baseline runs in EAGLE's own code. Both baselines timed on one card would separate them.
- **Long contexts**: almost no row above 16K states E[L]. That vLLM does not split the cache of
  several query tokens is read in its source; the one row at 65K (noonghunna/club-3090#613) shows no
  such loss, but not how full its cache was. A plain step and one with D = 3, with 64K tokens in
  the cache, would tell.
- **Memory of long prompts** (noonghunna/club-3090#613 and #487): scratch of recurrent layers while
  a prompt is read. The memory lines that vLLM logs at start, and the peak of one chunk, would tell.
"""
GATE = """## What keeps these figures

A test compares a fresh run with the figures committed here and fails when one is worse by more
than the margin beside it in the first table; figures of groups may move by {factor:g} times as
much. When a change makes the model better, `make accuracy` commits the better figures.
"""


def wrapped(text: str) -> str:
    """A paragraph of at most 100 columns."""
    return textwrap.fill(" ".join(text.split()), 100, break_long_words=False)


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def overall(figures: Mapping[str, Any]) -> str:
    """The figures over all rows, with their margins."""
    consistent = figures["groups"]["consistency"]["consistent"]["left_out"]

    def rows() -> Iterator[Sequence[str]]:
        for name, title in MEASURES:
            both = (measure(figures["overall"][sample], name) for sample in SAMPLES)
            yield title, *both, measure(consistent, name), percent(MARGINS[name])

    return table(("all rows", "in sample", "left out", "left out, not flagged", "margin"), rows())


def group(by: str, groups: Mapping[str, Mapping[str, Any]]) -> str:
    """One grouping: a table of what is validated, a sentence on what is not."""
    enough, few = validated(groups)

    def rows() -> Iterator[Sequence[str]]:
        for name, found in enough.items():
            title = group_title(by, name)
            yield title, str(found["rows"]), str(found["origins"]), *group_cells(found)

    head = (by, "rows", "origins", "R", "speedup", "9 of 10", "80 %", "verdict", "false helps")
    text = table(head, rows()) if enough else ""
    return f"{text}\n{wrapped(few[:1].upper() + few[1:])}.\n" if few else text


def operations(figures: Mapping[str, Any], prefix: str) -> str:
    """Errors of single operations by kind and GPU."""
    kinds = figures["operations"]
    gpus = list(dict.fromkeys(gpu for by_gpu in kinds.values() for gpu in by_gpu))

    def rows() -> Iterator[Sequence[str]]:
        for kind, title in OPERATION_TITLES.items():
            cells = operation_cells(kinds[kind], gpus, prefix)
            if any(cells):
                yield title, str(kinds[kind]["all"][f"{prefix}rows"]), *cells

    return table(("operation", "rows", *gpus), rows())


def refused(refusals: Mapping[str, Any]) -> str:
    """What became of each failed run."""
    cases = refusals["cases"].values()
    rows = ((case["origin"], case["says"], RESULTS[case["result"]]) for case in cases)
    return table(("failed run", "rule", "planner"), rows).replace("---:", "---")


def unseen(errors: Mapping[str, Mapping[str, Any]]) -> str:
    """Errors on cards that were not fitted."""
    gpus = list(dict.fromkeys(gpu for by_gpu in errors.values() for gpu in by_gpu))

    def rows() -> Iterator[Sequence[str]]:
        for table_name, title in UNSEEN_TITLES.items():
            yield title, *(unseen_cell(errors[table_name].get(gpu)) for gpu in gpus)

    return table(("operation", *gpus), rows())


def unseen_cell(found: Mapping[str, Any] | None) -> str:
    """`12/55% (75%)`."""
    if not found or found["median"] is None:
        return ""
    answered = f" ({percent(found['answered'])})" if found["answered"] < 1 else ""
    return pair(found["median"], found["p90"]) + answered


def later(looks: Mapping[str, Any]) -> str:
    """The clean test: what the model said first, and what it says now."""
    rows, first, now = load.later(), looks["first"], looks["now"]
    text = LATER_ROWS.format(
        rows=len(rows),
        origins=len({row.origin for row in rows}),
        date=first["date"],
        commit=first["commit"],
        unanswered=round((1 - first["figures"]["answered"]) * len(rows)),
    )
    both = (
        (title, measure(first["figures"], name), measure(now["figures"], name))
        for name, title in MEASURES
    )
    head = ("rows collected later", "first", f"now ({now['date']})")
    return f"{text}\n{table(head, both)}"


def counted(title: str, counts: Mapping[str, Any]) -> str:
    """Reasons with their number of rows, or names with their reason."""
    return table((title, "rows"), ((reason, str(count)) for reason, count in counts.items()))


def page(figures: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [
        INTRODUCTION,
        f"{sample_of(figures)}. {made(figures)}.\n",
        overall(figures),
        HOW.format(weights=wrapped(WEIGHTS), left_out=wrapped(LEFT_OUT)),
        GROUPS,
        *(group(by, g) for by, g in figures["groups"].items() if by != "consistency"),
        OPERATIONS,
        operations(figures, ""),
        LEFT_OUT_CARDS,
        operations(figures, "left_out_"),
        UNSEEN_CARDS,
        unseen(json.loads(UNSEEN.read_text("utf-8"))),
        later(looks()),
        f"## Look-up drafting\n\n{wrapped(arms_sentence(figures['arms']))}\n",
        f"## Failed runs\n\n{wrapped(refusals_sentence(figures['refusals']))}\n",
        refused(figures["refusals"]),
        "## Flagged origins\n",
        "\n".join(f"- {name}: {why}" for name, why in figures["flagged"].items()) + "\n",
        "## Not scored\n",
        counted("reason", figures["excluded"]),
        "## Asked and not answered\n",
        counted("reason", figures["unanswered"]),
        MISSING,
        GATE.format(factor=figures["margins"]["group_factor"]),
    ]
    return "\n".join(parts)


def main() -> int:
    """Write the figures and the page; say what changed."""
    if "--page" not in sys.argv:
        fresh = record(accuracy())
        changes = compare(committed(), fresh) if FIGURES.exists() else None
        for change in changes.worse if changes else ():
            print(f"worse: {change}")
        for change in changes.better if changes else ():
            print(f"better: {change}")
        FIGURES.write_text(json.dumps(fresh, indent=1) + "\n", encoding="utf-8")
        now = {"date": str(date.today()), "figures": figures_now()}
        LATER.write_text(json.dumps({**looks(), "now": now}, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(FIGURES.read_text("utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
