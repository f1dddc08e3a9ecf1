"""What one engine version accepts, read from its data file in `data/rules`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from hwprofiles.yamlfile import parse_shipped

_RULES_DIR = Path(__file__).parent / "data" / "rules"

ValueType = Literal["int", "float", "str", "bool", "ints", "floats", "triples", "layers", "int_map"]


class _Record(BaseModel):
    # No attribute docstrings and no schema at import: both cost more than reading a rule book.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Option(_Record):
    """One setting that the engine knows, with the values it takes."""

    type: ValueType
    """`triples` are batch ranges [first, last, K]; `layers` a count or one of `words`; `int_map`
    maps whole numbers to whole numbers."""
    min: float | None = None
    above: float | None = None
    """Exclusive lower bound."""
    max: float | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other spellings of the same setting."""
    source: str


class Removed(_Record):
    """A setting that users still type and the engine refuses."""

    use: str
    source: str


class Rule(_Record):
    """A relation between settings; its predicate is found by `id`."""

    id: str
    says: str
    use: str
    """The nearest allowed alternative."""
    source: str


class MethodRule(_Record):
    """What one speculative method reads."""

    model: Literal["required", "optional", "forbidden"]
    draft: bool
    """Whether the settings of a draft checkpoint apply."""
    keys: tuple[str, ...] = ()


class MethodKeys(_Record):
    """Settings that only some speculative methods read."""

    source: str
    common: tuple[str, ...]
    draft: tuple[str, ...]
    methods: dict[str, MethodRule]

    def allowed(self, method: str) -> frozenset[str]:
        """Every speculative key that the method reads."""
        rule = self.methods[method]
        own = (*self.common, *rule.keys, *(self.draft if rule.draft else ()))
        return frozenset(own)


class Flags(_Record):
    """Every spelling on the engine's command line."""

    source: str
    with_value: tuple[str, ...]
    bare: tuple[str, ...]


class RuleBook(_Record):
    """All rules of one engine version."""

    schema_version: Literal[1]
    engine: str
    version: str
    read_at: str
    """The public source in which the rules were read."""
    options: dict[str, Option]
    removed: dict[str, Removed] = Field(default_factory=dict)
    method_keys: MethodKeys | None = None
    flags: Flags | None = None
    rules: tuple[Rule, ...]
    numbers: dict[str, float] = Field(default_factory=dict)
    """The engine's own defaults and steps."""
    names: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Planner's words -> the engine's."""
    lists: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @property
    def keys(self) -> MethodKeys:
        """The settings of each method, where the engine has such."""
        assert self.method_keys is not None  # noqa: S101 - only asked of books that have them
        return self.method_keys

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every flag of the command line, where the engine's were listed."""
        return (*self.flags.with_value, *self.flags.bare) if self.flags else ()

    def rule(self, rule_id: str) -> Rule:
        """The rule of that id."""
        return next(rule for rule in self.rules if rule.id == rule_id)


def load_rules(engine: str, version: str) -> RuleBook:
    """The rule book of an engine version that the planner ships."""
    return RuleBook.model_validate(parse_shipped(_RULES_DIR / f"{engine}-{version}.yaml"))
