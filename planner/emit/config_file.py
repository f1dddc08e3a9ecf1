"""A configuration as nested settings: dotted names for the rules, YAML for the engine."""

from collections.abc import Mapping, Sequence

import yaml

from planner.emit.names import one_line

Config = dict[str, object]


def flat(config: Mapping[str, object]) -> dict[str, object]:
    """Nested settings with dotted names."""
    settings: dict[str, object] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            settings |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            settings[name] = value
    return settings


def yaml_text(head: Sequence[str], config: Mapping[str, object]) -> str:
    """The configuration as a YAML file under a comment."""
    comments = "".join(f"# {one_line(line)}\n" for line in head)
    nested = any(isinstance(value, (dict, list)) for value in config.values())
    flow = None if nested else False  # None writes a mapping of plain values on one line
    return comments + yaml.safe_dump(dict(config), sort_keys=False, default_flow_style=flow)
