"""Counts of accepted drafts in engine metrics and logs, in each engine's own convention."""

import math
import re
from dataclasses import dataclass

from hwprofiles.errors import InputError
from planner.acceptance.metrics_page import (
    MAX_POSITION,
    MetricsPage,
    draft_counters,
    read_page,
)
from planner.acceptance.spec_counters import SpecCounters

_NUMBER = r"\d{1,9}(?:\.\d{1,20})?"
_VLLM_LINE = re.compile(
    r"Mean acceptance length: [\d.]+.{0,400}?Accepted: (\d{1,15}) tokens, "
    r"Drafted: (\d{1,15}) tokens, "
    r"Per-position acceptance rate: ([\d., ]+)"
)
_SGLANG_LINE = re.compile(rf"accept len: ({_NUMBER}),(?: accept rate: ({_NUMBER}))?")
_LLAMACPP_LINE = re.compile(
    r"statistics +(\S{1,80}) *: +#calls(?:\(b,g,a\))? *= *([\d ]{1,60}), *"
    r"#gen drafts *= *(\d{1,15}), *#acc drafts *= *\d+, *#gen tokens *= *(\d{1,15}), *"
    r"#acc tokens *= *(\d{1,15})"
)


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """What a run counted, engine conventions removed."""

    tokens_per_drafted_round: float
    """Accepted draft tokens of a drafted round + 1."""
    draft_len: int
    rounds: int | None = None
    """Drafted rounds counted; None where the engine shows only a mean."""
    survival: tuple[float, ...] = ()
    """S_1, S_2, ... where counted by position."""
    draft_share: float = 1.0
    mean_draft_len: float | None = None
    note: str = ""

    def log_sd(self) -> float:
        """Standard deviation of log E[L]: twice the sampling error, since rounds of one text are
        alike, and 2 % for drift of the traffic; 8 % where only a momentary mean is known."""
        if not self.rounds:
            return 0.08
        mean = self.tokens_per_drafted_round - 1.0
        if self.survival:
            square = sum((2 * k + 1) * s for k, s in enumerate(self.survival))
        else:
            square = mean * self.draft_len
        error = math.sqrt(max(0.0, square - mean**2) / self.rounds)
        return math.hypot(2.0 * error / self.tokens_per_drafted_round, 0.02)

    def describe(self) -> str:
        """One clause for the provenance list."""
        rounds = f" over {self.rounds} rounds" if self.rounds else ""
        note = f" ({self.note})" if self.note else ""
        return f"E[L] = {self.tokens_per_drafted_round:.2f} at D = {self.draft_len}{rounds}{note}"


def counts_from_metrics(text: str, where: str) -> RoundCounts:
    """Read a saved /metrics page of vLLM, llama.cpp or SGLang.

    Raises:
        InputError: not the Prometheus text format, or nothing drafted yet.
    """
    page = read_page(text, ("spec_",))
    if page.bad_lines:
        raise InputError(
            f"{where} is not a Prometheus metrics page: {page.bad_lines} of its lines on "
            "speculation cannot be read"
        )
    if page.has("spec_decode_num_drafts"):
        return _counters(draft_counters(page), where)
    return _gauges(page, where)


def _counters(counted: SpecCounters, where: str) -> RoundCounts:
    wrong = counted.absurdity()
    if wrong:
        raise InputError(f"{where} shows what no engine counts: {wrong}; save /metrics again")
    drafts, accepted = counted.drafts or 0.0, counted.accepted_tokens or 0.0
    drafted = counted.draft_tokens or 0.0
    if drafts <= 0:
        raise InputError(
            f"{where} counts no drafts yet: send your own traffic first, then save /metrics again"
        )
    survival = tuple(count / drafts for count in counted.accepted_per_position)
    length = len(survival) or round(drafted / drafts) or math.ceil(accepted / drafts)
    return RoundCounts(
        tokens_per_drafted_round=1.0 + accepted / drafts,
        draft_len=max(1, length),
        rounds=int(drafts),
        survival=survival,
        mean_draft_len=drafted / drafts if 0 < drafted < drafts * (length - 0.05) else None,
    )


def _gauges(page: MetricsPage, where: str) -> RoundCounts:
    """SGLang: gauges of the latest interval; the draft worker's own series is not the answer."""
    gauges = momentary(page, where)
    return RoundCounts(
        gauges.tokens_per_round, gauges.draft_len, note=f"momentary gauge; {gauges.note}"
    )


@dataclass(frozen=True, slots=True)
class MomentaryLength:
    """What SGLang's gauges say of its latest interval."""

    tokens_per_round: float
    """E[L], bonus token counted."""
    draft_len: int
    note: str


