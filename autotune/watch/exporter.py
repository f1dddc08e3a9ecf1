"""Watch's own Prometheus page."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from autotune.watch.events import Status
from planner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from autotune.watch.advice import Advice

LOOPBACK = "127.0.0.1"
_PREFIX = "specplanner_watch_"


class WatchPage(Collector):
    """The latest status as gauges."""

    def __init__(self) -> None:
        self.status: Status | None = None
        self.advice: Advice | None = None

    def collect(self) -> Iterator[Metric]:
        """Called for each scrape, in the server's thread."""
        status, advice = self.status, self.advice
        if status is None:
            return
        yield _gauge("rounds", "Drafted rounds that the belief rests on.", status.rounds)
        yield _gauge("polls", "Readings so far.", status.polls)
        yield _gauge("failures", "Readings that failed.", status.failures)
        tokens = GaugeMetricFamily(
            _PREFIX + "tokens_per_round",
            "Tokens of a drafted round, bonus token counted; 80 % interval.",
            labels=["bound"],
        )
        if status.tokens_per_round is not None:
            for bound in ("low", "mean", "high"):
                tokens.add_metric([bound], getattr(status.tokens_per_round, bound))
        yield tokens
        accepted = GaugeMetricFamily(
            _PREFIX + "survival",
            "Share of drafted rounds that accept at least so many tokens.",
            labels=["position", "bound"],
        )
        for position, share in enumerate(status.positions, start=1):
            for bound in ("low", "mean", "high"):
                accepted.add_metric([str(position), bound], getattr(share, bound))
        yield accepted
        yield _gauge("advice", "1 while other settings would be faster.", float(advice is not None))
        if advice is not None:
            yield _gauge("advised_draft_len", "D that would be faster; 0 is off.", advice.draft_len)
            yield _gauge("advised_gain", "Time now over time then.", advice.gain.mean)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(_PREFIX + name, text, value=value)


def listen_address(text: str) -> tuple[str, int]:
    """(host, port) of `[HOST:]PORT`; loopback unless another host is typed.

    Raises:
        InputError: it is neither.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"--listen takes [HOST:]PORT, e.g. 9105, got {text!r}")
    return host.strip("[]") or LOOPBACK, int(port)


@contextmanager
def served(page: WatchPage, address: tuple[str, int]) -> Iterator[None]:
    """Serve the page while inside."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(page)
    server, thread = start_http_server(address[1], addr=address[0], registry=registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
