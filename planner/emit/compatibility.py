"""What an engine allows beside speculation, from pipeline stages to images."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from hwprofiles.yamlfile import parse_shipped
from planner.emit.deployment import Deployment
from planner.emit.records import Emission, EmittedFile

_FILE = Path(__file__).parent / "data" / "compatibility.yaml"
FEATURES = (
    "pipeline parallelism",
    "data parallelism",
    "LoRA",
    "grammar",
    "logprobs",
    "prefix cache",
    "multimodal",
)
Answer = Literal["yes", "limited", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether one feature runs beside a drafter family."""

    feature: str
    verdict: Answer
    says: str
    source: str


def compatibility(engine: str, family: str) -> tuple[Compatibility, ...]:
    """The engine's rule for each feature, in the order of `FEATURES`."""
    rows = parse_shipped(_FILE)[engine]
    found = []
    for feature in FEATURES:
        row = next(
            r for r in rows if r["feature"] == feature and family in r.get("families", (family,))
        )
        found.append(Compatibility(feature, row["verdict"], row["says"], row["source"]))
    return tuple(found)


def with_compatibility(emission: Emission, engine: str, want: Deployment) -> Emission:
    """The emission with compatibility.json and a line that sums it up, where it speculates."""
    if not want.draft_len or want.drafter is None:
        return emission
    found = compatibility(engine, want.drafter.family)
    lines = ",\n ".join(json.dumps(asdict(one)) for one in found)
    by_answer = {
        answer: ", ".join(one.feature for one in found if one.verdict == answer)
        for answer in get_args(Answer)
    }
    parts = [f"{answer}: {names}" for answer, names in by_answer.items() if names]
    note = f"beside this drafter: {'; '.join(parts)} (each rule in compatibility.json)"
    file = EmittedFile("compatibility.json", f"[\n {lines}\n]\n")
    return replace(emission, files=(*emission.files, file), notes=(*emission.notes, note))
