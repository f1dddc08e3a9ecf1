"""Names of data sets and tasks, as people write them -> workload class."""

import re
from functools import lru_cache

from hwprofiles.errors import InputError
from planner.workload.records import WORKLOAD_NAMES, Workload, WorkloadName

_MAX_TEXT = 300

_WORDS: tuple[tuple[str, WorkloadName, str], ...] = (
    (r"agentic ?sql|text-?to-?sql|spider", "agent", "sql"),
    (r"swe-?bench|tau-?bench|bfcl|tool[ -]?(?:use|call\w*)|agent\w*|function[ -]?call\w*|terminal"
     r"-?bench|toolbench", "agent", ""),
    (r"human-?eval\+?|mbpp\+?|live ?code ?bench|lcb|bigcodebench|code ?alpaca|codeforces|apps\b"
     r"|cruxeval|the ?stack|repobench|coding|code|coder|bash|python|programming|refactor\w*|"
     r"sudoku ?solver|html|javascript|rust|aider|instruct-?coder|leet-?code|eval-?plus|ds-?1000",
     "code", ""),
    (r"translat\w*|wmt\d*|multilingual|flores", "translation", ""),
    (r"summari[sz]\w*|cnn(?:[/ -]?(?:daily ?mail|dm))?|xsum|gov-?report|samsum", "summary", ""),
    (r"rag\b|retrieval|natural ?questions|hotpot\w*|long-?bench|narrative ?qa|ruler|needle"
     r"|document", "summary", "rag"),
    (r"extract\w*|json|structured|ner\b", "chat", "extraction"),
    (r"gsm-?8k|math-?\d*|math\w*|aime\d*|amc\d*|olympiad\w*|polaris|hmmt|minerva", "math", ""),
    (r"gpqa|reason\w*|mmlu\w*|arc\b|stem|science|financeqa|finance", "chat", "reasoning"),
    (r"prose|creative|writing|story|stories|poem\w*|novel|essay|fiction|role ?play\w*|wikitext"
     r"|literature", "creative", ""),
    (r"mt-?bench|alpaca\w*|share-?gpt|chat\w*|arena\w*|lmsys|ultra-?chat|oasst|dolly|conversation"
     r"|assistant|humanities|question answering|qa\b|wildchat|live traffic|instruct\w*", "chat",
     ""),
    (r"synthetic|random|tg\d+|pp\d+|token soup|dummy|llama-?bench", "random", ""),
)  # fmt: skip
"""(words, class, detail), most telling first: `SPEED-Bench coding` is code whatever the suite."""
_MIXED = re.compile(
    r"\b(?:mean|avg|average|geomean|overall|all|mixed|mix)\b|spe(?:c|ed)[-_ ]?bench(?!\w)"
    r"|probe\.py",
    re.I,
)
_SUITE = re.compile(r"^\s*(?:speed|spec|mt)[-_ ]?bench\b[:\s]*", re.I)
_THINKING = re.compile(r"\b(no[n]?[- ]?)?(?:thinking|reasoning mode|think)\b", re.I)


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[re.Pattern[str], WorkloadName, str], ...]:
    """The patterns, compiled when a text is first read: start-up does not pay for them."""
    return tuple((re.compile(rf"(?<![a-z0-9])(?:{p})", re.I), n, d) for p, n, d in _WORDS)


@lru_cache(maxsize=4096)
def parse_workload(text: str | None) -> Workload:
    """The class of a data set or task; never fails: what is not recognised is `unknown`, said so.

    Args:
        text: for example `HumanEval`, `SPEED-Bench coding`, `prose`,
            `probe.py mean of code/prose/bash`.
    """
    if not isinstance(text, str) or not text.strip():
        return Workload(assumptions=("no workload given: the average of all is taken",))
    cut = text.strip()[:_MAX_TEXT]
    thinking = _thinking(cut)
    plain = cut.lower()
    if plain in WORKLOAD_NAMES:
        return Workload(name=plain, thinking=thinking)
    task = _SUITE.sub("", cut)
    parts = _parts(task)
    if len(parts) > 1:
        mixed = tuple(name for name, _ in parts)
        names = set(mixed)
        name: WorkloadName = mixed[0] if len(names) == 1 else "unknown"
        said = () if len(names) == 1 else (f"a mix of {', '.join(mixed)}: their average is taken",)
        return Workload(name, parts=mixed, thinking=thinking, assumptions=said)
    found = parts[0] if parts else _match(cut)
    mixed_up = not parts and _MIXED.search(cut) is not None
    if found is None or mixed_up:
        what = "names a mix of tasks" if mixed_up else "is not recognised"
        said = (f"workload {ascii(cut)[:60]} {what}: the average of all is taken",)
        return Workload(thinking=thinking, recognised=mixed_up, assumptions=said)
    return Workload(found[0], found[1], thinking=thinking)


def stated_workload(text: str | None) -> Workload:
    """The class of what a person typed, who can correct it.

    Raises:
        InputError: it names no known task, data set or class.
    """
    workload = parse_workload(text)
    if not workload.recognised:
        raise InputError(
            f"--workload {ascii(text)[:60]} names no known task; give one of "
            f"{', '.join(WORKLOAD_NAMES)}, a data set such as HumanEval, or a mix: code/chat"
        )
    return workload


def _parts(text: str) -> list[tuple[WorkloadName, str]]:
    """Class of each piece of a list such as `code/prose/bash`; one entry for a plain name."""
    pieces = [p for p in re.split(r"\s*(?:/|,|;|\+|&|\band\b)\s*", text) if p.strip()]
    whole = _match(text)
    found = [m for m in (_match(p) for p in pieces) if m is not None]
    if len(pieces) > 1 and len(found) == len(pieces):
        return found
    return [whole] if whole is not None else []


def _match(text: str) -> tuple[WorkloadName, str] | None:
    for pattern, name, detail in _compiled():
        if pattern.search(text):
            return name, detail
    return None


def _thinking(text: str) -> bool | None:
    match = _THINKING.search(text)
    if match is None:
        return None
    return match.group(1) is None
