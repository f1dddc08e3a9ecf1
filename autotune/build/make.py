"""One build from a request: look in the cache, else search, compile, validate and write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.build.folder import (
    build_key,
    cache_folder,
    copy_build,
    finished,
    versions,
    write_build,
)
from autotune.build.measured import Stopwatch, fastest
from autotune.build.ranking import Work
from autotune.build.request import BuildRequest, LayerWork
from planner.errors import InputError, OutsideFailure
from spec_kernels.aot import Compiled, Job
from spec_kernels.manifest import (
    BuildManifest,
    File,
    Kernel,
    Problem,
    Role,
    SearchRecord,
    Shape,
    Target,
    Tile,
    Usage,
    Validation,
    source_sha256,
)
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec

if TYPE_CHECKING:
    from autotune.build.search import Found

Progress = Callable[[str, int, int], None]
"""Called with what is being done, steps done, and steps in all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to build."""

    out: Path | None
    """Folder that gets the build; None leaves it in the cache."""
    jobs: int
    trials: int | None
    force: bool = False
    """Build again even when the cache holds it."""
    stopwatch: Stopwatch | None = None
    """Times the best configurations on the target's card; None ranks by estimate alone."""


@dataclass(frozen=True, slots=True)
class Built:
    """The result."""

    manifest: BuildManifest
    folder: Path
    from_cache: bool


def build(request: BuildRequest, wanted: Wanted, progress: Progress) -> Built:
    """The build of a request, from the cache where it is there.

    Raises:
        InputError: Triton is missing, or the folder is not ours to replace.
        NoFeasiblePlan: no configuration may be shipped.
        OutsideFailure: the compiler or the disk failed, or the kernel gave wrong numbers.
    """
    timed = wanted.stopwatch is not None
    key = build_key(request, versions(), trials=wanted.trials, timed=timed)
    cached = cache_folder() / key
    manifest = None if wanted.force else finished(cached, key)
    hit = manifest is not None
    if manifest is None:
        manifest = _make(request, wanted, cached, progress)
    if wanted.out is None:
        return Built(manifest, cached, hit)
    if finished(wanted.out, key) is None or not hit:
        copy_build(cached, wanted.out)
    return Built(manifest, wanted.out, hit)


@dataclass(frozen=True, slots=True)
class _Layers:
    """What the search of all layers gave."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    """By the name of the cubin: layers of one shape share their kernels."""
    files: dict[str, bytes] = field(default_factory=dict)
    records: list[SearchRecord] = field(default_factory=list)


def _make(request: BuildRequest, wanted: Wanted, cached: Path, progress: Progress) -> BuildManifest:
    """Search, compile, check, and put the build into the cache."""
    _require_packages()
    work_folder = cached.with_name(f"{cached.name}.work")
    work_folder.mkdir(parents=True, exist_ok=True)
    made = _Layers()
    for layer in request.layers:
        works = _works(request, layer)
        found = _searched(layer, works, wanted, work_folder, progress)
        made.records.append(_search_record(found, wanted))
        for one in [*_chosen(found, works, wanted.stopwatch), MERGE]:
            kernel, content = _kernel(request, layer.spec, one, work_folder)
            made.kernels.setdefault(kernel.cubin.name, kernel)
            made.files.update(content)
    kernels = tuple(made.kernels.values())
    progress("checking numbers", 0, 1)
    verdict = validated(request, kernels)
    progress("checking numbers", 1, 1)
    manifest = BuildManifest(
        key=cached.name,
        statement=_statement(request, verdict, timed=wanted.stopwatch is not None),
        source_sha256=source_sha256(),
        target=Target(
            capability=request.capability,
            gpu=request.device.id,
            sm_count=request.device.sm_count,
        ),
        problem=Problem(
            model=request.model, draft_len=request.draft_len, batch=request.batch,
            context_len=request.context_len, kv_dtype=request.kv_dtype,
        ),
        kernels=kernels,
        search=_summed(made.records),
        validation=verdict,
        versions=versions(),
    )  # fmt: skip
    write_build(cached, manifest, made.files)
    shutil.rmtree(work_folder, ignore_errors=True)
    return manifest


def _searched(
    layer: LayerWork, works: dict[Role, Work], wanted: Wanted, folder: Path, progress: Progress
) -> Found:
    from autotune.build.search import Effort, search  # noqa: PLC0415  # a cache hit needs none

    title = f"{layer.name}: head dim {layer.spec.head_dim}"
    effort = Effort(folder, wanted.jobs, wanted.trials)
    return search(tuple(works.values()), effort, partial(progress, title))


def _search_record(found: Found, wanted: Wanted) -> SearchRecord:
    return SearchRecord(
        ranking="measured" if wanted.stopwatch else "static", space=found.space,
        compiled=len(found.trials), pruned=found.pruned, refused=found.refused(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A configuration and what it is for."""

    role: Role
    config: TileConfig
    query_rows: int
    static_s: float
    measured_s: float | None = None


MERGE = _Chosen("merge", TileConfig(block_m=16, block_n=16, num_warps=4, num_stages=1), 0, 0.0)
"""The merge has no tile; only its warps count."""


