"""What a million tokens cost, by a file of prices per card and hour."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hwprofiles.errors import InputError
from hwprofiles.lookup import find_gpu
from hwprofiles.provenance import WITH_FIELD_DOCS
from hwprofiles.yamlfile import parse_untrusted, validate
from planner.search.records import Plan

SECONDS_PER_HOUR = 3600.0
_FORM = "give, for example, {currency: USD, per_hour: {RTX 4090: 0.40}}"


class Prices(BaseModel):
    """Prices of cards; `--prices FILE.yaml` holds exactly this."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS, allow_inf_nan=False
    )

    currency: Annotated[str, Field(min_length=1, max_length=8)]
    """Shown behind every amount, e.g. `USD`."""
    per_hour: dict[str, Annotated[float, Field(ge=0)]]
    """Card, by name or profile id -> price of one of them for an hour."""

    def of(self, plan: Plan) -> float | None:
        """Price of the plan's cards for an hour; None where their card is not listed."""
        one = self.per_hour.get(plan.inputs.gpu)
        return None if one is None else one * plan.inputs.num_gpus

    def per_million_tokens(self, plan: Plan) -> float | None:
        """Price of a million tokens with the plan's choice; None where its card is not listed."""
        hour = self.of(plan)
        if hour is None:
            return None
        return hour / (plan.best.spec_tok_s * SECONDS_PER_HOUR) * 1e6


def read_prices(path: Path) -> Prices:
    """The prices of a YAML file, each card as its profile id.

    Raises:
        InputError: the file cannot be read, or a card in it is not known.
    """
    try:
        stated = validate(Prices, parse_untrusted(path), path)
    except InputError as error:
        raise InputError(f"{error}; {_FORM}") from error
    by_id: dict[str, float] = {}
    for name, price in stated.per_hour.items():
        try:
            gpu_id = find_gpu(name, own_files=False).gpu_id
        except InputError as error:
            raise InputError(f"{path}: per_hour: {error}") from error
        if by_id.setdefault(gpu_id, price) != price:
            raise InputError(f"{path}: per_hour gives two prices for {gpu_id}; keep one")
    return stated.model_copy(update={"per_hour": by_id})


def tokens_per_joule(plan: Plan) -> float | None:
    """Tokens of the choice per joule at the cards' cap or board power; None where unknown.

    Cards draw at most that, so it is a lower bound; the host is not counted.
    """
    watts = plan.inputs.power_w
    return plan.best.spec_tok_s / (watts * plan.inputs.num_gpus) if watts else None
