"""What an engine's version refuses to draft: rules of `data/refusals.yaml`, one predicate each."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hwprofiles.yamlfile import parse_shipped
from planner.arch.records import ModelArch
from planner.drafters.base import DATA
from planner.drafters.records import DrafterSpec

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drafting:
    """What is to run."""

    arch: ModelArch
    engine: str
    engine_version: str | None
    """None: the newest."""
    spec: DrafterSpec
    draft_len: int
    gpu_bytes: float = math.inf
    """Memory of one GPU."""


LEFT_SHARE = 0.1
"""Part of a GPU that vLLM's usual utilisation of 0.9 leaves free."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One refusal."""

    rule_id: str
    engine: str
    since: Version
    before: Version
    """First version without it."""
    families: frozenset[str]
    when: str
    says: str
    use: str
    source: str


def _short_block(at: Drafting) -> bool:
    trained = at.spec.max_draft_len
    return trained is not None and at.draft_len < trained


def _recurrent(at: Drafting) -> bool:
    return at.arch.state_bytes_per_seq > 0


def _odd_rows_of_latent(at: Drafting) -> bool:
    rows = 1 + at.draft_len
    latent = any(g.attention and g.attention.kind == "mla" for g in at.arch.groups)
    return latent and rows & (rows - 1) != 0


def _larger_than_what_is_left(at: Drafting) -> bool:
    return at.spec.weight_bytes > LEFT_SHARE * at.gpu_bytes


WHEN: Mapping[str, Callable[[Drafting], bool]] = {
    "shorter than the trained block": _short_block,
    "recurrent target": _recurrent,
    "latent attention and rows no power of two": _odd_rows_of_latent,
    "larger than what utilisation leaves": _larger_than_what_is_left,
}


def version_of(text: str) -> Version:
    """Numbers of a version or build: (0, 26, 0) of `v0.26.0rc1`, (9850,) of `b9850`."""
    release = re.split(r"rc|\.dev|\+", text)[0]
    return tuple(int(part) for part in re.findall(r"\d+", release))


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """All refusals."""
    return tuple(
        Rule(
            rule_id=row["id"],
            engine=row["engine"],
            since=version_of(str(row.get("since", ""))),
            before=version_of(str(row["before"])),
            families=frozenset(row["families"]),
            when=row["when"],
            says=row["says"],
            use=row["use"],
            source=row["source"],
        )
        for row in parse_shipped(DATA / "refusals.yaml")["rules"]
    )


def refusals(at: Drafting) -> tuple[str, ...]:
    """Why this engine version would not draft so, each with what to do; empty where it would."""
    if not at.engine_version or not at.draft_len:
        return ()
    version = version_of(at.engine_version)
    values = {
        "version": at.engine_version,
        "draft_len": at.draft_len,
        "trained": at.spec.max_draft_len,
        "rows": 1 + at.draft_len,
        "drafter_gib": f"{at.spec.weight_bytes / 2**30:.1f}",
    }
    return tuple(
        f"{rule.says.format(**values)}; use {rule.use.format(**values)} [{rule.source}]"
        for rule in rules()
        if rule.engine == at.engine
        and at.spec.family in rule.families
        and version
        and rule.since <= version < rule.before
        and WHEN[rule.when](at)
    )
