"""One page for each engine: what is written, its rules, and what it allows beside a drafter."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import yaml

from planner.emit.registry import SUPPORTED
from tools.site_pages.markdown import source, table, text

TITLES = {"vllm": "vLLM", "llama.cpp": "llama.cpp", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of each engine."""
    data = files("planner.emit").joinpath("data")
    beside = yaml.safe_load(data.joinpath("compatibility.yaml").read_text("utf-8"))
    for engine, version in SUPPORTED.items():
        file = data.joinpath("rules").joinpath(f"{engine}-{version}.yaml")
        rules = yaml.safe_load(file.read_text("utf-8"))
        yield f"engines/{engine.replace('.', '')}.md", _page(engine, rules, beside.get(engine, []))


def _page(engine: str, rules: Mapping[str, Any], beside: list[Mapping[str, Any]]) -> str:
    found = [
        (f"`{rule['id']}`", text(rule["says"]), text(rule.get("use", "-")), source(rule["source"]))
        for rule in rules["rules"]
    ]
    allowed = [
        (
            text(one["feature"]),
            text(one["verdict"]),
            text(", ".join(one.get("families", [])) or "all"),
            text(one["says"]),
            source(one["source"]),
        )
        for one in beside
    ]
    parts = [
        f"# {TITLES[engine]}\n",
        f"Files are written for version {text(rules['version'])}. Its rules were read at "
        f"{text(rules['read_at'])}; another version is refused, since its options may differ.\n",
        f"```sh\nplanner recommend --model Qwen/Qwen3-8B --gpu 4090 --engine {engine} --out plan/\n"
        "```\n",
        f"## Rules\n\nA configuration that breaks one of these {len(found)} is not written.\n",
        table(("rule", "what the engine says", "what to use", "read at"), found),
    ]
    if allowed:
        head = ("feature", "verdict", "drafters", "rule", "read at")
        parts += ["## Beside a drafter\n", table(head, allowed)]
    parts.append(
        f"[Engine check](../engine-check.md) has what {TITLES[engine]} itself said to the emitted "
        "commands.\n"
    )
    return "\n".join(parts)
