"""Every writer on a disk that is full, in a name space of its own, which may mount one.

usage: unshare -rm python tests/full_disk.py FOLDER; prints what became of each writer as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import emit_plans
import yaml
from tune_results import tune_result

from autotune.build.folder import write_build
from autotune.calibrate.keep import keep
from autotune.calibrate.samples import Series
from autotune.commands.feedback import command as feedback
from autotune.tune.html_page import tune_page
from autotune.tune.records import Arm, Cell, Prompt, Sample
from autotune.tune.run import _save
from autotune.tune.schedule import Effort
from autotune.tune.state import SampleFile, header_of
from autotune.tune.storage import open_study, written_in
from autotune.watch.kept import Kept, write_kept
from hwprofiles.schema import Calibration
from planner.cli.main import EXIT_CODES, EXIT_OUTSIDE
from planner.design.answer import design
from planner.design.question import DesignQuestion, TargetAsked
from planner.emit.records import Emission, EmittedFile
from planner.emit.write import write_out
from planner.errors import PlannerError
from planner.report.design_files import write_design
from planner.report.evaluations import write_evaluations
from planner.report.html.write import write_page
from planner.search.question import Question
from planner.search.records import Launch
from planner.search.situation import situation
from planner.search.sweep import search
from spec_kernels.manifest import BuildManifest
from tools.fuzz.kept import result_samples
from tools.fuzz.live import calibration_samples
from tools.fuzz.samples import manifest_samples

LONG = "x" * 20_000
LAUNCH = Launch(argv=("engine", "x"), ready_url="http://a/health", metrics_url="http://a/metrics")
SMALL = Question("Qwen/Qwen3-8B", "4090", batch=(1,), context=(4096,), calibration="none")


def plan(folder: Path, turn: str) -> None:
    """`recommend --out`."""
    emission = Emission((EmittedFile("engine.yaml", turn + LONG),), LAUNCH, ())
    write_out(folder / "plan", emit_plans.plan(), emission, force=True)


def page(folder: Path, turn: str) -> None:
    """`--html`, of every verb that has it."""
    write_page(folder / "page.html", tune_page(tune_result(study=turn)), force=True)


def evaluations(folder: Path, _: str) -> None:
    """`--all-evaluations`."""
    found = situation(SMALL)
    results = [(one, found.grid) for one in search(found).drafted]
    write_evaluations(folder / "all.csv", results)


def designed(folder: Path, _: str) -> None:
    """`design --out`."""
    target = TargetAsked("H200", batch=(1,), context=(4096,))
    asked = DesignQuestion((target,), params=8e9, values={"num_layers": (32, 36)})
    write_design(folder, design(asked), force=True)


def calibration(folder: Path, turn: str) -> None:
    """`calibrate`: samples, and the record that names them."""
    record = Calibration.model_validate(yaml.safe_load(calibration_samples()[0]))
    record = record.model_copy(update={"created": f"2026-11-30T00:00:0{turn}Z"})
    series = [Series("copy", {"bytes": 1.0}, {"bytes": 1.0}, (1e-3,) * 2000)]
    keep(record, series, folder / "card.yaml")


def result(folder: Path, turn: str) -> None:
    """`tune`: tune.json."""
    _save(tune_result(study=turn + LONG), folder)


def samples(folder: Path, turn: str) -> None:
    """`tune`: a cell more."""
    arms = (Arm(name="off", family="none", draft_len=0),)
    prompts = (Prompt(prompt_id="a", workload="code", messages=(("user", "q"),)),)
    file = SampleFile(folder, header_of(arms, prompts, Effort(blocks=2, prompts=1)))
    if turn == "1":
        file.begin(force=False)
    sample = Sample(prompt_id="a", workload="code", tokens=1, ttft_s=1, decode_s=1, text=LONG)
    file.add(Cell(block=int(turn), place=0, arm="off", samples=(sample,)))


def state(folder: Path, turn: str) -> None:
    """`watch --state`."""
    kept = Kept(
        engine="vllm", model=turn + LONG, family="eagle3", draft_len=2, rounds=1.0,
        accepted=(1.0,), all_rounds=1.0, dispersion=1.0, batch_seconds=(),
    )  # fmt: skip
    write_kept(folder / "state.json", kept)


def row(folder: Path, turn: str) -> None:
    """`feedback --out`."""
    where = folder.parent / "tune.json"
    if turn == "1":
        where.write_bytes(result_samples()[0])
    feedback(result=where, model=f"org/name{turn}", out=folder / "row.jsonl")


def kernels(folder: Path, turn: str) -> None:
    """`build`: the cache, and --out."""
    manifest = BuildManifest.model_validate_json(manifest_samples()[0])
    write_build(folder / "kernels", manifest, {"verify64.cubin": (turn + LONG).encode()})


def study(folder: Path, _: str) -> None:
    """`--study`."""
    where = str(folder / "s.journal")
    with written_in(where):
        known = open_study(where, "tune", 0)
        for number in range(40):
            known.ask().set_user_attr(str(number), "x" * 300)
    known.tell(0, 1.5)


WRITERS: dict[str, Callable[[Path, str], None]] = {
    one.__name__: one
    for one in (
        plan, page, evaluations, designed, calibration, result, samples, state, row, kernels, study
    )
}  # fmt: skip


def seen(folder: Path) -> dict[str, bytes]:
    """Every file below, and what it holds."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fill(disk: Path, left_bytes: int) -> None:
    """Take what there is but for that."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as stream:
        while stream.write(b"\0" * 4096):
            pass
    os.truncate(filler, filler.stat().st_size - left_bytes)


def outcome(name: str, folder: Path) -> str:
    """What a writer says that fails with exit 4; or what else it does."""
    try:
        WRITERS[name](folder, "2")
    except (PlannerError, OSError) as failure:
        code = next((c for family, c in EXIT_CODES if isinstance(failure, family)), 1)
        return f"{'' if code == EXIT_OUTSIDE else f'exit {code}: '}{failure}"
    return "it wrote"


def mount(options: str, disk: Path) -> None:
    """Mount the disk, or mount it anew."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    subprocess.run(command, check=True, timeout=20)


def tried(name: str, disk: Path) -> dict[str, object]:
    """What one writer does when the disk is full the second time."""
    folder = disk / name
    folder.mkdir()
    WRITERS[name](folder, "1")
    before = seen(folder)
    fill(disk, 0 if name == "row" else 4096)  # a row is short; the others stop half way
    said: dict[str, object] = {"wrote": sorted(before), "full": outcome(name, folder)}
    after = seen(folder)
    said["changed"] = sorted(k for k, old in before.items() if after.get(k) != old)
    said["begins_alike"] = all(after.get(k, b"").startswith(old) for k, old in before.items())
    said["left"] = sorted(set(after) - set(before))
    said["folders"] = sorted(p.name for p in folder.iterdir() if p.name.startswith("."))
    (disk / "filler").unlink()
    mount("remount,ro", disk)
    said["read_only"] = outcome(name, folder)
    said["read_only_changed"] = seen(folder) != after
    mount("remount,rw", disk)
    shutil.rmtree(folder)
    return said


def main() -> None:
    disk = Path(sys.argv[1])
    mount("size=8m", disk)
    sys.stdout.write(json.dumps({name: tried(name, disk) for name in WRITERS}))


if __name__ == "__main__":
    main()
