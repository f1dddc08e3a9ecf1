"""Every term of one prediction: value, unit, formula, origin."""

from dataclasses import dataclass, replace

from hwprofiles.provenance import Kind, weakest
from planner.cost.constants import constant, replaced
from planner.cost.deployment import step_coefficients
from planner.cost.drafting import draft_coefficients
from planner.cost.interval import (
    Circumstance,
    fault_risk,
    measured_spread,
    ratio_log_sd,
    uncaptured,
)
from planner.cost.step import StepTime, expert_fraction
from planner.drafters.records import DraftWork
from planner.search.evaluate import Grid, GridResult, at
from planner.search.present import Index, break_even, circumstance, judged, tile_use
from planner.search.question import Question
from planner.search.recommend import settled
from planner.search.records import Term
from planner.search.situation import Situation, situation
from planner.search.sweep import best_drafted
from planner.search.terms import provenance_terms

Group = tuple[str, tuple[Term, ...]]


def _ms(name: str, seconds: float, formula: str, kind: Kind = "fitted", source: str = "") -> Term:
    return Term(
        name=name, value=seconds * 1e3, unit="ms", formula=formula, kind=kind, source=source
    )


def _number(name: str, value: float | str, unit: str, formula: str, kind: Kind = "derived") -> Term:
    return Term(name=name, value=value, unit=unit, formula=formula, kind=kind, source="")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The terms, and what they are about."""

    groups: tuple[Group, ...]
    result: GridResult
    family: str | None
    """Drafter family; None where plain decoding is explained."""
    batch: int
    context_len: int
    """Tokens."""
    draft_len: int


def explain(question: Question) -> Explanation:
    """The best drafted candidate of the question, or plain decoding where none applies.

    Raises:
        InputError, MissingFact, NoFeasiblePlan: as `recommend`.
    """
    s = situation(question)
    with replaced(s.calibrated.constants):
        return _explained(s)


def _explained(asked: Situation) -> Explanation:
    there = settled(asked)
    s, searched = there.situation, there.searched
    found = best_drafted(s, searched)
    result, index = found or (searched.plain, (*s.headline, 0))
    grid = s.grid if found else replace(s.grid, draft_lens=(0,))
    groups: list[Group] = [
        ("What the numbers rest on", provenance_terms(result.deployment, result, s.headline)),
        ("Weights and rows", _weights(s, result, grid, index)),
        ("T_target: one row of each sequence", _step(result.cost.target, index)),
    ]
    if found:
        groups += [
            ("T_verify: 1 + D rows of each sequence", _verify(result, grid, index)),
            ("T_draft", _draft(result, grid, index)),
            ("Acceptance", _acceptance(result, grid, index)),
            ("Speedup", _speedup(result, grid, index)),
        ]
    return Explanation(
        groups=tuple(groups),
        result=result,
        family=result.spec.family if found and result.spec else None,
        batch=grid.batches[index[0]],
        context_len=grid.contexts[index[1]],
        draft_len=grid.draft_lens[index[2]],
    )


def _weights(s: Situation, result: GridResult, grid: Grid, index: Index) -> tuple[Term, ...]:
    d = result.deployment
    w = step_coefficients(d).weights
    batch, rows = grid.batches[index[0]], 1 + grid.draft_lens[index[2]]
    kind = d.arch.params_kind
    terms = [
        _number("model", d.arch.name, "", d.arch.source, kind),
        _number(
            "format", d.weights.name, "", f"{d.weights.bits_per_weight:g} bits", d.weights.kind
        ),
        _number(
            "read by every step", float(w.dense_bytes) / 1e9, "GB", "dense weights, LM head", kind
        ),
        _number("multiplied by each token", float(w.active_weights) / 1e9, "1e9", "active", kind),
        _number("tensor parallel", d.tp, "ranks", ""),
        _number("batch", batch, "sequences", ""),
        _number("context", grid.contexts[index[1]], "tokens", ""),
        _number("verified rows", batch * rows, "tokens", "batch * (1 + D)"),
    ]
    if d.arch.is_moe:
        shares = [float(expert_fraction(w, batch, r)) for r in (1, rows)]
        terms += [
            _number("experts, all", float(w.expert_bytes) / 1e9, "GB", "", kind),
            _number("touched by a plain step", shares[0], "share", "1-(1-k/E)^n_eff", "fitted"),
            _number("touched by a verification", shares[1], "share", "1-(1-k/E)^n_eff", "fitted"),
        ]
    if s.tried:
        terms.append(_number("formats set aside", len(s.tried), "", s.tried[0]))
    return tuple(terms)


def _step(time: StepTime, index: Index) -> tuple[Term, ...]:
    return (
        _ms("matrix products", at(time.gemm, index), "smooth max of bytes/rate and FLOPs/rate"),
        _ms("host memory", at(time.host, index), "offloaded bytes / DRAM rate"),
        _ms("attention", at(time.attention, index), "KV bytes and tiles by kernel path"),
        _ms("all-reduce", at(time.all_reduce, index), "two a layer"),
        _ms("host and launches", at(time.overhead, index), "layers * layer_us + step_us"),
        _ms("sum", at(time.total, index), "T"),
    )


def _verify(result: GridResult, grid: Grid, index: Index) -> tuple[Term, ...]:
    terms = list(_step(result.cost.verify, index))
    round_us = constant("engines", result.deployment.engine, "round_us")
    rewind_s = at(result.cost.rewind_s, index)
    if rewind_s > 0:
        copy = constant("engines", result.deployment.engine, "state_copy_us_per_mib")
        words = "recurrent state out and back, accepted tokens decoded again"
        terms.append(_ms("rewind", rewind_s, words, copy.kind, copy.ref))
    terms += [
        _ms("round", round_us.value * 1e-6, "sampling and rejection", round_us.kind, round_us.ref),
        _ms("T_verify", at(result.cost.verify_s, index), "sum + round (+ rewind)"),
    ]
    use = tile_use(result, grid.draft_lens[index[2]])
    if use is not None:
        terms += [
            Term(
                name="attention kernel",
                value=use.kernel,
                unit="",
                formula=use.note,
                kind=use.kind,
                source=use.source,
            ),
            _number("query rows", use.query_rows, "rows", f"G={use.group_size} * (1 + D)"),
            _number("rows charged", use.rows_charged, "rows", f"ladder {use.ladder}", use.kind),
            _number("KV passes", use.tiles, "", "tiles that stream the cache", use.kind),
            _number("split-KV kept", "yes" if use.split_kv else "no", "", use.note, use.kind),
        ]
    return tuple(terms)


def _draft(result: GridResult, grid: Grid, index: Index) -> tuple[Term, ...]:
    spec, work, d = result.spec, result.work, result.deployment
    if spec is None:
        return ()
    c = draft_coefficients(d, spec, work)
    depth = grid.draft_lens[index[2]]
    passes = work.passes_fixed + work.passes_per_token * depth
    pass_us = constant("engines", d.engine, "pass_us")
    return (
        _number("drafter", spec.drafter_id, "", spec.family, spec.kind),
        _number("D", depth, "tokens", ""),
        _number("passes a round", passes, "", _passes(work)),
        _number("read by a pass", float(c.pass_bytes) / 1e9, "GB", "layers and LM head", spec.kind),
        _ms(
            "launch of a pass", float(c.pass_s), "pass_us * sqrt(layers)", pass_us.kind, pass_us.ref
        ),
        _ms("T_draft", at(result.cost.draft_s, index), "passes * pass"),
    )


def _passes(work: DraftWork) -> str:
    return f"{work.passes_fixed:g} + {work.passes_per_token:g}*D"


def _acceptance(result: GridResult, grid: Grid, index: Index) -> tuple[Term, ...]:
    curve = result.curves[index[1]]
    depth = grid.draft_lens[index[2]]
    low, high = curve.interval(depth)
    first = Term(
        name="a_1",
        value=curve.first,
        unit="share",
        formula="first drafted token accepted",
        kind=curve.kind,
        source=curve.source,
    )
    return (
        first,
        _number("r", curve.decay, "", "a_k = a_1 * r^(k-1)", "fitted"),
        _number("draft share", curve.draft_share, "share", "rounds that draft", curve.kind),
        _number("E[L]", at(result.tokens, index), "tokens", "1 + S_1 + ... + S_D", curve.kind),
        _number("E[L], 80 %", f"{low:.2f}..{high:.2f}", "tokens", "log-normal", curve.kind),
    )


def _spread_term(where: Circumstance, ratio_sd: float) -> Term:
    measured = measured_spread(where)
    source = measured.ref if measured else ""
    kind: Kind = measured.kind if measured else "fitted"
    formula = "measured on this engine" if measured else "residuals of published rows"
    return Term(
        name="spread of log R", value=ratio_sd, unit="", formula=formula, kind=kind, source=source
    )


def _speedup(result: GridResult, grid: Grid, index: Index) -> tuple[Term, ...]:
    gain, seen = judged(result, grid, index)
    where = circumstance(result, grid, index)
    ratio_sd, tokens_sd = ratio_log_sd(where), at(result.log_sd, index)
    spec_kind: Kind = result.spec.kind if result.spec else "derived"
    kind = weakest(["fitted", result.curves[index[1]].kind, spec_kind])
    round_s = at(result.cost.draft_s, index) + at(result.cost.verify_s, index)
    slow, share = uncaptured(where, gain, round_s)
    return (
        _number("R", at(result.cost.ratio, index), "", "(T_draft + T_verify)/T_target", kind),
        _number(
            "break-even E[L]", break_even(result, index), "tokens", "p*R + (1-p) + look-up", kind
        ),
        _number("speedup", gain, "x", "E[L] / break-even", kind),
        _spread_term(where, ratio_sd),
        _number("spread of log E[L]", tokens_sd, "", "acceptance", "fitted"),
        _number("80 % interval", f"{seen.low:.2f}..{seen.high:.2f}", "x", "both spreads", "fitted"),
        _number(
            "risk of an engine fault", fault_risk(where), "share", "published losers", "fitted"
        ),
        _number("speedup, drafter not captured", slow, "x", f"chance {share:.0%}", "assumed"),
        _number("verdict", seen.verdict, "", "(1 - risk) * P(speedup >= 1.03)", kind),
    )
