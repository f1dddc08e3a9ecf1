"""From a scenario to what the vectorised evaluation needs; everything that repeats is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from hwprofiles.errors import InputError, MissingFact
from hwprofiles.provenance import Kind, weakest
from planner.acceptance.constants import family_decay
from planner.acceptance.curve import AcceptanceCurve, curve_from_positions
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.cost.constants import Constant, Path, replaced
from planner.cost.deployment import (
    Deployment,
    all_reduce_lines,
)
from planner.cost.drafting import round_coefficients
from planner.cost.interval import Circumstance
from planner.cost.ledger import has_unknown_cache, memory, room, sequence_bytes
from planner.cost.quantised import no_int8_tensor_cores
from planner.cost.round import RoundCoefficients
from planner.cost.tiles import DeploymentTiles, deployment_tiles
from planner.drafters.records import NO_WORK, DrafterSpec, DraftWork
from planner.drafters.registry import family_of, work_of
from planner.drafters.select import drafters_for
from planner.predict.scenario import Scenario, SetupKey
from planner.search.calibrated import Calibrated, Subject, calibrated, on_machine
from planner.search.doubts import context_doubts, limit_doubts
from planner.search.machine import Machine, machine_of
from planner.search.setup import (
    Placement,
    Target,
    default_engine,
    engine_named,
    engine_of,
    front_end,
    gpu_counts,
    place,
    target_of,
)
from planner.workload.parse import parse_workload
from planner.workload.records import Workload

POSITIONS_LOG_SD = 0.05
"""Spread of log E[L] when a caller states survival by position without counts (assumed)."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A deployment with its drafter, ready to be evaluated."""

    placement: Placement
    coefficients: RoundCoefficients
    tiles: DeploymentTiles
    spec: DrafterSpec | None
    work: DraftWork
    kind: Kind
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    constants: Mapping[Path, Constant]
    """Measured ones in force for these lines."""
    counted_gpus: bool
    """Whether the text that names the card says how many there are."""

    @property
    def deployment(self) -> Deployment:
        """The placed target."""
        return self.placement.deployment


def _spec(key: SetupKey, d: Deployment) -> tuple[DrafterSpec | None, tuple[str, ...]]:
    """(drafter, reasons against it)."""
    if key.drafter == "none":
        return None, ()
    family, families = family_of(key.drafter), (key.drafter,)
    choice = drafters_for(d.arch, families=families, drafter_id=key.drafter_id, engine=d.engine)
    if choice.specs:
        return family.in_format(choice.specs[0], d.weights), ()
    why = choice.not_applicable.get(key.drafter, "no drafter of this family is known")
    elsewhere = drafters_for(d.arch, families=families).specs
    sizes = "those served by other engines" if elsewhere else "the family's usual form"
    spec = elsewhere[0] if elsewhere else family.template(d.arch)
    reasons = (f"{key.drafter}: {why}; sizes of {sizes} are used",)
    return family.in_format(spec, d.weights), reasons


def _card_kind(d: Deployment) -> Kind:
    kinds = d.device.kinds
    named = ("dram_bytes_per_s", "sm_count", "clock_hz")
    return weakest([kinds.get(k, "datasheet") for k in named] + [d.arch.params_kind, "fitted"])


@dataclass(frozen=True, slots=True)
class _Named:
    """The names of a line, looked up."""

    target: Target
    machine: Machine
    engine: tuple[str, str | None]
    notes: tuple[str, ...] = ()


def _named(key: SetupKey) -> _Named:
    # A line is data from a stranger: it names models and cards, never files.
    target = target_of(key.model, key.quant, key.kv_dtype, gpu=key.gpu, own_files=False)
    machine = machine_of(key.gpu, key.host, own_files=False)
    usual = default_engine(target, machine.device, key.wanted.offload)
    said = (key.engine or "").partition("==")[0]
    if front_end(said):
        usual = "llama.cpp"
    if said.strip() and engine_named(said) is None:
        note = f"engine {ascii(said)[1:-1][:60]} is not modelled: the times are those of {usual}"
        return _Named(target, machine, (usual, None), (note,))
    return _Named(target, machine, engine_of(key.engine) or (usual, None))


