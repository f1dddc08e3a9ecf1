"""An engine without a clock: its times follow from known round costs, drift and seeded noise."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from autotune.engines.records import EngineIdentity, MetricsReading
from autotune.load.records import Answer, Request, Token
from autotune.tune.records import Arm
from autotune.tune.stage import Running
from planner.acceptance.spec_counters import SpecCounters


@dataclass(frozen=True)
class Truth:
    """What the simulated engine does with one draft length."""

    draft_len: int
    accept: float
    """Chance that each further drafted token is accepted."""
    share: float = 1.0
    """Share of rounds that draft."""
    base: float = 1.2
    """R = base + slope * D."""
    slope: float = 0.1
    lookup: float = 0.0
    step_s: float = 0.02

    def speedup(self) -> float:
        """In the long run."""
        gained = sum(self.accept**k for k in range(1, self.draft_len + 1))
        cost = self.share * (self.base + self.slope * self.draft_len) + 1 - self.share
        return (1 + self.share * gained) / (cost + self.lookup)


OFF_TRUTH = Truth(0, 0.0, share=0.0)


@dataclass
class SimulatedAdapter:
    truth: Truth
    source: random.Random
    drift: float = 1.0
    noise: float = 0.01
    counters: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    per_position: list[float] = field(default_factory=list)
    text: str = ""
    sent: list[str] = field(default_factory=list)
    foreign: int = 0

    name = "llama.cpp"

    def identify(self) -> EngineIdentity:
        return EngineIdentity("llama.cpp", "b1", "simulated", None)

    def read_counters(self) -> MetricsReading:
        drafts, drafted, accepted, generated = self.counters
        counts = SpecCounters(drafts, drafted, accepted, tuple(self.per_position), generated)
        return MetricsReading(counts, running_requests=self.foreign, waiting_requests=0)

    def generate(self, request: Request) -> Answer:
        truth, left, time = self.truth, request.max_tokens - 1, 0.0
        assert not isinstance(request.prompt, str)
        prompt = request.prompt[-1].content
        self.sent.append(prompt)
        while left > 0:
            drafts = truth.draft_len > 0 and self.source.random() < truth.share
            got = self._round() if drafts else 1
            time += truth.base + truth.slope * truth.draft_len if drafts else 1.0
            time += truth.lookup
            left -= got
        seconds = time * truth.step_s * self.drift * self.source.lognormvariate(0, self.noise)
        tokens = request.max_tokens - left
        self.counters[3] += tokens
        text = self.text or f"answer to {prompt[:20]}"
        return Answer(
            text=text,
            prompt_tokens=10,
            generated_tokens=tokens,
            ttft_s=0.05,
            decode_s=seconds,
            total_s=seconds + 0.05,
            finish_reason="length",
            decode_timed_by="engine",
            tokens=(Token(text, -0.1),) if request.logprobs else (),
        )

    def _round(self) -> int:
        accepted = 0
        while accepted < self.truth.draft_len and self.source.random() < self.truth.accept:
            accepted += 1
        self.counters[0] += 1
        self.counters[1] += self.truth.draft_len
        self.counters[2] += accepted
        self.per_position += [0.0] * (self.truth.draft_len - len(self.per_position))
        for k in range(accepted):
            self.per_position[k] += 1
        return accepted + 1


@dataclass
class SimulatedStage:
    """Serves arms by their truth; the machine drifts from turn to turn."""

    truths: Mapping[str, Truth]
    seed: int = 0
    noise: float = 0.01
    drift: float = 0.0
    restarts: bool = True
    fail_after: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)
    adapters: list[SimulatedAdapter] = field(default_factory=list)

    @contextmanager
    def serve(self, arm: Arm) -> Iterator[Running]:
        if self.fail_after is not None and len(self.turns) >= self.fail_after:
            raise ConnectionError("the engine is gone")
        source = random.Random(f"{self.seed}:{len(self.turns)}")
        drift = 1.0 + self.drift * (len(self.turns) // len(self.truths))
        self.turns.append(arm.name)
        adapter = SimulatedAdapter(
            self.truths[arm.name], source, drift, self.noise, text=self.texts.get(arm.name, "")
        )
        self.adapters.append(adapter)
        yield Running(adapter)


def arms_for(truths: Mapping[str, Truth], family: str = "external") -> tuple[Arm, ...]:
    """The arms by name."""
    return tuple(
        Arm(name=name, family="none" if name == "off" else family, draft_len=truth.draft_len)
        for name, truth in truths.items()
    )
