"""`planner design`: the architecture, its heads and its drafter, chosen before pretraining."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from planner.cli.options import counts
from planner.cli.progress import working
from planner.design.answer import design
from planner.design.question import DEFAULT_OBJECTIVES, DesignQuestion, TargetAsked
from planner.design.records import DesignResult, Objective
from planner.design.shape import AttentionFamily
from planner.design.targets_file import read_targets
from planner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Texts = list[str] | None
SEARCH_GROUP = "planner.design_search"
"""Entry-point group of samplers for spaces that are too large to go through."""
CHECK_GROUP = "planner.config_check"
"""Entry-point group of programs that read a config.json and say what they make of it."""
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def command(
    *,
    params: Annotated[
        str | None, typer.Option("--params", metavar="N", help="Parameters: 8B, 500M.")
    ] = None,
    active: Annotated[
        str | None, typer.Option("--active", metavar="N", help="Of one token; a routed design.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="X", help="Deviation allowed: 0.03 is 3 %.")
    ] = 0.03,
    source: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="Model or config.json to vary.")
    ] = None,
    vary: Annotated[
        Texts, typer.Option("--vary", metavar="AXES", help="Axes to vary; all if absent.")
    ] = None,
    values: Annotated[
        Texts, typer.Option("--set", metavar="AXIS=LIST", help="Values of an axis. Repeatable.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="MODEL", help="Published shape to compare.")
    ] = None,
    attention: Annotated[
        str | None, typer.Option("--attention", metavar="LIST", help="gqa, window, mla, linear.")
    ] = None,
    mtp: Annotated[
        str, typer.Option("--mtp", metavar="LIST", help="MTP depths to try; 0: not allowed.")
    ] = "1,3",
    drafter: Annotated[
        str | None, typer.Option("--drafter", metavar="LIST", help="Drafter families allowed.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="MODEL@GPU", help="Keep that model's time per token."),
    ] = None,
    targets_file: Annotated[
        Path | None,
        typer.Option("--targets", metavar="FILE.yaml", help="Deployments with weights, limits."),
    ] = None,
    gpu: Annotated[
        Texts, typer.Option("--gpu", metavar="[Nx]NAME", help="Card. Repeatable.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME[==VER]", help="Serving engine.")
    ] = None,
    tp: Annotated[
        int | None, typer.Option("--tp", metavar="N", min=1, help="GPUs that share each layer.")
    ] = None,
    batch: Annotated[
        str, typer.Option("--batch", metavar="LIST", help="Sequences over the deployment.")
    ] = "1,32,256",
    context: Annotated[
        str, typer.Option("--context", metavar="LIST", help="Tokens of context.")
    ] = "32K",
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", help="What is generated.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", metavar="X", help="Sampling temperature.")
    ] = None,
    quant: Annotated[
        str | None, typer.Option("--quant", metavar="NAME", help="Weight format when served.")
    ] = None,
    kv_dtype: Annotated[
        str | None, typer.Option("--kv-dtype", metavar="NAME", help="Element of the KV cache.")
    ] = None,
    slo: Annotated[
        float | None, typer.Option("--max-tpot", metavar="MS", help="Longest time per token, ms.")
    ] = None,
    tile_rows: Annotated[
        int, typer.Option("--tile-rows", metavar="N", min=1, help="Rows G*(1+D) may fill.")
    ] = 128,
    objectives: Annotated[
        str, typer.Option("--objectives", metavar="LIST", help="What the front trades off.")
    ] = ",".join(DEFAULT_OBJECTIVES),
    acceptance: Annotated[
        str | None, typer.Option("--acceptance", metavar="FILE", help="Measured acceptance.")
    ] = None,
    tokens_per_round: Annotated[
        float | None, typer.Option("--tokens-per-round", metavar="X", help="Use this E[L].")
    ] = None,
    quality_table: Annotated[
        str | None, typer.Option("--quality-table", metavar="FILE", help="Your own risk classes.")
    ] = None,
    max_drafter_params: Annotated[
        str | None, typer.Option("--max-drafter-params", metavar="N", help="Largest drafter.")
    ] = None,
    max_drafter_hours: Annotated[
        float | None,
        typer.Option("--max-drafter-hours", metavar="H", help="GPU-hours to train it."),
    ] = None,
    train_tokens: Annotated[
        str | None, typer.Option("--train-tokens", metavar="N", help="Pretraining tokens: 15T.")
    ] = None,
    choose: Annotated[
        int | None, typer.Option("--choose", metavar="N", help="Design to show in full.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=1, help="Designs of each class to list.")
    ] = 4,
    study: Annotated[
        str | None,
        typer.Option("--study", metavar="FILE", help="Sample the space; the study is kept here."),
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", min=1, help="Designs that a study samples.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of sampling.")] = 0,
    prices: Annotated[
        Path | None,
        typer.Option("--prices", metavar="FILE.yaml", help="Price per hour of each card."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write design.json and the config.json here."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an earlier DIR or FILE.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page.")
    ] = None,
) -> None:
    """Which architecture, heads and drafter to pretrain for these deployments?"""
    if html is not None:
        _ready(html, force=force)
    targets = tuple(
        TargetAsked(
            gpu=name,
            batch=counts("--batch", batch),
            context=counts("--context", context),
            engine=engine,
            tp=tp,
            workload=workload,
            quant=quant,
            kv_dtype=kv_dtype,
            slo_s=None if slo is None else slo / 1e3,
        )
        for name in gpu or ()
    )
    if targets_file is not None:
        targets = (*targets, *read_targets(targets_file))
    question = DesignQuestion(
        targets=targets,
        params=_amount("--params", params),
        active=_amount("--active", active),
        tolerance=_share("--tolerance", tolerance),
        source=source,
        baseline=baseline,
        match=_match(match),
        vary=_words(vary),
        values=_values(values),
        attention=_attention(attention),
        mtp_depths=_depths(mtp),
        drafters=None if drafter is None else _words([drafter]),
        objectives=_objectives(objectives),
        tile_rows=tile_rows,
        temperature=temperature,
        acceptance=acceptance,
        tokens_per_round=tokens_per_round,
        quality_table=quality_table,
        max_drafter_params=_amount("--max-drafter-params", max_drafter_params),
        max_drafter_hours=max_drafter_hours,
        pretraining_tokens=_amount("--train-tokens", train_tokens),
        prices=_prices(prices),
        choose=choose,
        seed=seed,
    )
    with working("comparing architectures"):
        result = design(question) if study is None else _sampled(question, study, trials)
    if out is not None:
        from planner.report.design_files import write_design  # noqa: PLC0415  # for files alone

        write_design(out, result, force=force)
        if result.chosen is not None:
            for said in _checks(result.chosen.config):
                sys.stderr.write(f"{out}/config.json: {said}\n")
    if html is not None:
        _write_html(html, result, force=force)
    if as_json:
        print(result.model_dump_json(indent=1))
    else:
        _print_page(result, rows)


def _ready(path: Path, *, force: bool) -> None:
    from planner.report.html.write import ready_to_write  # noqa: PLC0415  # few ask for it

    ready_to_write(path, force=force)


def _write_html(path: Path, result: DesignResult, *, force: bool) -> None:
    from planner.report.html.design_page import design_html  # noqa: PLC0415  # few ask for it
    from planner.report.html.write import write_page  # noqa: PLC0415

    write_page(path, design_html(result), force=force)


def _sampled(question: DesignQuestion, study: str, trials: int) -> DesignResult:
    """The answer of the sampler that another package brings.

    Raises:
        InputError: none is installed.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  # seldom

    for entry in entry_points(group=SEARCH_GROUP):
        result: DesignResult = entry.load()(question, study, trials)
        return result
    raise InputError("--study needs the sampler; pip install 'specplanner[search]'")


