"""One answer recomputed by hand from its terms, each step held against what the planner says."""

import math
from collections.abc import Iterator

from planner.search.explain import explain
from planner.search.question import Question
from planner.search.records import Term
from tools.site_pages.markdown import table, text

QUESTION = Question(model="Qwen/Qwen3-8B", gpu="4090", calibration="none")
COMMAND = "planner explain --model Qwen/Qwen3-8B --gpu 4090 --calibration none"
NEAR = 0.02
"""How far the recomputed figure may be from the planner's, as a share."""


class Terms:
    """The terms of an explanation, by group and name."""

    def __init__(self) -> None:
        found = explain(QUESTION)
        self.draft_len = found.draft_len
        self._terms: dict[tuple[str, str], Term] = {
            (group.partition(":")[0], term.name): term
            for group, terms in found.groups
            for term in terms
        }

    def of(self, group: str, name: str) -> float:
        """A number, in the unit that `planner explain` shows."""
        value = self._terms[group, name].value
        if isinstance(value, str):
            raise TypeError(f"{group}: {name} is words")
        return float(value)

    def words(self, group: str, name: str) -> str:
        """A term that is not a number."""
        return str(self._terms[group, name].value)


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of the page."""
    yield "worked.md", _page(Terms())


def _same(said: float, computed: float, what: str) -> float:
    """The planner's figure.

    Raises:
        ValueError: the arithmetic of the page does not give it.
    """
    if abs(said - computed) > NEAR * abs(said):
        raise ValueError(f"{what}: the page computes {computed:.4g}, the planner says {said:.4g}")
    return said


def _page(t: Terms) -> str:
    rests = "What the numbers rest on"
    steps = [*_target(t, rests), *_round(t), *_tokens(t), *_result(t)]
    head = ("step", "formula", "with its numbers", "module")
    return (
        "# One number, step by step\n\n"
        f"What `{COMMAND}` prints, done by hand: D = {t.draft_len}, batch 1, context 4096. The "
        "page is made anew with the site, and fails where the arithmetic does not give what the "
        "planner says. [Method](method.md) has the reasons.\n\n"
        + table(head, steps)
        + "\nAll of it rests on E[L], which is the one number that your traffic decides: "
        "`--tokens-per-round` or `--acceptance` put yours in its place, and R stays as it is.\n"
    )


def _target(t: Terms, rests: str) -> Iterator[tuple[str, str, str, str]]:
    size, rate = t.of(rests, "weights of one step"), t.of(rests, "DRAM bandwidth")
    share = t.of(rests, "weight read efficiency")
    products = _same(t.of("T_target", "matrix products"), 1e3 * size / (rate * share), "weights")
    yield (
        "read the weights",
        "bytes / (bandwidth * efficiency)",
        f"{size:.2f} GB / ({rate:.0f} GB/s * {share:g}) = **{products:.2f} ms**",
        "`planner/cost/step.py`",
    )
    attention, host = t.of("T_target", "attention"), t.of("T_target", "host and launches")
    target = _same(t.of("T_target", "sum"), products + attention + host, "T_target")
    yield (
        "T_target, a plain step",
        "products + attention + host",
        f"{products:.2f} + {attention:.2f} + {host:.2f} = **{target:.2f} ms**, so "
        f"{1e3 / target:.1f} tok/s",
        "`planner/cost/step.py`, `planner/cost/attention.py`",
    )


def _round(t: Terms) -> Iterator[tuple[str, str, str, str]]:
    names = ("matrix products", "attention", "host and launches", "round")
    parts = [t.of("T_verify", name) for name in names]
    verify = _same(t.of("T_verify", "T_verify"), sum(parts), "T_verify")
    kernel = t.words("T_verify", "attention kernel")
    yield (
        f"T_verify, {1 + t.draft_len} rows",
        "products + attention + host + sampling",
        f"{' + '.join(f'{part:.2f}' for part in parts)} = **{verify:.2f} ms**; the weights are "
        f"read once, {text(kernel)} reads the cache {t.of('T_verify', 'KV passes'):.0f} times",
        "`planner/cost/round.py`, `planner/tile/ladder.py`",
    )
    draft = t.of("T_draft", "T_draft")
    launch, passes = t.of("T_draft", "launch of a pass"), t.of("T_draft", "passes a round")
    yield (
        "T_draft",
        "passes * (bytes / rate + launch)",
        f"{passes:.0f} pass over {t.of('T_draft', 'read by a pass'):.2f} GB in "
        f"{draft / passes - launch:.2f} ms, and {launch:.2f} ms to launch it: **{draft:.2f} ms**",
        "`planner/cost/draft.py`, `planner/cost/drafting.py`",
    )
    target = t.of("T_target", "sum")
    ratio = _same(t.of("Speedup", "R"), (draft + verify) / target, "R")
    yield (
        "R, cost of a round",
        "(T_draft + T_verify) / T_target",
        f"({draft:.2f} + {verify:.2f}) / {target:.2f} = **{ratio:.3f}**, which is also the "
        "break-even",
        "`planner/cost/round.py`",
    )


def _tokens(t: Terms) -> Iterator[tuple[str, str, str, str]]:
    first, decay = t.of("Acceptance", "a_1"), t.of("Acceptance", "r")
    chances = [first * decay**k for k in range(t.draft_len)]
    reached = [math.prod(chances[: k + 1]) for k in range(t.draft_len)]
    tokens = _same(t.of("Acceptance", "E[L]"), 1 + sum(reached), "E[L]")
    yield (
        "S_k, at least k accepted",
        "a_1 * ... * a_k, a_k = a_1 * r^(k-1)",
        f"a_1 = {first:.3f}, r = {decay:g}: {', '.join(f'{s:.3f}' for s in reached)}",
        "`planner/acceptance/curve.py`",
    )
    yield (
        "E[L], tokens a round",
        "1 + S_1 + ... + S_D",
        f"1 + {sum(reached):.3f} = **{tokens:.3f}**",
        "`planner/acceptance/curve.py`",
    )


def _result(t: Terms) -> Iterator[tuple[str, str, str, str]]:
    tokens, ratio = t.of("Acceptance", "E[L]"), t.of("Speedup", "R")
    gain = _same(t.of("Speedup", "speedup"), tokens / ratio, "speedup")
    yield (
        "speedup",
        "E[L] / R",
        f"{tokens:.3f} / {ratio:.3f} = **{gain:.2f}x**",
        "`planner/cost/round.py`",
    )
    spreads = [t.of("Speedup", f"spread of log {name}") for name in ("R", "E[L]")]
    yield (
        "80 % interval",
        "both spreads, in the logarithm",
        f"sqrt({spreads[0]:.3f}^2 + {spreads[1]:.3f}^2) = {math.hypot(*spreads):.3f}, centred "
        f"below the point: **{text(t.words('Speedup', '80 % interval'))}x**",
        "`planner/cost/interval.py`",
    )
