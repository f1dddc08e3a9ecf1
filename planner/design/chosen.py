"""One design in full: its config, both limits, what a step of G does, what acceptance does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.acceptance.curve import AcceptanceCurve, solve_first
from planner.arch.hf import read_hf_config
from planner.arch.mixers import Heads
from planner.arch.records import ModelArch
from planner.design.config import config_of
from planner.design.describe import Speeds, speeds_with
from planner.design.evaluate import Candidate, admitted, serve
from planner.design.limits import draft_limits
from planner.design.pool import Ground, kv_bytes
from planner.design.quality import classify, gaps
from planner.design.records import Design, Detail, GroupStep, Sensitivity
from planner.design.shape import FFN_MATRICES, Mixers, Shape, Window, arch_of
from planner.design.space import MULTIPLE
from planner.design.targets import Curves, Load, Serving, deployment, illegal
from planner.design.variants import Variant
from planner.drafters.records import DrafterSpec
from planner.drafters.registry import work_of
from planner.search.evaluate import Drafted, Grid, Limits, evaluate_grid, target_grid
from planner.search.present import evaluation
from planner.search.records import Evaluation

NO_TILE_RULE = 1 << 20


@dataclass(frozen=True, slots=True)
class Subject:
    """A design of the front with what it was made from."""

    design: Design
    shape: Shape
    variant: Variant


@dataclass(frozen=True, slots=True)
class AtEnd:
    """Acceptance at one end of its 80 % interval, stated at the D that was chosen."""

    inner: Curves
    draft_len: int
    high: bool

    def curve(self, spec: DrafterSpec, context: int) -> AcceptanceCurve:
        """The curve whose E[L] at the chosen D is that end."""
        expected = self.inner.curve(spec, context)
        at = max(1, self.draft_len)
        tokens = expected.interval(at)[1 if self.high else 0]
        drafted = 1.0 + (tokens - 1.0) / max(expected.draft_share, 1e-9)
        first, decay, cap = solve_first(expected.decay, min(drafted, at + 1.0), at)
        return replace(expected, first=first, decay=decay, cap=cap, head=())


def speeds_of(arch: ModelArch, candidate: Candidate, servings: Sequence[Serving]) -> Speeds:
    """One architecture with one drafter on every load."""
    return speeds_with([serve(s, arch, [candidate]) for s in servings], 0)


def detail(subject: Subject, ground: Ground, why: str) -> Detail:
    """The record of a chosen design; its architecture is read back from its own config.json."""
    config = config_of(subject.variant.shape(subject.shape))
    arch = read_hf_config(config, name=subject.design.name, source="planner design")
    candidate = Candidate(subject.variant, arch)
    lifted = [replace(s, tile_rows=NO_TILE_RULE) for s in ground.servings]
    return Detail(
        design=subject.design,
        why=why,
        config=config,
        limits=tuple(draft_limits(s, arch) for s in ground.servings),
        evaluations=evaluations(arch, candidate, subject.design, ground),
        without_tile_rule=tuple(speeds_of(arch, candidate, lifted).draft_len),
        steps=group_steps(subject, ground),
        sensitivity=_sensitivity(arch, candidate, subject.design, ground),
        not_covered=gaps(ground.table, subject.shape, float(arch.params_total)),
    )


def evaluations(
    arch: ModelArch, candidate: Candidate, design: Design, ground: Ground
) -> tuple[Evaluation, ...]:
    """Each load as `recommend` records it, with as many sequences as really run."""
    return tuple(
        _evaluation((s, load), arch, candidate, (served.draft_len, int(served.running)))
        for (s, load), served in zip(ground.loads, design.served, strict=True)
    )


def _evaluation(
    place: tuple[Serving, Load],
    arch: ModelArch,
    candidate: Candidate,
    at: tuple[int, int],
) -> Evaluation:
    (s, load), (draft_len, running) = place, at
    d = deployment(s, arch)
    grid = Grid((max(1, running),), (load.context_len,), admitted(s, d))
    spec = candidate.variant.spec(candidate.arch, s.weights, s.engine)
    drafted = Drafted()
    if spec is not None:
        drafted = Drafted(spec, work_of(spec), (s.acceptance.curve(spec, load.context_len),))
    found = evaluate_grid(target_grid(d, grid), drafted, Limits(s.tile_rows))
    return evaluation(found, grid, (0, 0, grid.draft_lens.index(draft_len)), None)


def _stepped(mixers: Mixers, factor: float) -> Mixers | None:
    """The mixers with more or fewer KV heads; None where that does not go."""
    full = mixers.full
    if not isinstance(full, Heads):
        return None
    kv_heads = full.num_kv_heads * factor
    if kv_heads < 1 or kv_heads != int(kv_heads) or full.num_heads % int(kv_heads):
        return None
    heads = replace(full, num_kv_heads=int(kv_heads))
    other = mixers.other
    if isinstance(other, Window) and other.heads == full:
        other = replace(other, heads=heads)
    return replace(mixers, full=heads, other=other)


def with_mixers(shape: Shape, mixers: Mixers, params: float) -> Shape:
    """The shape with other mixers, the FFN width spending the same parameters."""
    moved = replace(shape, mixers=mixers)
    routed = shape.routed
    bare = replace(
        moved, ffn_width=0, routed=routed and replace(routed, expert_width=0, shared_width=0)
    )
    blocks = 1
    if routed is not None:
        blocks = routed.num_experts + routed.shared_width // max(1, routed.expert_width)
    per_unit = shape.num_layers * FFN_MATRICES * shape.hidden_size * blocks
    free = params - arch_of(bare).params_total
    width = max(1, round(free / per_unit / MULTIPLE)) * MULTIPLE
    if routed is None:
        return replace(moved, ffn_width=width)
    shared = routed.shared_width // max(1, routed.expert_width) * width
    return replace(moved, routed=replace(routed, expert_width=width, shared_width=shared))


def group_steps(subject: Subject, ground: Ground) -> tuple[GroupStep, ...]:
    """One step of G down and one up, each where it is legal on every deployment."""
    found = []
    for factor in (2.0, 0.5):
        mixers = _stepped(subject.shape.mixers, factor)
        if mixers is None:
            continue
        shape = with_mixers(subject.shape, mixers, subject.design.params_total)
        arch = arch_of(subject.variant.shape(shape))
        if any(illegal(s, arch) for s in ground.servings):
            continue
        found.append(_group_step(subject, shape, arch, ground))
    return tuple(found)


def _group_step(subject: Subject, shape: Shape, arch: ModelArch, ground: Ground) -> GroupStep:
    speeds = speeds_of(arch, Candidate(subject.variant, arch), ground.servings)
    before = subject.design
    rates = [
        x.tok_s_gpu * s.num_gpus for x, (s, _) in zip(before.served, ground.loads, strict=True)
    ]
    change = tuple(new / old - 1.0 for new, old in zip(speeds.rate, rates, strict=True))
    kv = float(kv_bytes(arch, ground.servings[0].kv_dtype)) / before.kv_bytes_per_token - 1.0
    risk = str(classify(ground.table, shape, np.array([float(arch.params_total)]))[0])
    limits = [draft_limits(s, arch).draft_len_tile for s in ground.servings for _ in s.loads]
    full = shape.mixers.full
    lens = tuple(int(n) for n in speeds.draft_len)
    return GroupStep(
        group_size=shape.mixers.group_size,
        num_kv_heads=full.num_kv_heads if isinstance(full, Heads) else 1,
        kv_change=kv,
        speed_change=change,
        draft_len=lens,
        draft_len_tile=tuple(limits),
        risk=risk,
        says=_sentence(before, shape.mixers.group_size, kv, (change, lens, limits, risk), ground),
    )


def _sentence(
    before: Design,
    group: int,
    kv: float,
    after: tuple[Sequence[float], Sequence[int], Sequence[int], str],
    ground: Ground,
) -> str:
    """`G 8 -> 16: KV -50 %, tile D 15 -> 7, ...: run this ablation`."""
    change, lens, limits, risk = after
    at = max(range(len(change)), key=lambda i: abs(change[i]))
    s, load = ground.loads[at]
    text = (
        f"G {before.shape.group_size} -> {group}: KV {kv:+.0%}, tile D "
        f"{before.served[at].draft_len_tile} -> {limits[at]}, best D "
        f"{before.served[at].draft_len} -> {lens[at]} and speed {change[at]:+.0%} at batch "
        f"{load.batch} on {s.label}"
    )
    if risk == before.risk:
        return f"{text}; class {risk} stays"
    return f"{text}; class {before.risk} -> {risk}: run the ablation"


def _sensitivity(
    arch: ModelArch, candidate: Candidate, design: Design, ground: Ground
) -> tuple[Sensitivity, ...]:
    found = []
    for i, (s, load) in enumerate(ground.loads):
        depth = design.served[i].draft_len
        spec = candidate.variant.spec(candidate.arch, s.weights, s.engine)
        if spec is None or depth == 0:
            continue
        curve = s.acceptance.curve(spec, load.context_len)
        low, high = curve.interval(depth)
        ends = [
            speeds_of(
                arch,
                candidate,
                [replace(s, loads=(load,), acceptance=AtEnd(s.acceptance, depth, high=end))],
            )
            for end in (False, True)
        ]
        mine = design.served[i]
        found.append(
            Sensitivity(
                load=i,
                tokens_per_round=(low, curve.tokens_per_round(depth), high),
                draft_len=(int(ends[0].draft_len[0]), depth, int(ends[1].draft_len[0])),
                speedup=(
                    ends[0].rate[0] / ends[0].plain_rate[0],
                    mine.speedup,
                    ends[1].rate[0] / ends[1].plain_rate[0],
                ),
            )
        )
    return tuple(found)
