"""`planner inspect MODEL`: what a model's files say about its shape, and what they leave open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.inspect_lines import billions, labelled, printable
from planner.errors import InputError

if TYPE_CHECKING:
    from planner.arch.records import AttentionShape, LayerGroup, ModelArch


def command(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="Name, hub id, config.json, folder, .gguf, log, drafter."
        ),
    ] = None,
    named: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The same, as an option.")
    ] = None,
    kv_dtype: Annotated[
        str, typer.Option("--kv-dtype", metavar="NAME", help="Element type of the KV cache.")
    ] = "bf16",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What the files of a model or a drafter say about its shape."""
    from planner.arch.load import load_model  # noqa: PLC0415  # only this verb needs the readers
    from planner.cli.inspect_parts import describe_part, part_page  # noqa: PLC0415

    chosen = model or named
    if chosen is None or (model and named):
        raise InputError("inspect takes one model: planner inspect MODEL")
    part = describe_part(chosen, kv_dtype)
    report = describe(load_model(chosen), kv_dtype) if part is None else part
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        print("\n".join(page(report) if part is None else part_page(part)))


def describe(arch: ModelArch, kv_dtype: str) -> dict[str, Any]:
    """The report as a mapping; scalars describe the full-attention group.

    Raises:
        InputError: the KV type is not known.
    """
    from planner.arch import weights  # noqa: PLC0415

    scale = weights.kv_element_bytes(kv_dtype) / 2
    mtp = arch.mtp
    return {
        "name": arch.name,
        "source": arch.source,
        "architecture": arch.architecture,
        "hidden_size": arch.hidden_size,
        "vocab_size": arch.vocab_size,
        "num_layers": arch.num_layers,
        **_main_mixer(arch),
        "tied_embeddings": arch.tied_embeddings,
        "max_position": arch.max_position,
        "params_total": arch.params_total,
        "params_active": arch.params_active,
        "params_kind": arch.params_kind,
        "kv_dtype": kv_dtype,
        "kv_bytes_per_token": _whole(weights.kv_bytes_per_token(arch, kv_dtype)),
        "window_bytes_per_seq": _whole(arch.window_bytes_per_seq * scale),
        "state_bytes_per_seq": arch.state_bytes_per_seq,
        "mtp": {"status": mtp.status, "layers": mtp.layers, "params_per_layer": mtp.weights},
        **_storage(arch),
        "groups": [_group(group, scale) for group in arch.groups],
        "extra": dict(arch.extra),
        "assumptions": list(arch.assumptions),
        "warnings": list(arch.warnings),
    }


def _main_mixer(arch: ModelArch) -> dict[str, Any]:
    """Scalars of the full-attention group; null where no layer keeps a cache."""
    main = arch.main_attention if _has_cache(arch) else None
    return {
        "attention": main.kind if main else None,
        "num_heads": main.num_heads if main else None,
        "num_kv_heads": main.num_kv_heads if main else None,
        "head_dim": main.head_dim if main else None,
        "v_head_dim": main.v_head_dim if main else None,
        "group_size": main.group_size if main else None,
    }


def _storage(arch: ModelArch) -> dict[str, Any]:
    """Format of the checkpoint and its bytes, MTP layers left out."""
    from planner.arch import weights  # noqa: PLC0415
    from planner.arch.quant import known_format  # noqa: PLC0415

    fmt = arch.native_format or known_format("bf16")
    return {
        "weight_format": fmt.name,
        "bits_per_weight": fmt.bits_per_weight,
        "expert_bits": fmt.expert_bits,
        "weight_bytes": round(weights.weight_bytes(arch, fmt).total),
        "checkpoint_bytes": arch.checkpoint_bytes,
    }


def _has_cache(arch: ModelArch) -> bool:
    return any(g.attention is not None and g.attention.kind != "linear" for g in arch.groups)


