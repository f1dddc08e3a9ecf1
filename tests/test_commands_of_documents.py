"""Every command that README and docs show can be typed, and those that need no engine answer."""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import typer.main
from gguf_samples import Q4_K, Q6_K, dense_block, write

from planner.cli import main as cli
from planner.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]
QUICK_START = ROOT / "docs" / "quick-start.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?:sh|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`planner ([^`]+)`")
PLUGINS = {
    "build": "autotune.commands.build",
    "calibrate": "autotune.commands.calibrate",
    "feedback": "autotune.commands.feedback",
    "tune": "autotune.commands.tune",
    "watch": "autotune.commands.watch",
}
METRICS = """\
# TYPE vllm:spec_decode_num_drafts counter
vllm:spec_decode_num_drafts_total{model_name="q"} 1000.0
# TYPE vllm:spec_decode_num_draft_tokens counter
vllm:spec_decode_num_draft_tokens_total{model_name="q"} 3000.0
# TYPE vllm:spec_decode_num_accepted_tokens counter
vllm:spec_decode_num_accepted_tokens_total{model_name="q"} 1500.0
"""


def fenced(text: str) -> Iterator[list[str]]:
    """The planner's commands in a document's shell blocks, as words."""
    for block in FENCE.findall(text):
        joined = block.replace("\\\n", " ")
        for line in joined.splitlines():
            for part in re.split(r";|\|(?![^']*'[^']*$)", line):
                words = shlex.split(part, comments=True)
                if words and Path(words[0]).name == "planner":
                    yield words[1:]


def shown(documents: Sequence[Path] = tuple(DOCUMENTS)) -> list[tuple[str, ...]]:
    found = (tuple(words) for d in documents for words in fenced(d.read_text(encoding="utf-8")))
    return list(dict.fromkeys(found))


def options(verb: str) -> set[str]:
    """The options that a verb knows."""
    if verb in PLUGINS:
        pytest.importorskip("httpx", reason="extra [live]")
    module = import_module(PLUGINS[verb] if verb in PLUGINS else VERBS[verb].module)
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False)
        app.command(verb)(module.command)
    pending, known = [typer.main.get_command(app)], set()
    while pending:
        command = pending.pop()
        pending += list(getattr(command, "commands", {}).values())
        known |= {name for parameter in command.params for name in parameter.opts}
    return known


@pytest.mark.parametrize("words", shown(), ids=" ".join)
def test_a_shown_command_can_be_typed(words: tuple[str, ...]) -> None:
    assert words[0] in {*VERBS, *PLUGINS}
    used = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
    assert used <= options(words[0])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_verbs_and_options_named_in_a_sentence_exist(document: Path) -> None:
    for text in INLINE.findall(document.read_text(encoding="utf-8")):
        verb, *rest = text.split()
        if verb.startswith("-") or verb == "VERB":
            continue
        assert verb in {*VERBS, *PLUGINS}, text
        used = {word.partition("=")[0] for word in rest if word.startswith("--")} - {"--help"}
        if used:
            assert used <= options(verb), text


def answers_here(words: tuple[str, ...]) -> bool:
    """Whether the command needs neither a GPU of this machine nor a builder or an engine."""
    return words[0] in VERBS and not {"auto", "--build"} & set(words)


ONE_BY_ONE = [d for d in DOCUMENTS if d != QUICK_START]


@pytest.mark.parametrize(
    "words", [words for words in shown(ONE_BY_ONE) if answers_here(words)], ids=" ".join
)
def test_a_shown_command_answers(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--html" in words:
        pytest.importorskip("jinja2", reason="extra [report]")
    monkeypatch.chdir(tmp_path)
    files_that_documents_name(tmp_path)
    piped = BytesIO(b'{"model": "Qwen/Qwen3-8B", "gpu": "4090", "drafter": "eagle3"}\n')
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(piped))
    fewer = ["--vary", "num_kv_heads"] if words[0] == "design" else []  # seconds, not a minute
    assert cli.run([*words, *fewer]) == 0
    assert capsys.readouterr().out
    made = {words[words.index(option) + 1] for option in ("--out", "--html") if option in words}
    assert all((tmp_path / name).exists() for name in made)


def test_the_quick_start_can_be_followed_in_order_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2", reason="extra [report]")
    monkeypatch.chdir(tmp_path)
    files_that_documents_name(tmp_path)  # those that the page calls the reader's own
    for words in shown([QUICK_START]):
        if answers_here(words):
            fewer = ["--vary", "num_kv_heads"] if words[0] == "design" else []
            assert cli.run([*words, *fewer]) == 0, words
    assert capsys.readouterr().out
    text = QUICK_START.read_text(encoding="utf-8")
    introduction = text.partition("\n## ")[0]
    assert all(name in introduction for name in ("my-model.gguf", "metrics.txt", "[report]"))


def files_that_documents_name(folder: Path) -> None:
    """A model of the user's own, and an engine's metrics page."""
    values = {
        "block_count": 2,
        "embedding_length": 256,
        "context_length": 40960,
        "feed_forward_length": 512,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
    }
    tables = {"token_embd.weight": ((1000, 256), Q4_K), "output.weight": ((1000, 256), Q6_K)}
    blocks = {**dense_block(0), **dense_block(1)}
    write(folder / "my-model.gguf", "llama", values, {**tables, **blocks}, tokens=1000)
    (folder / "metrics.txt").write_text(METRICS, encoding="utf-8")


def test_the_python_of_the_documents_runs() -> None:
    pytest.importorskip("jinja2", reason="extra [report]")
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    exec("\n".join(blocks), names)  # noqa: S102  # our own page
    assert names["plan"].best.draft_len  # type: ignore[attr-defined]