def momentary(page: MetricsPage, where: str) -> MomentaryLength:
    """E[L] and D from SGLang's gauges, in either of its two conventions.

    Raises:
        InputError: there is no accept length, or nothing that D follows from.
    """
    length, steps, tokens, rate = (
        _finite(page.largest(name))
        for name in (
            "spec_accept_length",
            "spec_num_steps",
            "spec_num_draft_tokens",
            "spec_accept_rate",
        )
    )
    if not length:
        raise InputError(f"{where} shows no spec_accept_length: is speculation on, with traffic?")
    if tokens and (not steps or tokens == steps + 1):
        draft_len, note = int(tokens) - 1, "SGLang counts the root in num_draft_tokens"
    else:
        draft_len, note = _draft_len_from_rate(length, rate, where)
    _require_possible(length, draft_len, where)
    return MomentaryLength(length, draft_len, note)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _require_possible(length: float, draft_len: float, where: str) -> None:
    if not (1 <= draft_len <= MAX_POSITION and length <= draft_len + 1 + 1e-6):
        raise InputError(
            f"{where} says E[L] = {length:g} at D = {draft_len:g}, which no engine does "
            f"(D is 1..{MAX_POSITION}, E[L] at most D + 1)"
        )


def _draft_len_from_rate(length: float, rate: float | None, where: str) -> tuple[int, str]:
    """D from SGLang's accept rate under the definition that gives a whole number."""
    if not rate or rate <= 0:
        raise InputError(f"{where} does not say D: give {{tokens_per_round, draft_len}} instead")
    newer, older = (length - 1.0) / rate, length / rate - 1.0
    _require_possible(1.0, max(1.0, older), where)
    if abs(newer - round(newer)) <= abs(older - round(older)):
        draft_len, note = round(newer), "rate = accepted/D"
    else:
        draft_len, note = round(older), "older rate = E[L]/(D+1)"
    return max(draft_len, math.ceil(length - 1.0), 1), note


def counts_from_log(text: str, where: str) -> RoundCounts | None:
    """Read log lines of vLLM (V1), llama.cpp or SGLang; None where there are none.

    Raises:
        InputError: only vLLM V0 lines, whose emitted-token counter cannot be converted.
    """
    for reader in (_vllm_log, _llamacpp_log, _sglang_log):
        counts = reader(text, where)
        if counts is not None:
            return counts
    if "draft acceptance rate = " in text:
        raise InputError(
            f"{where} holds llama.cpp's acceptance by drafted token, from which E[L] does not "
            "follow: give a log with its `statistics` line (printed when a request ends), or a "
            "saved /metrics page"
        )
    if "spec_decode_num_emitted_tokens" in text:
        raise InputError(
            f"{where} is a page of vLLM V0, whose 'emitted tokens' counter does not give E[L]: use "
            "one of vLLM V1"
        )
    if "Speculative metrics: Draft acceptance rate" in text:
        raise InputError(
            f"{where} holds vLLM V0 lines, whose 'emitted tokens' counter does not give E[L]: "
            "use a /metrics page or a log of vLLM V1"
        )
    return None


def _vllm_log(text: str, _: str) -> RoundCounts | None:
    rounds, accepted_sum = 0.0, 0.0
    sums: list[float] = []
    for match in _VLLM_LINE.finditer(text):
        rates = [float(x) for x in re.findall(_NUMBER, match[3])]
        if not rates or len(rates) > MAX_POSITION:
            continue
        here = int(match[2]) / len(rates)
        rounds += here
        accepted_sum += int(match[1])
        sums += [0.0] * (len(rates) - len(sums))
        for k, rate in enumerate(rates):
            sums[k] += rate * here
    if rounds <= 0:
        return None
    survival = tuple(min(1.0, s / rounds) for s in sums)
    return RoundCounts(1.0 + accepted_sum / rounds, len(sums), int(rounds), survival)


def _llamacpp_log(text: str, _: str) -> RoundCounts | None:
    """The last line of the drafter that drafted most; its counters only grow."""
    last = {m[1]: m for m in _LLAMACPP_LINE.finditer(text)}
    found = max(last.values(), key=lambda m: int(m[3]), default=None)
    if found is None or int(found[3]) == 0:
        return None
    calls = [int(x) for x in found[2].split()]
    rounds = calls[1] if len(calls) == 3 else calls[0]
    drafts, generated, accepted = (int(found[k]) for k in (3, 4, 5))
    return RoundCounts(
        tokens_per_drafted_round=1.0 + min(accepted, generated) / drafts,
        draft_len=max(1, math.ceil(generated / drafts)),
        rounds=drafts,
        draft_share=min(1.0, drafts / rounds) if rounds else 1.0,
        mean_draft_len=generated / drafts,
        note=f"llama.cpp statistics of {found[1]}",
    )


def _sglang_log(text: str, where: str) -> RoundCounts | None:
    found = [(float(m[1]), float(m[2]) if m[2] else None) for m in _SGLANG_LINE.finditer(text)]
    if not found:
        return None
    lengths = sorted(length for length, _ in found)
    length = lengths[len(lengths) // 2]
    draft_len, note = _draft_len_from_rate(*found[-1], where)
    return RoundCounts(length, max(draft_len, math.ceil(length - 1)), note=f"median line; {note}")
