"""SGLang: gauges of the moment, and counters that move when a request ends (--enable-metrics).

There are no counts by position. Rounds are `spec_verify_calls`; a request's first token comes from
its prompt, so the accepted ones are generated tokens - requests - rounds. `num_draft_tokens` holds
the root as well: D + 1 for a chain.
"""

from collections.abc import Mapping
from typing import Any

from autotune.engines.records import (
    EngineIdentity,
    EngineName,
    MetricsReading,
    SpeculationSettings,
)
from autotune.engines.served_model import ModelName
from autotune.load.endpoint import Endpoint
from autotune.load.errors import WrongApi
from autotune.load.openai import complete
from autotune.load.records import Answer, Request
from planner.acceptance.counts import momentary
from planner.acceptance.metrics_page import MAX_POSITION, MetricsPage, read_page
from planner.acceptance.spec_counters import SpecCounters
from planner.errors import InputError

_WANTED = ("spec_", "generation_tokens", "num_requests", "num_running_reqs", "num_queue_reqs")
_INFO_PAGES = ("/server_info", "/get_server_info")
"""The newer name first."""


class SglangAdapter:
    """A running SGLang."""

    name: EngineName = "sglang"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._model = ModelName(endpoint)

    def identify(self) -> EngineIdentity:
        """Everything is on its information page; the token that stands there is not kept."""
        info = self._info()
        notes = () if info else ("SGLang shows no /server_info: settings unknown",)
        version = info.get("version")
        return EngineIdentity(
            name=self.name,
            version=version if isinstance(version, str) else None,
            model=self._model(),
            speculation=_settings(info) if info else None,
            notes=notes,
        )

    def read_counters(self) -> MetricsReading:
        """Counters of the requests that ended, and what the gauges say of the moment."""
        page = read_page(self._endpoint.get_text("/metrics"), _WANTED)
        length, draft_len, notes = _gauges(page)
        return MetricsReading(
            counters=_counters(page, draft_len),
            running_requests=page.largest("num_running_reqs"),
            waiting_requests=page.largest("num_queue_reqs"),
            tokens_per_round=length,
            draft_len=draft_len,
            notes=(*page.notes(), *notes),
        )

    def generate(self, request: Request) -> Answer:
        """One request; the OpenAI API of SGLang tells nothing of its drafts."""
        return complete(self._endpoint, request, self._model()).answer

    def _info(self) -> Mapping[str, Any]:
        for path in _INFO_PAGES:
            try:
                page = self._endpoint.get_json(path)
            except WrongApi:
                continue
            if isinstance(page, dict):
                return page
        return {}


def _settings(info: Mapping[str, Any]) -> SpeculationSettings:
    algorithm = info.get("speculative_algorithm")
    if not isinstance(algorithm, str) or not algorithm:
        return SpeculationSettings("off", 0)
    tokens, steps, branches = (
        value if isinstance(value := info.get(f"speculative_{name}"), int) else None
        for name in ("num_draft_tokens", "num_steps", "eagle_topk")
    )
    chain = branches in (None, 0, 1) or algorithm.upper() == "NGRAM"
    draft_len = tokens - 1 if chain and tokens else steps
    return SpeculationSettings.told(algorithm.lower(), draft_len)


def _counters(page: MetricsPage, draft_len: int | None) -> SpecCounters:
    generated, rounds = page.total("generation_tokens"), page.total("spec_verify_calls")
    requests = page.total("num_requests")
    accepted = None
    if generated is not None and rounds is not None and requests is not None:
        accepted = max(0.0, generated - requests - rounds)
    drafted = rounds * draft_len if rounds is not None and draft_len else None
    if drafted is not None and accepted is not None and accepted > drafted:
        drafted = None  # D was another for a part of the time
    return SpecCounters(rounds, drafted, accepted, (), generated)


def _gauges(page: MetricsPage) -> tuple[float | None, int | None, tuple[str, ...]]:
    """(E[L], D, why not) of the latest interval."""
    length = page.largest("spec_accept_length")
    if not length or not 1.0 <= length <= MAX_POSITION + 1:
        return None, None, ()
    try:
        found = momentary(page, "/metrics")
    except InputError:
        return length, None, ("the gauges do not tell D",)
    return found.tokens_per_round, found.draft_len, ()
