"""Classes of quality evidence: the rules of the table, its rows, and what is not covered."""

from pathlib import Path

import numpy as np
import pytest

from planner.arch.mixers import DeltaDims, Heads, LatentDims
from planner.design.quality import classify, evidence_rows, gaps, read_table, shipped_table
from planner.design.shape import Latent, Mixers, Shape, Window
from planner.errors import InputError


def _shape(mixers: Mixers, hidden: int = 4096) -> Shape:
    return Shape(hidden, 151936, False, 32, 32, mixers, ffn_width=12288)


def _gqa(heads: int, kv_heads: int, width: int = 128) -> Shape:
    return _shape(Mixers(Heads(heads, kv_heads, width, width)))


def _class(shape: Shape, params: float = 8e9) -> str:
    return str(classify(shipped_table(), shape, np.array([params]))[0])


WINDOW = Window(1024, Heads(32, 4, 128, 128))
MLA = LatentDims(512, 1536, 128, 64, 128)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (_gqa(32, 8), "A"),  # Llama-3.1-8B: G 4
        (_gqa(64, 8), "A"),  # G 8
        (_gqa(32, 4), "B"),  # Qwen3-30B-A3B: 4 KV heads
        (_gqa(128, 8), "B"),  # G 16 with 8 KV heads: no ablation
        (_gqa(64, 8, 64), "B"),  # narrow heads with 8 KV heads: outside class A
        (_gqa(32, 2), "C"),
        (_gqa(32, 1, 256), "C"),  # MQA with wide heads, 16x less KV
        (_gqa(32, 1), "D"),  # 32x less KV than MHA
        (_gqa(64, 1, 64), "D"),
        (_shape(Mixers(Latent(128, MLA))), "A"),
        (_shape(Mixers(Heads(32, 4, 128, 128), WINDOW, 5)), "H"),
        (_shape(Mixers(Heads(32, 1, 128, 128), WINDOW, 5)), "C"),
        (_shape(Mixers(Heads(32, 4, 128, 128), WINDOW, 1)), "B"),
        (_shape(Mixers(Heads(16, 2, 256, 256), DeltaDims(16, 32, 128, 128, 4), 3)), "H"),
    ],
)
def test_classes_of_the_table(shape: Shape, expected: str) -> None:
    assert _class(shape) == expected


def test_small_models_are_one_class_riskier() -> None:
    assert (_class(_gqa(32, 8), 0.4e9), _class(_gqa(32, 8), 0.6e9)) == ("B", "A")
    assert _class(_gqa(64, 1, 64), 0.4e9) == "D"


def test_every_class_has_rows_with_a_source() -> None:
    rows = evidence_rows()
    for risk in shipped_table().classes.values():
        assert risk.rows
        for row in risk.rows:
            assert rows[row]["source"]
            assert rows[row]["read"]


def test_what_no_row_covers_is_said() -> None:
    said = gaps(shipped_table(), _gqa(64, 2), 8e9)
    assert any("G of 32 or more" in one for one in said)
    assert any("acceptance" in one for one in said)
    assert not any("G of 32" in one for one in gaps(shipped_table(), _gqa(32, 8), 8e9))


def test_the_users_own_table_counts_instead(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(
        "schema_version: 1\nrecipe_noise_nats: 0.01\nrecipe_noise_points: 1\n"
        "classes:\n  ok: {title: tried, rank: 0, loss_nats: [0, 1], points: [0, 0], says: ours}\n"
        "rules:\n  - {class: ok}\n"
    )
    table = read_table(own)
    assert str(classify(table, _gqa(64, 1, 64), np.array([8e9]))[0]) == "ok"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema_version: 2\n", "schema_version"),
        (
            "schema_version: 1\nrecipe_noise_nats: 0\nrecipe_noise_points: 0\nclasses: {}\n"
            "rules:\n  - {class: Z}\n",
            "not listed: Z",
        ),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(own)
