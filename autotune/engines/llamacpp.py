"""llama-server: counters at /metrics (--metrics), timings with each answer.

It never tells how it drafts: /props says `none` whatever was started, and speculative members of a
request are ignored in silence. Who starts it must remember the settings.
"""

from dataclasses import replace

from autotune.engines.records import EngineIdentity, EngineName, MetricsReading
from autotune.engines.served_model import ModelName
from autotune.load.endpoint import Endpoint
from autotune.load.errors import WrongApi
from autotune.load.openai import complete, duration_s, whole_number
from autotune.load.records import Answer, DraftCounts, Request
from planner.acceptance.metrics_page import draft_counters, read_page

_WANTED = ("spec_decode_num_", "tokens_predicted_total", "requests_processing", "requests_deferred")


class LlamacppAdapter:
    """A running llama-server."""

    name: EngineName = "llama.cpp"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._model = ModelName(endpoint)

    def identify(self) -> EngineIdentity:
        """Build and model; the speculative settings are not to be had."""
        notes = ("llama-server does not tell its speculative settings",)
        try:
            props = self._endpoint.get_json("/props")
        except WrongApi:
            props = None
        build = props.get("build_info") if isinstance(props, dict) else None
        version = build if isinstance(build, str) else None
        return EngineIdentity(self.name, version, self._model(), None, notes)

    def read_counters(self) -> MetricsReading:
        """Counters since the start; those by position appear with the first drafted request."""
        page = read_page(self._endpoint.get_text("/metrics"), _WANTED)
        return MetricsReading(
            counters=draft_counters(page, generated="tokens_predicted"),
            running_requests=page.total("requests_processing"),
            waiting_requests=page.total("requests_deferred"),
            notes=page.notes(),
        )

    def generate(self, request: Request) -> Answer:
        """One request. Its prompt is not taken from the cache, so that repeats count alike."""
        done = complete(self._endpoint, request, self._model(), {"cache_prompt": False})
        timings = done.extras.get("timings")
        if not isinstance(timings, dict):
            return done.answer
        answer = replace(
            done.answer,
            decode_s=duration_s(timings.get("predicted_ms"), "timings.predicted_ms"),
            decode_timed_by="engine",
        )
        if "draft_n" not in timings:
            return answer
        drafted = whole_number(timings["draft_n"], "timings.draft_n")
        accepted = whole_number(timings.get("draft_n_accepted"), "timings.draft_n_accepted")
        return answer.with_drafts(DraftCounts(drafted, accepted))
