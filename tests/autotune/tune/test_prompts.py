"""Prompt files as people have them, and texts that are no language."""

import json
import random
import string
from pathlib import Path

import pytest

from autotune.tune.prompts import (
    looks_random,
    read_prompts,
    repeats_itself,
    shipped_prompts,
    shuffled,
)
from planner.errors import InputError

OPENAI = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi?"}]
}
SHAREGPT = {"conversations": [{"from": "human", "value": "One?"}, {"from": "gpt", "value": "Two."}]}
PARTS = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Seen?"}]}]}


def _file(folder: Path, *lines: object) -> Path:
    path = folder / "prompts.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return path


def test_every_form_is_read_up_to_the_last_question(tmp_path: Path) -> None:
    found = read_prompts(_file(tmp_path, OPENAI, SHAREGPT, PARTS, {"prompt": "Plain?"}))
    assert [prompt.messages[-1] for prompt in found.prompts] == [
        ("user", "Hi?"),
        ("user", "One?"),
        ("user", "Seen?"),
        ("user", "Plain?"),
    ]
    assert found.prompts[0].messages[0] == ("system", "Be brief.")
    assert found.skipped == 0


@pytest.mark.parametrize(
    "bad",
    [
        "not json",
        "[1, 2",
        "{}",
        '{"messages": []}',
        '{"messages": "hi"}',
        '{"messages": [{"role": "user"}]}',
        '{"conversations": [{"from": "gpt", "value": "answer only"}]}',
        '{"prompt": "   "}',
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_skipped_and_counted(tmp_path: Path, bad: str) -> None:
    found = read_prompts(_file(tmp_path, OPENAI, bad, SHAREGPT))
    assert len(found.prompts) == 2
    assert found.skipped == 1
    assert found.first_bad.startswith("line 2: ")


def test_one_json_list_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps([SHAREGPT, {"id": 1}, OPENAI]))
    found = read_prompts(path)
    assert (len(found.prompts), found.skipped) == (2, 1)


def test_a_file_without_prompts_is_an_error_that_shows_the_forms(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="messages"):
        read_prompts(_file(tmp_path, "{}"))
    with pytest.raises(InputError, match="cannot read"):
        read_prompts(tmp_path / "absent.jsonl")


def test_shipped_prompts_are_language_of_the_asked_class() -> None:
    everything = shipped_prompts()
    assert not looks_random([prompt.text for prompt in everything.prompts])
    assert len({prompt.prompt_id for prompt in everything.prompts}) == len(everything.prompts)
    assert {prompt.workload for prompt in shipped_prompts("code").prompts} == {"code"}
    assert shipped_prompts("unknown").prompts == everything.prompts


def test_classes_take_turns() -> None:
    order = shuffled(shipped_prompts().prompts, seed=3)
    assert len({prompt.workload for prompt in order[:7]}) == 7
    assert order == shuffled(shipped_prompts().prompts, seed=3)
    assert order != shuffled(shipped_prompts().prompts, seed=4)


def test_token_soup_is_told_from_language() -> None:
    source = random.Random(0)
    letters = string.ascii_letters + string.punctuation
    words = ["".join(source.choices(letters, k=source.randint(1, 9))) for _ in range(20_000)]
    assert looks_random([" ".join(source.choices(words, k=800))])
    assert not looks_random(["short"])


def test_loops_are_told_from_text() -> None:
    assert repeats_itself("and then the same again, " * 40)
    assert not repeats_itself(shipped_prompts("summary").prompts[0].text)
