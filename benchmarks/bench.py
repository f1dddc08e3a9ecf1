"""The planner's own cost: a whole `recommend`, the search alone, `predict` by the thousand, and an
exhaustive `design` study.

usage: python -m benchmarks.bench [RESULT.json]

Medians on this machine; the ratio to a yardstick (Python importing numpy and pydantic, which no
answer can do without) is what can be compared between machines. Nothing here is a test.
"""

import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from planner.design.answer import design
from planner.design.question import DesignQuestion, TargetAsked
from planner.search.question import Question
from planner.search.recommend import recommend

RECOMMEND = ("-m", "planner", "recommend", "--model", "Qwen/Qwen3-8B", "--gpu", "4090",
             "--calibration", "none")  # fmt: skip
YARDSTICK = ("-c", "import numpy, pydantic")
DEFAULT_RESULT = Path("build/bench.json")


class Cost(NamedTuple):
    """What one process took."""

    cpu_s: float
    """User and system time, seconds."""
    peak_mib: float
    """Largest resident set, MiB."""
    wall_s: float


def process_cost(arguments: Sequence[str], stdin: Path | None = None) -> Cost:
    """Run Python with these arguments, output thrown away, and account for it alone."""
    feed = os.open(stdin or os.devnull, os.O_RDONLY)
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdin=feed, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    os.close(feed)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    rss_unit = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * rss_unit / 2**20, wall_s)


def recommend_process(runs: int = 10) -> dict[str, float]:
    """Cost of the whole command, interleaved with the yardstick."""
    pairs = [(process_cost(RECOMMEND), process_cost(YARDSTICK)) for _ in range(runs)]
    cpu_s = statistics.median(command.cpu_s for command, _ in pairs)
    yardstick_s = statistics.median(yardstick.cpu_s for _, yardstick in pairs)
    return {
        "cpu_s": cpu_s,
        "cpu_over_yardstick": cpu_s / yardstick_s,
        "peak_mib": statistics.median(command.peak_mib for command, _ in pairs),
        "wall_s": statistics.median(command.wall_s for command, _ in pairs),
    }


DEFAULT_QUESTION = Question(model="Qwen/Qwen3-8B", gpu="4090", calibration="none")
LARGE_QUESTION = replace(
    DEFAULT_QUESTION,
    batch=tuple(range(1, 65)),
    context=tuple(1024 * n for n in range(1, 33)),
)
"""64 batches x 32 contexts: what a point costs once the fixed part is spread thin."""


def search(question: Question, runs: int) -> dict[str, float]:
    """Points that a whole search evaluates per second, its look-ups and its plan included."""
    points = recommend(question).evaluated_points
    times_s = []
    for _ in range(runs):
        started = time.perf_counter()
        recommend(question)
        times_s.append(time.perf_counter() - started)
    median_s = statistics.median(times_s)
    return {"points": points, "median_s": median_s, "points_per_s": points / median_s}


def predict_process(lines: int = 20_000, runs: int = 3) -> dict[str, float]:
    """Scenarios per second of `planner predict`, start-up included."""
    scenarios = DEFAULT_RESULT.parent / "bench-scenarios.jsonl"
    scenarios.parent.mkdir(exist_ok=True)
    with scenarios.open("w", encoding="utf-8") as out:
        out.writelines(f"{json.dumps(one)}\n" for one in itertools.islice(_scenarios(), lines))
    costs = [process_cost(("-m", "planner", "predict", "-"), scenarios) for _ in range(runs)]
    median_s = statistics.median(cost.wall_s for cost in costs)
    return {
        "lines": lines,
        "median_s": median_s,
        "scenarios_per_s": lines / median_s,
        "cpu_s": statistics.median(cost.cpu_s for cost in costs),
        "peak_mib": statistics.median(cost.peak_mib for cost in costs),
    }


def _scenarios() -> Iterator[dict[str, object]]:
    """Different questions without end: the product below, with the context growing each time."""
    models = ("Qwen/Qwen3-8B", "Qwen3.8-27B", "Llama-3.3-70B-Instruct", "gpt-oss-20b")
    gpus = ("4090", "RTX 3090 24GB", "H100 SXM", "5060 Ti 16G", "DGX Spark")
    drafters = (("eagle3", 3), ("external", 5), ("ngram", 8), ("mtp", 2), ("none", 0))
    batches, workloads = (1, 2, 4, 8, 16, 32, 64), ("code", "chat", "math", "summarise")
    ids = itertools.count()
    for step in itertools.count(1):
        for model, gpu, (drafter, draft_len), batch, workload in itertools.product(
            models, gpus, drafters, batches, workloads
        ):
            yield {
                "id": next(ids),
                "model": model,
                "gpu": gpu,
                "drafter": drafter,
                "draft_len": draft_len,
                "batch": batch,
                "context_len": 1000 * step,
                "workload": workload,
            }


DESIGN_STUDY = DesignQuestion(
    targets=tuple(TargetAsked(gpu) for gpu in ("H200", "B200", "H20")),
    params=8e9,
    values={
        "num_layers": tuple(range(22, 52)),
        "hidden_size": tuple(range(2560, 5377, 128)),
    },
)
"""Over 200,000 pairs of an architecture and a load: 8B dense at 32K, batch 1, 32 and 256."""


def design_study() -> dict[str, float]:
    """Pairs that an exhaustive study evaluates per second, D and drafter optimised in each."""
    started, cpu = time.perf_counter(), time.process_time()
    result = design(DESIGN_STUDY)
    wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    return {
        "architectures": result.architectures,
        "pairs": result.pairs,
        "front": result.front_size,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "pairs_per_cpu_s": result.pairs / cpu_s,
    }


def cpu_model() -> str:
    """The processor as the system names it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Measure, print, and write the result."""
    result = {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load_1min": os.getloadavg()[0],
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "recommend": recommend_process(),
        "search_default": search(DEFAULT_QUESTION, runs=10),
        "search_large": search(LARGE_QUESTION, runs=3),
        "predict": predict_process(),
        "design": design_study(),
    }
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_RESULT
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(_summary(result, target))


def _summary(result: Mapping[str, Any], target: Path) -> str:
    whole, many, study = result["recommend"], result["predict"], result["design"]
    lines = [
        f"{result['cpu']}, {result['cores']} cores, Python {result['python']}, "
        f"load {result['load_1min']:.1f}",
        f"recommend  {whole['cpu_s']:.3f} s user+sys ({whole['cpu_over_yardstick']:.1f}x "
        f"importing numpy and pydantic), {whole['peak_mib']:.0f} MiB peak, median of 10",
    ]
    for name, runs in (("search_default", 10), ("search_large", 3)):
        one = result[name]
        lines.append(
            f"search     {one['points_per_s'] / 1e6:.2f} million points/s: {one['points']:,} "
            f"points in {one['median_s'] * 1e3:.0f} ms, median of {runs}"
        )
    lines += [
        f"predict    {many['scenarios_per_s']:,.0f} scenarios/s: {many['lines']:,} lines in "
        f"{many['median_s']:.2f} s, {many['peak_mib']:.0f} MiB peak, median of 3",
        f"design     {study['pairs']:,} pairs of architecture and load in "
        f"{study['cpu_s']:.1f} s of one core ({study['pairs_per_cpu_s']:,.0f}/s), "
        f"{study['wall_s']:.1f} s wall, once",
        f"written    {target}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