def _checks(config: Mapping[str, object]) -> Iterator[str]:
    """What other packages say of the config.json; transformers where it is installed."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # seldom

    for entry in entry_points(group=CHECK_GROUP):
        said = entry.load()(config)
        if said:
            yield said


def _print_page(result: DesignResult, rows: int) -> None:
    from planner.report.design import design_page  # noqa: PLC0415  # --json does without rich
    from planner.report.screen import screen_text  # noqa: PLC0415

    sys.stdout.write(screen_text(design_page(result, rows)))


def _match(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    model, at, card = text.rpartition("@")
    if not at or not model.strip() or not card.strip():
        raise InputError(f"--match {text[:60]!r}: write MODEL@GPU, for example Qwen2.5-7B@H100")
    return model.strip(), card.strip()


def _prices(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    from planner.report.prices import read_prices  # noqa: PLC0415  # few ask for it

    return dict(read_prices(path).per_hour)


def _words(texts: Sequence[str] | None) -> tuple[str, ...]:
    found = [w.strip() for text in texts or () for w in text.split(",")]
    return tuple(dict.fromkeys(w for w in found if w))


def _amount(option: str, text: str | None) -> float | None:
    """A count with K, M, B or T behind it, as parameters and tokens are written."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kKmMbBtT]?)\s*", text, re.ASCII)
    value = float(match[1]) * UNITS[match[2].upper()] if match else 0.0
    if not 0.0 < value <= 1e18:
        raise InputError(
            f"{option} takes a number above 0, K, M, B and T standing for 1e3 to 1e12, and got "
            f"{text[:40]!r}; write for example {option} 8B"
        )
    return value