def _whole(value: float | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if float(value).is_integer() else round(value, 3)


def _group(group: LayerGroup, scale: float) -> dict[str, Any]:
    mixer = group.attention
    made: dict[str, Any] = {"name": group.name, "count": group.count}
    if mixer is not None:
        made |= _mixer(mixer, scale)
    made["ffn_width"] = group.ffn_width or None
    if group.moe is not None:
        made["num_experts"] = group.moe.num_experts
        made["top_k"] = group.moe.top_k
        made["expert_width"] = group.moe.expert_width
        made["expert_params"] = group.moe.expert_weights
        made["shared_params"] = group.moe.shared_weights
    return made


def _mixer(mixer: AttentionShape, scale: float) -> dict[str, Any]:
    per_token = mixer.kv_bytes_per_token_16bit
    return {
        "kind": mixer.kind,
        "num_heads": mixer.num_heads,
        "num_kv_heads": mixer.num_kv_heads,
        "head_dim": mixer.head_dim,
        "v_head_dim": mixer.v_head_dim,
        "group_size": mixer.group_size,
        "window": mixer.window,
        "kv_bytes_per_token_per_layer": None if per_token is None else _whole(per_token * scale),
        "state_bytes_per_seq_per_layer": mixer.state_bytes_per_seq,
    }


def page(report: dict[str, Any]) -> list[str]:
    """The report as lines of a terminal page of 80 columns."""
    lines = [f"{report['name']}  ({report['architecture']})"]
    for label, text in _facts(report):
        lines += labelled(label, text)
    lines.append("  layers")
    lines += [f"    {_layer_line(group)}" for group in report["groups"]]
    for label, key in (("assumed", "assumptions"), ("warning", "warnings")):
        for text in report[key]:
            lines += labelled(label, text)
    lines += labelled("source", report["source"])
    return [printable(line) for line in lines]


def _facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    mtp = report["mtp"]
    rule = "no rule known: use the engine's figure"
    per_token = report["kv_bytes_per_token"]
    kv_text = rule if per_token is None else f"{per_token:,} bytes a token"
    facts = [
        ("parameters", f"{billions(report['params_total'])} total, "
                       f"{billions(report['params_active'])} read for one token"),
        ("weights", f"{report['weight_bytes'] / 2**30:.1f} GiB as {report['weight_format']} "
                    f"({report['bits_per_weight']:g} bits)"),
        ("KV cache", f"{kv_text} at {report['kv_dtype']}"),
    ]  # fmt: skip
    if report["group_size"]:
        heads = f"{report['num_heads']} heads on {report['num_kv_heads']}"
        facts.insert(2, ("attention", f"G = {report['group_size']} ({heads}, head dim "
                                      f"{report['head_dim']})"))  # fmt: skip
    if report["window_bytes_per_seq"]:
        facts.append(("windows", f"{report['window_bytes_per_seq'] / 2**20:.1f} MiB a sequence"))
    if report["state_bytes_per_seq"]:
        facts.append(("state", f"{report['state_bytes_per_seq'] / 2**20:.1f} MiB a sequence"))
    layers = f"{mtp['layers']} layer(s), {mtp['status']}" if mtp["layers"] else "none"
    facts.append(("MTP", layers))
    return facts


def _layer_line(group: dict[str, Any]) -> str:
    parts = [f"{group['count']:>3} x {group['name']:<14}"]
    if group.get("kind"):
        parts.append(
            f"{group['num_heads']}/{group['num_kv_heads']} heads of {group['head_dim']}"
            + (f"/{group['v_head_dim']}" if group["v_head_dim"] != group["head_dim"] else "")
        )
    if group.get("window"):
        parts.append(f"window {group['window']}")
    if group.get("num_experts"):
        parts.append(f"{group['top_k']}/{group['num_experts']} experts of {group['expert_width']}")
    if group["ffn_width"]:
        parts.append(f"FFN {group['ffn_width']}")
    return "  ".join(parts).rstrip()
