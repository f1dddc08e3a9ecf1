"""Requests in flight and requests per second: the batch that a load implies, by Little's law.

The GPU either reads a prompt (P seconds each) or decodes for all B sequences at once, in turn. With
lambda requests a second, the share rho = lambda*P of the time goes to prompts and

    lambda = 1 / (P + O*t(B)/B)        O tokens an answer, t(B) seconds a token of each sequence

Prompts wait for each other as in a queue with equal service times: rho/(2*(1-rho)) of one.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.smooth import Floats

LARGEST_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Service:
    """What one machine does for each request."""

    prefill_s: float
    output_len: int
    batches: tuple[int, ...]
    token_s: tuple[float, ...]
    """Seconds a token of each sequence at these batches, decoding alone."""

    def seconds_per_token(self, batch: Floats) -> Floats:
        """t(B): straight lines between the batches, and on the last line beyond them."""
        known, times = np.array(self.batches, float), np.array(self.token_s)
        if len(known) == 1:
            return np.full_like(batch, times[0])
        beyond = (times[-1] - times[-2]) / (known[-1] - known[-2])
        inside = np.interp(batch, known, times)
        return np.asarray(inside + np.maximum(batch - known[-1], 0.0) * max(0.0, beyond))


@dataclass(frozen=True, slots=True)
class Steady:
    """A load in balance."""

    batch: int
    """Sequences that decode at once."""
    requests_per_s: float
    ttft_s: float
    """From arrival to the first token: waiting, the prompt, one step."""
    tpot_s: float
    """Between tokens of one answer, prompts of others included."""
    latency_s: float
    prefill_share: float
    """Share of the time that goes to prompts."""


def _steady(service: Service, batch: int, rate: float) -> Steady:
    token_s = float(service.seconds_per_token(np.array([float(batch)]))[0])
    share = min(rate * service.prefill_s, 0.999)
    wait = service.prefill_s * share / (2.0 * (1.0 - share))
    tpot = token_s / (1.0 - share)
    ttft = wait + service.prefill_s + token_s
    return Steady(batch, rate, ttft, tpot, ttft + tpot * (service.output_len - 1), share)


def _rates(service: Service, batch: Floats) -> Floats:
    """Requests per second that a machine with B decoding sequences completes."""
    decode = service.output_len * service.seconds_per_token(batch) / batch
    return np.asarray(1.0 / (service.prefill_s + decode))


def in_flight(service: Service, requests: int) -> Steady:
    """Balance with a fixed number of requests, each followed by the next."""
    batch = np.arange(1.0, requests + 1.0)
    rates = _rates(service, batch)
    share = np.minimum(rates * service.prefill_s, 0.999)
    waiting = rates * service.prefill_s * (1.0 + share / (2.0 * (1.0 - share)))
    room = np.flatnonzero(batch + waiting <= requests)
    index = int(room[-1]) if room.size else 0
    return _steady(service, int(batch[index]), float(rates[index]))


def arriving(service: Service, requests_per_s: float) -> Steady | None:
    """Balance with requests that arrive at a rate; None where no batch keeps up."""
    batch = np.arange(1.0, LARGEST_BATCH + 1.0)
    enough = np.flatnonzero(_rates(service, batch) >= requests_per_s)
    if not enough.size:
        return None
    return _steady(service, int(batch[enough[0]]), requests_per_s)


def decoding(service: Service, batch: int) -> Steady:
    """Balance with that many sequences always decoding."""
    return _steady(service, batch, float(_rates(service, np.array([float(batch)]))[0]))


def within(service: Service, ttft_s: float, tpot_s: float) -> Steady | None:
    """The largest batch up to which both times are kept; None where one request breaks them."""
    best = None
    for batch in range(1, LARGEST_BATCH + 1):
        found = decoding(service, batch)
        if found.ttft_s > ttft_s or found.tpot_s > tpot_s:
            break
        best = found
    return best


def most_requests_per_s(service: Service) -> float:
    """The largest rate that any batch sustains."""
    return float(_rates(service, np.arange(1.0, LARGEST_BATCH + 1.0)).max())