def _chosen(
    found: Found, works: dict[Role, Work], stopwatch: Stopwatch | None
) -> Iterator[_Chosen]:
    """The best configuration of each role; one that is the first role's already is left out."""
    first: TileConfig | None = None
    for role, work in works.items():
        measured_s = None
        if stopwatch is None:
            trial = found.shippable(work)[0]
        else:
            trial, measured_s = fastest(found, work, stopwatch)
        if trial.config != first:
            yield _Chosen(role, trial.config, work.query_rows, trial.seconds(work), measured_s)
        first = first or trial.config


def _require_packages() -> None:
    missing = [name for name in ("optuna", "torch", "triton") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"`planner build` needs {' and '.join(missing)}, not installed here; "
            "pip install 'specplanner[kernels]'"
        )


def _works(request: BuildRequest, layer: LayerWork) -> dict[Role, Work]:
    def work(q_len: int) -> Work:
        return Work(
            request.device, request.capability, layer.spec, layer.group_size * q_len, q_len,
            layer.kv_heads, request.batch,
            min(request.context_len, layer.window or request.context_len),
        )  # fmt: skip

    if layer.spec.mask == "block":
        return {"draft": work(request.q_len)}
    return {"verify": work(request.q_len), "decode": work(1)}


def _kernel(
    request: BuildRequest,
    spec: VerifySpec,
    chosen: _Chosen,
    work_folder: Path,
) -> tuple[Kernel, dict[str, bytes]]:
    role, config = chosen.role, chosen.config
    job = Job("merge" if role == "merge" else "attend", spec, config, request.capability)
    compiled = _compiled_apart(job, work_folder)
    tile = f"_m{config.block_m}n{config.block_n}w{config.num_warps}s{config.num_stages}"
    stem = f"{job.kernel}_{spec.label}{'' if role == 'merge' else tile}.sm{request.capability}"
    files = {f"{stem}.cubin": compiled.cubin, f"{stem}.ptx": compiled.ptx.encode()}
    cubin, ptx = (
        File(name=name, sha256=sha256(content).hexdigest()) for name, content in files.items()
    )
    used = compiled.resources
    kernel = Kernel(
        role=role, entry=compiled.name, cubin=cubin, ptx=ptx,
        shape=Shape(**asdict(spec)), tile=Tile(**asdict(config)),
        parameters=compiled.parameters,
        usage=Usage(
            registers=used.registers, spill_bytes=used.stack_bytes, smem_bytes=used.smem_bytes,
            blocks_per_sm=compiled.blocks_per_sm, matrix_instruction=compiled.matrix_instruction,
        ),
        query_rows=chosen.query_rows, static_us=round(chosen.static_s * 1e6, 2),
        measured_us=None if chosen.measured_s is None else round(chosen.measured_s * 1e6, 2),
    )  # fmt: skip
    return kernel, files


def _compiled_apart(job: Job, work_folder: Path) -> Compiled:
    """Compile in a process of its own."""
    from autotune.build.search import worker_pool  # noqa: PLC0415
    from spec_kernels.aot import compile_job  # noqa: PLC0415
    from spec_kernels.errors import CompilerFailure  # noqa: PLC0415

    try:
        with worker_pool(work_folder, 1) as pool:
            return pool.submit(compile_job, job).result()
    except CompilerFailure as failure:
        raise OutsideFailure(str(failure)) from failure


def validated(request: BuildRequest, kernels: tuple[Kernel, ...]) -> Validation:
    """Numerical verdict over the chosen configurations.

    Raises:
        OutsideFailure: the check could not run, or the numbers are wrong.
    """
    group = {layer.spec: layer.group_size for layer in request.layers}
    asked = [
        {
            "spec": one.shape.model_dump(),
            "config": one.tile.model_dump(),
            "group": group[one.spec],
            "q_len": 1 if one.role == "decode" else request.q_len,
        }
        for one in kernels
        if one.role != "merge"
    ]
    ended = subprocess.run(  # this interpreter, our own module
        [sys.executable, "-m", "spec_kernels.verify_attention.validate"],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
        raise OutsideFailure(f"the numerical check did not run: {last[0]}")
    verdict = Validation.model_validate_json(ended.stdout.splitlines()[-1])
    if not verdict.passed:
        raise OutsideFailure(
            f"the kernel gives wrong numbers: error {verdict.worst_ratio:.2f} times that of plain "
            f"torch, bound 2 ({verdict.ran_on}); please report it with the plan"
        )
    return verdict


def _statement(request: BuildRequest, verdict: Validation, *, timed: bool) -> str:
    where = "in the interpreter" if verdict.ran_on == "interpreter" else f"on {verdict.ran_on}"
    clock = f"timed on {request.device.name}" if timed else "not timed"
    return f"validated numerically {where}, compiled for sm_{request.capability}, {clock}"


def _summed(records: list[SearchRecord]) -> SearchRecord:
    refused: Counter[str] = Counter()
    for one in records:
        refused.update(one.refused)
    return SearchRecord(
        ranking=records[0].ranking,
        space=sum(one.space for one in records),
        compiled=sum(one.compiled for one in records),
        pruned=sum(one.pruned for one in records),
        refused=dict(refused),
    )