def setup(key: SetupKey, batch: int, context: int) -> Setup | str:
    """The setup, or the message of the error that its inputs give.

    Lines that differ only in batch and context share a setup once the number of GPUs is known.
    """
    if key.wanted.offload is not None:
        return _setup_or_message(key)
    count = _smallest(key, batch, context)
    return count if isinstance(count, str) else _on(key, count)


@lru_cache(maxsize=16384)
def _on(key: SetupKey, count: int) -> Setup | str:
    return _setup_or_message(replace(key, wanted=replace(key.wanted, num_gpus=count)))


def _smallest(key: SetupKey, batch: int, context: int) -> int | str:
    """Smallest number of GPUs that holds the target at a batch and context; the first where none
    does, so that its timings can still be given."""
    tried = _tried(key)
    if isinstance(tried, str):
        return tried
    for found in tried:
        if batch * _each(found, context) <= found.spare_bytes:
            return found.count
    return tried[0].count


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """The target on one number of GPUs."""

    count: int
    deployment: Deployment
    spare_bytes: float
    """Left beside the weights on the fullest GPU."""


@lru_cache(maxsize=8192)
def _tried(key: SetupKey) -> tuple[_Tried, ...] | str:
    try:
        named = _named(key)
        found: list[_Tried] = []
        for count in gpu_counts(named.machine, key.wanted):
            exact = replace(key.wanted, num_gpus=count)
            d = place(named.target, named.machine, named.engine, exact).deployment
            if found and not _linked(d):
                break
            found.append(_Tried(count, d, room(d) - float(memory(d, None, 0, 0, 0).total.max())))
        return tuple(found)
    except InputError as error:
        return str(error)


def _linked(d: Deployment) -> bool:
    """Whether an all-reduce over this many of the device is known."""
    try:
        all_reduce_lines(d.device, d.tp)
    except MissingFact:
        return False
    return True


@lru_cache(maxsize=65536)
def _each(tried: _Tried, context: int) -> float:
    """Bytes of one sequence on the fullest GPU."""
    d = tried.deployment
    return float(sequence_bytes(d, context).max()) / d.attention_replicas


@lru_cache(maxsize=8192)
def _setup_or_message(key: SetupKey) -> Setup | str:
    try:
        return _setup(key)
    except InputError as error:
        return str(error)


def _setup(key: SetupKey) -> Setup:
    named = _named(key)
    subject = Subject(
        device=named.machine.device,
        power_limit_w=key.wanted.power_limit_w or named.machine.power_limit_w,
        engine=named.engine,
        model=named.target.arch.name,
        uses_host=key.wanted.offload is not None,
    )
    found = calibrated(key.shelf, subject, refuse=False)
    named = replace(named, machine=on_machine(named.machine, found.constants))
    with replaced(found.constants):
        return _placed(key, named, found)


def _placed(key: SetupKey, named: _Named, found: Calibrated) -> Setup:
    target, machine, engine = named.target, named.machine, named.engine
    placement = place(target, machine, engine, key.wanted)
    spec, against = _spec(key, placement.deployment)
    if spec and key.wanted.offload:
        reserve = replace(key.wanted, reserve_bytes=spec.weight_bytes / placement.deployment.tp)
        placement = place(target, machine, engine, reserve)
    d = placement.deployment
    work = work_of(spec) if spec else NO_WORK
    tiles, notes = deployment_tiles(d)
    limit = limit_doubts(d.device, power_limit_w=key.wanted.power_limit_w)
    warnings = [*named.notes, *found.notes, *target.assumptions, *machine.notes, *limit, *notes]
    if spec and key.drafter_id and not spec.known:
        name = ascii(key.drafter_id)[1:-1][:80]
        warnings.append(f"drafter {name} is not in the catalog: its family's usual sizes are used")
    if has_unknown_cache(d.arch):
        warnings.append("no rule is known for part of this model's cache: memory is a lower bound")
    return Setup(
        placement=placement,
        coefficients=round_coefficients(d, spec, work),
        tiles=tiles,
        spec=spec,
        work=work,
        kind=weakest([_card_kind(d), spec.kind if spec else "fitted"]),
        reasons=against,
        warnings=tuple(warnings),
        constants=found.constants,
        counted_gpus=machine.count is not None,
    )


