"""The numbers an answer rests on, and every term of one prediction, as lines to print."""

from collections.abc import Sequence

from hwprofiles.provenance import Kind
from planner.cost.constants import constant
from planner.cost.deployment import Deployment, format_class, weight_coefficients
from planner.search.evaluate import GridResult
from planner.search.records import Term


def _device_terms(d: Deployment) -> list[Term]:
    card = d.device
    kind = card.kinds.get
    flops: Kind = kind("flops.bf16", kind("flops.fp16", "derived"))
    return [
        Term(
            name="DRAM bandwidth",
            value=card.dram_bytes_per_s / 1e9,
            unit="GB/s",
            formula="profile",
            kind=kind("dram_bytes_per_s", "datasheet"),
            source=card.id,
        ),
        Term(
            name="matrix rate, bf16",
            value=(card.flops.get("bf16") or card.flops.get("fp16") or 0.0) / 1e12,
            unit="TFLOP/s",
            formula="profile",
            kind=flops,
            source=card.id,
        ),
        Term(
            name="VRAM",
            value=card.vram_mib,
            unit="MiB",
            formula="profile",
            kind=kind("vram_mib", "datasheet"),
            source=card.id,
        ),
    ]


def _constant_terms(d: Deployment) -> list[Term]:
    row = format_class(d.weights)
    paths = (
        ("weight read efficiency", ("formats", row, "bandwidth_fraction"), "of datasheet"),
        ("matrix efficiency", ("formats", row, "flops_fraction"), "of peak"),
        ("host time of a layer", ("engines", d.engine, "layer_us"), "us"),
        ("host time of a round", ("engines", d.engine, "round_us"), "us"),
        ("host time of a drafter pass", ("engines", d.engine, "pass_us"), "us"),
    )
    found = []
    for name, path, unit in paths:
        c = constant(*path)
        found.append(
            Term(name=name, value=c.value, unit=unit, formula="constant", kind=c.kind, source=c.ref)
        )
    return found


def assumed_lines(terms: Sequence[Term]) -> tuple[str, ...]:
    """The assumed ones among the numbers, each as a line."""
    return tuple(
        f"{term.name} = {_value(term.value)} {term.unit}".rstrip()
        + (f" ({term.source})" if term.source else "")
        for term in terms
        if term.kind == "assumed"
    )


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def provenance_terms(
    d: Deployment, chosen: GridResult | None, headline: tuple[int, int]
) -> tuple[Term, ...]:
    """Each number that the answer rests on, with its origin."""
    weights = weight_coefficients(d)
    terms = [
        *_device_terms(d),
        Term(
            name="weights of one step",
            value=float(weights.dense_bytes + weights.expert_bytes) / 1e9,
            unit="GB a rank",
            formula="shape x bits",
            kind=d.arch.params_kind,
            source=d.arch.source,
        ),
        *_constant_terms(d),
    ]
    if chosen and chosen.spec:
        curve = chosen.curves[headline[1]]
        terms += [
            Term(
                name="first-token acceptance",
                value=curve.first,
                unit="share",
                formula="a_k = a_1 * r^(k-1)",
                kind=curve.kind,
                source=curve.source,
            ),
            Term(
                name="drafter size",
                value=chosen.spec.weight_bytes / 1e9,
                unit="GB",
                formula=chosen.spec.drafter_id,
                kind=chosen.spec.kind,
                source=chosen.spec.source,
            ),
        ]
    return tuple(terms)
