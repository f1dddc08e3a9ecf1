"""The forms of plan.json and of predict's lines, from `planner schema`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.planner_output import printed
from tools.site_pages.markdown import table, text

TITLES = {
    "plan": (
        "plan.json",
        "What `planner recommend --json` prints and `--out DIR` writes; `planner schema plan` "
        "prints this as JSON Schema.",
    ),
    "design": (
        "design.json",
        "What `planner design --json` prints and `--out DIR` writes; `planner schema design` "
        "prints this as JSON Schema.",
    ),
    "predict": (
        "Lines of predict",
        "`planner predict` reads one JSON object a line (ScenarioLine or OperationLine) and "
        "answers each with one (ScenarioAnswer or OperationAnswer), in order. Keys that it does "
        "not know are ignored and listed in `warnings`. `planner schema predict` prints this as "
        "JSON Schema.",
    ),
}


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of each form."""
    for name, (title, lead) in TITLES.items():
        schema = json.loads(printed("schema", name))
        yield f"schemas/{name}.md", _page(title, lead, schema)


def _page(title: str, lead: str, schema: Mapping[str, Any]) -> str:
    records = dict(schema["$defs"])
    if "properties" in schema:
        records = {schema["title"]: schema, **records}
    parts = [f"# {title}\n", f"{lead}\n"]
    for name, record in records.items():
        parts += [
            f"## {name}\n",
            f"{text(record.get('description', ''))}\n",
            table(("field", "type", "meaning"), _fields(record)),
        ]
    return "\n".join(parts)


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    required = set(record.get("required", ()))
    for name, field in record.get("properties", {}).items():
        default = "" if name in required else f" (default {json.dumps(field.get('default'))})"
        meaning = f"{text(field.get('description', ''))}{text(default)}"
        yield f"`{name}`", _type(field), meaning


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(_type(one) for one in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    inner = field.get("items") or field.get("additionalProperties")
    name = {"array": "list"}.get(field.get("type", "any"), field.get("type", "any"))
    return f"{name} of {_type(inner)}" if isinstance(inner, Mapping) else text(name)
