"""vLLM: counters by position at /metrics; per-request counts where it was asked to give them."""

from typing import Any

from autotune.engines.records import (
    EngineIdentity,
    EngineName,
    MetricsReading,
    SpeculationSettings,
)
from autotune.engines.served_model import ModelName, stated_version
from autotune.load.endpoint import Endpoint
from autotune.load.openai import complete, whole_number
from autotune.load.records import Answer, DraftCounts, Request
from planner.acceptance.metrics_page import MetricsPage, draft_counters, read_page

_WANTED = ("spec_decode_num_", "generation_tokens", "num_requests_running", "num_requests_waiting")


class VllmAdapter:
    """A running vLLM (V1 metrics)."""

    name: EngineName = "vllm"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._model = ModelName(endpoint)

    def identify(self) -> EngineIdentity:
        """The counters exist only with speculation, one per position of D from the start on."""
        page = self._page()
        counters = draft_counters(page)
        if counters.drafts is not None:
            length = len(counters.accepted_per_position) or None
            settings: SpeculationSettings | None = SpeculationSettings(None, length)
        else:  # absent, or in what was left out of the page
            settings = None if page.bad_lines else SpeculationSettings(method="off", draft_len=0)
        version = stated_version(self._endpoint)
        return EngineIdentity(self.name, version, self._model(), settings, page.notes())

    def read_counters(self) -> MetricsReading:
        """Counters, summed over data-parallel engines."""
        page = self._page()
        counted = draft_counters(page, generated="generation_tokens")
        return MetricsReading(
            counters=counted,
            running_requests=page.total("num_requests_running"),
            waiting_requests=page.total("num_requests_waiting"),
            draft_len=len(counted.accepted_per_position) or None,
            notes=page.notes(),
        )

    def generate(self, request: Request) -> Answer:
        """One request; `--per-request-spec-decode-metrics` adds its drafts."""
        done = complete(self._endpoint, request, self._model())
        return _with_drafts(done.answer, done.extras.get("metrics"))

    def _page(self) -> MetricsPage:
        return read_page(self._endpoint.get_text("/metrics"), _WANTED)


def _with_drafts(answer: Answer, metrics: Any) -> Answer:
    told = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    if not isinstance(told, dict):
        return answer
    steps, drafted, accepted = (
        whole_number(told.get(name), f"metrics.speculative_decoding.{name}")
        for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
    )
    return answer.with_drafts(DraftCounts(drafted, accepted, steps))
