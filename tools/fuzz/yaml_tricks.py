"""What YAML offers to those who mean harm: aliases, tags, merge keys, odd scalars."""

from __future__ import annotations

from random import Random
from typing import Any

import yaml

_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)
_TAIL = (
    _BOMB,
    "x: !!python/object/apply:os.system ['touch pwned']\n",
    "x: !!python/name:os.system\n",
    "? [a, b]\n: c\n",
    "<<: {id: a, name: b}\n",
    "<<: *missing\n",
    "&a x: *a\n",
    "a: &a [*a]\n",
    "x: !!binary '####'\n",
    "x: !!timestamp 2026-99-99\n",
    "x: !!int 'abc'\n",
    "x: !!float 'abc'\n",
    "x: !!set {a, b}\n",
    "x: !!omap [a: 1]\n",
    "x: !custom {a: 1}\n",
    "%YAML 9.9\n---\n",
    "---\na: 1\n---\nb: 2\n",
    "...\n",
    "\tx: 1\n",
    "x: |\n  long\n",
    'x: "\\x00\\ud800\\U0010ffff"\n',
    "x: 1:99:99:99:99:99:99:99:99:99:99:99:99\n",
    "x: .inf\ny: .nan\nz: -.inf\n",
    "x: 0o777777777777777777777777777777777777\n",
    "x: 0x" + "f" * 4000 + "\n",
    "id: again\n",
    "? " * 600 + "\n",
    "[" * 600 + "\n",
    "{a: " * 600 + "\n",
)
_NOT_IN_YAML = (OverflowError, yaml.YAMLError, ValueError, RecursionError, UnicodeError)


def yaml_bytes(tree: Any, rng: Random) -> bytes:
    """The document as YAML, now and then with something nasty before or behind it."""
    try:
        text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=rng.choice((None, False)))
    except _NOT_IN_YAML:
        text = repr(tree)
    if rng.random() < 0.25:
        extra = rng.choice(_TAIL)
        text = text + extra if rng.random() < 0.7 else extra + text
    return text.encode("utf-8", "surrogatepass")
