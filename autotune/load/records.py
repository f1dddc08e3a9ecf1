"""A request to an engine, and what came back, counted in true tokens."""

from dataclasses import dataclass, replace
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One generation to ask for: a conversation (chat), or plain text (completion)."""

    prompt: str | tuple[Message, ...]
    """Text asks the completions API, messages the chat API."""
    max_tokens: int
    """Most tokens to generate."""
    temperature: float = 0.0
    seed: int | None = 0
    ignore_eos: bool = False
    """Generate `max_tokens` whatever the model says; engines that cannot do that ignore it."""
    logprobs: bool = False
    """Ask for each token's log-probability, to compare two arms at their first difference."""


@dataclass(frozen=True, slots=True)
class DraftCounts:
    """Speculation of one request, where the engine reports it with the answer."""

    draft_tokens: int
    accepted_tokens: int
    drafts: int | None = None
    """Drafted rounds; None where not told (llama-server tells tokens only)."""


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token, where log-probabilities were asked for."""

    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Answer:
    """One finished generation."""

    text: str
    prompt_tokens: int
    """Tokens of the prompt, as the engine counts."""
    generated_tokens: int
    """Generated tokens as the engine counts; never the number of stream events."""
    ttft_s: float
    """From sending the request to the first piece of text, on this machine's clock."""
    decode_s: float
    """From the first to the last generated token: the engine's own timing where it gives one,
    else this machine's clock."""
    total_s: float
    """The whole request on this machine's clock."""
    finish_reason: str | None
    """`stop`, `length`, ... as the engine says."""
    decode_timed_by: Literal["engine", "client"] = "client"
    cached_tokens: int | None = None
    """Prompt tokens that came from the engine's cache."""
    drafts: DraftCounts | None = None
    tokens: tuple[Token, ...] = ()

    def with_drafts(self, drafts: DraftCounts) -> "Answer":
        """The answer with what the engine told of its speculation."""
        return replace(self, drafts=drafts)

    @property
    def decode_steps(self) -> int:
        """Tokens that `decode_s` covers: the first one belongs to the prompt."""
        return max(0, self.generated_tokens - 1)

    @property
    def tokens_per_s(self) -> float | None:
        """Decoding speed; None where a single token gives none."""
        if self.decode_steps == 0 or self.decode_s <= 0:
            return None
        return self.decode_steps / self.decode_s