def _share(option: str, value: float) -> float:
    if not 0.0 < value < 1.0:
        raise InputError(f"{option} {value:g} is not between 0 and 1; 0.03 stands for 3 %")
    return value


def _values(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """`AXIS=1,2,4` or `AXIS=20:60:2` (first, last, step), each axis once."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, equals, listed = text.partition("=")
        if not equals or not listed:
            raise InputError(f"--set {text[:60]!r}: write --set num_kv_heads=2,4,8 or =20:60:2")
        if name.strip() in found:
            raise InputError(
                f"--set {name.strip()[:40]} is given twice; put its values in one list"
            )
        found[name.strip()] = _ladder(f"--set {name.strip()[:40]}", listed)
    return found


def _ladder(option: str, text: str) -> tuple[int, ...]:
    match = re.fullmatch(r"\s*(\d{1,7}):(\d{1,7})(?::(\d{1,7}))?\s*", text, re.ASCII)
    if match is None:
        return counts(option, text)
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if not (0 < first <= last and step > 0 and (last - first) // step < 4096):
        raise InputError(f"{option} {text[:40]}: give FIRST:LAST:STEP with FIRST <= LAST, STEP > 0")
    return tuple(range(first, last + 1, step))


def _attention(text: str | None) -> tuple[AttentionFamily, ...] | None:
    if text is None:
        return None
    known = get_args(AttentionFamily)
    found = _words([text])
    wrong = [w for w in found if w not in known]
    if wrong or not found:
        raise InputError(f"--attention {text[:40]!r}: kinds are {', '.join(known)}")
    return tuple(k for k in known if k in found)


def _depths(text: str) -> tuple[int, ...]:
    words = _words([text])
    if not words or not all(w.isascii() and w.isdigit() and int(w) <= 16 for w in words):
        raise InputError(f"--mtp {text[:40]!r}: write depths from 0 to 16, for example --mtp 1,3")
    return tuple(int(w) for w in words)


def _objectives(text: str) -> tuple[Objective, ...]:
    known = get_args(Objective)
    found = _words([text])
    wrong = [w for w in found if w not in known]
    if wrong or not found:
        raise InputError(f"--objectives {text[:60]!r}: objectives are {', '.join(known)}")
    return tuple(o for o in known if o in found)