@lru_cache(maxsize=4096)
def _workload(text: str | None) -> Workload:
    return parse_workload(text)


def _curve(spec: DrafterSpec, target: str, s: Scenario) -> AcceptanceCurve:
    if s.positions is not None:
        decay = family_decay(spec.family)
        return curve_from_positions(s.positions, decay=decay, log_sd=POSITIONS_LOG_SD)
    workload = _workload(s.workload)
    temperature = s.temperature if s.temperature is not None else workload.temperature
    return prior(
        AcceptanceQuery(
            family=spec.family,
            workload=workload.name,
            temperature=temperature,
            thinking=bool(workload.thinking),
            drafter_id=spec.drafter_id,
            target_name=target,
            draft_len=s.draft_len if s.tree_nodes else None,
            context_len=s.context_len,
            drafter_max_position=spec.max_position,
            tree_nodes=s.tree_nodes,
            max_draft_len=spec.max_draft_len,
            exclude_origins=s.hidden_origins,
        )
    )


@dataclass(frozen=True, slots=True)
class Expectation:
    """Acceptance at one D."""

    tokens_drafted: float
    """E[L] over drafted rounds."""
    draft_share: float
    drafted_len: float
    """Mean drafted length of a drafted round."""
    log_sd: float
    kind: Kind


@lru_cache(maxsize=65536)
def _at(curve: AcceptanceCurve, draft_len: int) -> tuple[float, float, float]:
    """(E[L] over drafted rounds, mean drafted length, spread of log E[L])."""
    tokens = float(curve.tokens_per_drafted_round(draft_len))
    return tokens, float(curve.drafted_len(draft_len)), curve.log_sd_at(draft_len)


def expectation(spec: DrafterSpec | None, target: str, s: Scenario) -> Expectation:
    """What acceptance to count with: the stated one, else the prior."""
    if spec is None:
        return Expectation(1.0, 1.0, 0.0, 0.0, "derived")
    curve = _curve(spec, target, s)
    share = s.draft_share if s.draft_share is not None else curve.draft_share
    tokens, drafted, log_sd = _at(curve, s.draft_len)
    if s.tokens_per_round is None:
        return Expectation(tokens, share, drafted, log_sd, curve.kind)
    # A stated E[L] is the mean over all rounds; the drafted rounds must have given the excess.
    told = max(1.0, s.tokens_per_round)
    if s.draft_share is None and curve.draft_share == 1.0:
        share = 1.0
    tokens = 1.0 + (told - 1.0) / max(share, 1e-3)
    if tokens > 1.0 + s.draft_len:
        share = min(1.0, (told - 1.0) / max(1, s.draft_len))
        tokens = 1.0 + (told - 1.0) / max(share, 1e-3)
    return Expectation(tokens, share, drafted, 0.0, "measured")


def line_doubts(found: Setup, s: Scenario) -> tuple[str, ...]:
    """What to know of one line's own numbers before trusting its answer."""
    doubts = context_doubts(found.deployment.arch, s.context_len) + _count_doubts(found, s)
    if s.workload is not None and s.draft_len:
        doubts += _workload(s.workload).assumptions
    if s.tokens_per_round is not None and s.tokens_per_round > s.draft_len + 1:
        most = s.draft_len + 1
        doubts += (
            f"tokens_per_round {s.tokens_per_round:g} is more than a round of {most} tokens can "
            "yield; it is used as stated",
        )
    return doubts


def _count_doubts(found: Setup, s: Scenario) -> tuple[str, ...]:
    """A number of GPUs that nobody stated."""
    wanted, count = s.setup.wanted, found.deployment.num_gpus
    if found.counted_gpus or wanted.num_gpus is not None or count <= (wanted.tp or 1):
        return ()
    return (
        f"num_gpus {count} assumed, the smallest number that holds the model at this batch and "
        'context; state num_gpus, or gpu as "1x..."',
    )


def circumstance(found: Setup, s: Scenario) -> Circumstance:
    """What decides how well R is known for this line."""
    d = found.deployment
    offload, moe = d.offload is not None, d.arch.is_moe
    family = s.setup.drafter
    old = no_int8_tensor_cores(d.device)
    return Circumstance(d.engine, family, moe, s.batch, d.tp, offload, s.context_len, old)
