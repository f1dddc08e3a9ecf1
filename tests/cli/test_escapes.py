"""What a stranger's name holds cannot drive the terminal: no verb prints it as it stands."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.errors import PlannerError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names that only POSIX takes")
ROOT = Path(__file__).parents[2]
EVIL = "\x1b[2J\x1b]8;;evil\x07\u202egpj\u200b\u2066\x9b31m\r"
"""Clears the screen, opens a link, reorders and hides text."""
SOURCE = ROOT / "tests" / "data" / "configs" / "meta-llama--Meta-Llama-3.1-8B.config.json"
CARD = ROOT / "hwprofiles" / "data" / "gpus" / "nvidia-rtx-4090.yaml"


def evil_folder(folder: Path) -> Path:
    made = folder / f"model{EVIL}"
    made.mkdir()
    config = json.loads(SOURCE.read_text())
    config |= {"architectures": [f"LlamaForCausalLM{EVIL}"], "_name_or_path": EVIL}
    (made / "config.json").write_text(json.dumps(config))
    return made


def evil_card(folder: Path) -> Path:
    path = folder / f"card{EVIL}.yaml"
    shutil.copy(CARD, path)
    lines = path.read_text().splitlines()
    named = json.dumps(f"RTX{EVIL}")
    path.write_text("\n".join(f"name: {named}" if x.startswith("name:") else x for x in lines))
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints, its failure's message included as main would print it."""
    said = ""
    try:
        cli.run(arguments)
    except PlannerError as failure:
        cli._complain(failure)
    ended = capsys.readouterr()
    said = ended.out + ended.err
    assert said
    return said


@pytest.mark.parametrize(
    "verb",
    [
        ("recommend", "--gpu", "4090", "--batch", "1", "--context", "4K", "--calibration", "none"),
        ("recommend", "--gpu", "4090", "--gpu", "3090", "--batch", "1", "--calibration", "none"),
        ("explain", "--gpu", "4090", "--calibration", "none"),
        ("inspect",),
        ("drafters",),
    ],
    ids=["recommend", "comparison", "explain", "inspect", "drafters"],
)
def test_a_models_name(
    verb: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, *verb, "--model", str(evil_folder(tmp_path)))
    assert "model" in text
    assert not set(text) & set(EVIL) - set("[2J]8;evilgpj31m"), ascii(text)


@pytest.mark.parametrize("verb", ["recommend", "explain", "show"])
def test_a_cards_name(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = str(evil_card(tmp_path))
    asked = {
        "recommend": ("recommend", "--model", "Qwen/Qwen3-8B", "--gpu", card, "--batch", "1"),
        "explain": ("explain", "--model", "Qwen/Qwen3-8B", "--gpu", card),
        "show": ("gpus", "show", card),
    }
    text = shown(capsys, *asked[verb])
    assert "RTX" in text
    assert not set(text) & set(EVIL) - set("[2J]8;evilgpj31m"), ascii(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("recommend", "--model", EVIL, "--gpu", "4090"),
        ("recommend", "--model", "Qwen/Qwen3-8B", "--gpu", EVIL),
        *(
            ("recommend", "--model", "Qwen/Qwen3-8B", "--gpu", "4090", option, EVIL)
            for option in ("--host", "--engine", "--drafter", "--drafter-path", "--acceptance",
                           "--calibration", "--quant", "--kv-dtype", "--offload", "--workload",
                           "--batch", "--prompt-len", "--max-vram", "--drafter-device")
        ),
        ("gpus", EVIL),
        ("inspect", EVIL),
        ("drafters", "--model", EVIL),
        ("predict", EVIL),
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:-1]) if isinstance(words, tuple) else None,
)  # fmt: skip
def test_what_was_typed(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *arguments)
    assert not set(text) & set(EVIL) - set("[2J]8;evilgpj31m"), ascii(text)
