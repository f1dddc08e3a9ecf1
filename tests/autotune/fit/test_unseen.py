import io
import json
import zipfile
from pathlib import Path

import pytest

from autotune.fit.unseen import TABLES, figures, unseen
from autotune.fit.wheel import ROOT, SYSTEMS, UNSEEN, Timed
from autotune.fit.write import Target, write_unseen
from planner.predict.batch import answer_lines

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

LINE = {"op": "gemm", "gpu": "B200", "engine": "vllm", "m": 8, "n": 4096, "k": 4096,
        "dtype": "bf16"}  # fmt: skip


def test_errors_are_shares_of_what_was_measured() -> None:
    (answer,) = answer_lines([LINE])
    measured = [answer["seconds"] / factor for factor in (1.1, 0.8)]
    rows = [Timed(LINE, "B200", seconds) for seconds in measured]
    rows.append(Timed(LINE | {"dtype": "fp3"}, "B200", 1e-5))
    found = figures(rows)
    assert found["rows"] == 3
    assert found["answered"] == pytest.approx(2 / 3)
    assert found["median"] == pytest.approx(0.15)


def test_only_cards_that_were_not_fitted_are_looked_at(tmp_path: Path) -> None:
    assert not set(SYSTEMS) & set(UNSEEN)
    wheel = tmp_path / "tables.whl"
    row = {"kernel_source": "g", "gemm_dtype": "bfloat16", "m": 8, "n": 1024, "k": 1024,
           "latency": 0.01}  # fmt: skip
    with zipfile.ZipFile(wheel, "w") as archive:
        for system in ("b200_sxm", "h100_sxm"):
            content = io.BytesIO()
            pandas.DataFrame([row]).to_parquet(content)
            name = f"{ROOT}/{system}/gemm/vllm/0.24.0/gemm_perf.parquet"
            archive.writestr(name, content.getvalue())
    found = unseen(wheel)
    assert found.keys() == set(TABLES)
    assert found["gemm"].keys() == {"B200"}
    write_unseen(Target(_repository(tmp_path)), found)
    written = json.loads(Target(tmp_path).unseen.read_text("utf-8"))
    assert written["gemm"]["B200"]["rows"] == 1


def _repository(root: Path) -> Path:
    Target(root).unseen.parent.mkdir(parents=True)
    return root
