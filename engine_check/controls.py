"""Commands that each engine must refuse: a judge that accepts one of these is blind."""

import json
from dataclasses import replace
from pathlib import Path

import yaml

from engine_check.cases import Case

_NGRAM = {"method": "ngram", "num_speculative_tokens": 3}
_VLLM: dict[str, dict[str, object]] = {
    "unknown key": {**_NGRAM, "draft_len": 3},
    "look-up bounds crossed": {**_NGRAM, "prompt_lookup_min": 5, "prompt_lookup_max": 2},
    "draft size by the wrong key": {**_NGRAM, "tensor_parallel_size": 1},
    "no tokens": {"method": "ngram", "num_speculative_tokens": 0},
    "overlapping schedule": {
        **_NGRAM,
        "num_speculative_tokens_per_batch_size": [[1, 4, 3], [4, 8, 1]],
    },
}
_TARGET = "the target's own folder"
_SGLANG: dict[str, tuple[str, ...]] = {
    "unknown flag": ("--draft-max", "8"),
    "block draft without a path": ("--speculative-algorithm", "DFLASH"),
    "block and window at odds": (
        *("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", _TARGET),
        *("--speculative-dflash-block-size", "8", "--speculative-num-draft-tokens", "7"),
    ),
    "pipeline stages": (
        *("--speculative-algorithm", "NGRAM", "--speculative-ngram-max-bfs-breadth", "1"),
        *("--pp-size", "2"),
    ),
}
_LLAMACPP: dict[str, tuple[str, ...]] = {
    "removed flag": ("--draft-max", "8"),
    "unknown flag": ("--spec-draft-conf-min", "0.3"),
    "unknown type": ("--spec-type", "draft"),
    "size out of range": ("--spec-ngram-simple-size-n", "5000"),
}
_TRTLLM: dict[str, dict[str, object]] = {
    "unknown key": {"decoding_type": "NGram", "max_draft_len": 3, "num_tokens": 3},
    "name of the documentation": {
        "decoding_type": "DraftTarget",
        "max_draft_len": 3,
        "speculative_model": "x",
    },
    "schedule starts below": {
        "decoding_type": "SA",
        "max_draft_len": 3,
        "draft_len_schedule": {4: 2, 8: 1},
    },
    "no draft model": {"decoding_type": "Eagle3", "max_draft_len": 3},
}


def controls(found: list[Case]) -> list[Case]:
    """Wrong commands, each made from the first plain command of its engine."""
    made = []
    for engine in dict.fromkeys(case.engine for case in found):
        base = next(c for c in found if c.engine == engine and c.arm == "off")
        made += _of(base)
    return made


def _of(base: Case) -> list[Case]:
    extra: dict[str, tuple[str, ...]]
    if base.engine == "vllm":
        extra = {name: ("--speculative-config", json.dumps(c)) for name, c in _VLLM.items()}
    elif base.engine == "trtllm":
        return [_with_file(base, name, spec) for name, spec in _TRTLLM.items()]
    else:
        extra = _SGLANG if base.engine == "sglang" else _LLAMACPP
    return [
        replace(base, arm=f"control: {name}", argv=(*base.argv, *_filled(base, flags)))
        for name, flags in extra.items()
    ]


def _filled(base: Case, flags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(base.argv[3] if flag == _TARGET else flag for flag in flags)


def _with_file(base: Case, name: str, spec: dict[str, object]) -> Case:
    folder = Path(base.folder)
    config = yaml.safe_load((folder / base.argv[-1]).read_text())
    file = f"control-{name.replace(' ', '-')}.yaml"
    (folder / file).write_text(yaml.safe_dump({**config, "speculative_config": spec}))
    return replace(base, arm=f"control: {name}", argv=(*base.argv[:-1], file))
