"""TensorRT-LLM: counters at /prometheus/metrics, or iteration by iteration at /metrics.

The Prometheus page exists with `return_perf_metrics: true`; its positions are labelled
`token_position` (tensorrt_llm/metrics/collector.py at 050f80def8). The JSON page empties itself
when it is read, so what it shows is added up here.
"""

import math
import threading
from typing import Any

from autotune.engines.records import (
    EngineIdentity,
    EngineName,
    MetricsReading,
    SpeculationSettings,
)
from autotune.engines.served_model import ModelName, stated_version
from autotune.load.endpoint import Endpoint
from autotune.load.errors import WrongApi
from autotune.load.openai import complete
from autotune.load.records import Answer, Request
from planner.acceptance.metrics_page import MetricsPage, read_page
from planner.acceptance.spec_counters import SpecCounters

_WANTED = ("trtllm_spec", "trtllm_generation_tokens", "trtllm_num_")
_PROMETHEUS, _ITERATIONS = "/prometheus/metrics", "/metrics"


class TrtllmAdapter:
    """A running trtllm-serve."""

    name: EngineName = "trtllm"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._model = ModelName(endpoint)
        self._sums = _IterationSums()

    def identify(self) -> EngineIdentity:
        """Settings are labels of the Prometheus page."""
        version, model = stated_version(self._endpoint), self._model()
        try:
            info = self._page().info("trtllm_speculative_config_info")
        except WrongApi:
            note = "no /prometheus/metrics (return_perf_metrics: true brings it): settings unknown"
            return EngineIdentity(self.name, version, model, None, (note,))
        return EngineIdentity(self.name, version, model, _settings(info))

    def read_counters(self) -> MetricsReading:
        """From the Prometheus page, else the iterations since the last reading added up."""
        try:
            page = self._page()
        except WrongApi:
            rows = self._endpoint.get_json(_ITERATIONS)
            return self._sums.add(rows if isinstance(rows, list) else [rows])
        settings = _settings(page.info("trtllm_speculative_config_info"))
        draft_len = settings.draft_len if settings else None
        return MetricsReading(
            counters=_counters(page, draft_len),
            running_requests=page.largest("trtllm_num_generation_requests"),
            waiting_requests=page.largest("trtllm_num_requests_waiting"),
            tokens_per_round=_at_least_one(page.largest("trtllm_spec_decode_acceptance_length")),
            draft_len=draft_len,
            notes=page.notes(),
        )

    def generate(self, request: Request) -> Answer:
        """One request; the answer tells nothing of its drafts."""
        return complete(self._endpoint, request, self._model()).answer

    def _page(self) -> MetricsPage:
        return read_page(self._endpoint.get_text(_PROMETHEUS), _WANTED)


def _settings(info: dict[str, str] | None) -> SpeculationSettings | None:
    if info is None:
        return None
    if info.get("spec_enabled", "true").lower() == "false":
        return SpeculationSettings("off", 0)
    number = info.get("spec_num_tokens", "")
    return SpeculationSettings.told(
        info.get("spec_method", "").lower() or None, int(number) if number.isdecimal() else None
    )


def _counters(page: MetricsPage, draft_len: int | None) -> SpecCounters:
    """Counts by position come with finished requests, the plain ones with each iteration; the two
    are never mixed."""
    generated = page.total("trtllm_generation_tokens")
    drafted = page.by_position("trtllm_spec_decode_drafted_tokens", "token_position")
    accepted = page.by_position("trtllm_spec_decode_accepted_tokens", "token_position")
    if drafted:
        accepted += (0.0,) * (len(drafted) - len(accepted))
        return SpecCounters(drafted[0], sum(drafted), sum(accepted), accepted, generated)
    tokens = page.total("trtllm_spec_decode_num_draft_tokens")
    rounds = tokens / draft_len if tokens is not None and draft_len else None
    taken = page.total("trtllm_spec_decode_num_accepted_tokens")
    return SpecCounters(rounds, tokens, taken, (), generated)


def _at_least_one(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and value >= 1 else None


class _IterationSums:
    """Running sums over the iterations that were shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = dict.fromkeys(
            ("numRequestsWithDraftTokens", "numDraftTokens", "numAcceptedTokens"), 0.0
        )

    def add(self, rows: list[Any]) -> MetricsReading:
        """The sums after these iterations, and the batch of the last one."""
        running = length = None
        with self._lock:
            for row in rows:
                if not isinstance(row, dict):
                    raise WrongApi(f"{_ITERATIONS} shows what is no iteration of TensorRT-LLM")
                running = _number(row.get("numActiveRequests"), running)
                stats = row.get("specDecodingStats")
                if isinstance(stats, dict):
                    for name in self._sums:
                        self._sums[name] += _number(stats.get(name), 0.0) or 0.0
                    length = _at_least_one(_number(stats.get("acceptanceLength"), None))
            drafts, drafted, accepted = self._sums.values()
        return MetricsReading(
            counters=SpecCounters(drafts, drafted, accepted),
            running_requests=running,
            tokens_per_round=length,
        )


def _number(value: object, otherwise: float | None) -> float | None:
    if isinstance(value, int | float) and math.isfinite(value) and value >= 0:
        return float(value)
    return otherwise
