"""llama.cpp: its own argument parser, then its own server on tiny models with the same flags.

usage: python llamacpp_judge.py cases.json results.json
The parser is the function `common_params_parse` inside xllamacpp's library; the server is the
library's. File names in the command stand for tiny files of the same kind of model. CPU only: what
a GPU back end adds is not judged.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tiny_gguf
import xllamacpp
from answers import Case, Verdict, answer

PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
SERVER = 12
"""LLAMA_EXAMPLE_SERVER in common/common.h."""
HEADER = object.__basicsize__
"""The C++ record follows the Python object's head."""
MARK = "served: "
PROMPT = "the cat sat on the mat and the cat sat on the "


class Said:
    """What the library writes to standard error meanwhile."""

    def __enter__(self) -> "Said":
        self.file = tempfile.TemporaryFile()
        self.saved = os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_: object) -> None:
        os.dup2(self.saved, 2)
        os.close(self.saved)

    def text(self) -> str:
        """Everything so far."""
        self.file.seek(0)
        return self.file.read().decode(errors="replace")


def parse(argv: list[str]) -> Any:
    """The parsed parameters.

    Raises:
        ValueError: with the parser's own words.
    """
    library = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
    function = getattr(library, PARSE)
    function.restype = ctypes.c_bool
    params = xllamacpp.CommonParams()
    words = (ctypes.c_char_p * (len(argv) + 1))(*(item.encode() for item in argv), None)
    record = ctypes.c_void_p(id(params) + HEADER)
    with Said() as said:
        good = function(len(argv), words, record, SERVER, None)
    if not good:
        lines = [line for line in said.text().splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines
        raise ValueError(errors[0] if errors else "refused without a word")
    return params


def on_tiny_models(case: Case, folder: Path) -> list[str]:
    """The command with its model files replaced and a port of its own."""
    argv = list(case["argv"])
    target = tiny_gguf.write(folder, case["model"], tiny_gguf.TARGETS[case["model"]])
    argv[argv.index("-m") + 1] = str(target)
    if "-md" in argv:
        draft = tiny_gguf.DRAFTERS[case["family"]]
        argv[argv.index("-md") + 1] = str(tiny_gguf.write(folder, case["family"], draft))
    argv[argv.index("--port") + 1] = "0"
    if "-ts" in argv:
        del argv[argv.index("-ts") : argv.index("-ts") + 2]
    return argv


def start(params: Any) -> dict[str, float]:
    """Start the server, let it write, and return its speculative counters."""
    params.n_threads_http = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    request = {"prompt": PROMPT, "n_predict": 24, "temperature": 0.0, "stream": False}
    answers: list[Any] = []
    server.handle_completions(request, answers.append)
    counters = answers[-1].get("timings", {}) if answers and isinstance(answers[-1], dict) else {}
    return {name: counters[name] for name in counters if name.startswith(("draft", "predicted_n"))}


def served(case: Case, folder: Path) -> Verdict:
    """Verdict of a server started in a process of its own, since it may stop on an assertion."""
    command = [sys.executable, __file__, "--serve", json.dumps(case), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if lines:
        counters = json.loads(lines[-1].removeprefix(MARK))
        wrote = int(counters.get("predicted_n", 0))
        drafted = int(counters.get("draft_n", 0))
        silent = case["draft_len"] > 0 and case["family"] != "ngram" and drafted == 0
        verdict = "changed" if silent or wrote == 0 else "accepted"
        return {"verdict": verdict, "says": f"server wrote {wrote} tokens, drafted {drafted}"}
    wrong = [
        x for x in done.stderr.splitlines() if re.search("error|assert|fail", x, re.IGNORECASE)
    ]
    return {"verdict": "refused", "says": f"server stopped: {' '.join(wrong[-2:])}"[:600]}


def judge(case: Case, folder: Path) -> Verdict:
    """accepted, refused (with the engine's words) or changed."""
    started = time.perf_counter()
    try:
        parse(case["argv"])
    except ValueError as error:
        return {"verdict": "refused", "says": str(error)[:600]}
    found: Verdict = {"verdict": "accepted", "says": "parsed"}
    if case["arm"] in ("config", "off"):
        found = served(case, folder)
    return {**found, "seconds": round(time.perf_counter() - started, 2)}


def main() -> None:
    """Judge every case of the file, or serve one in a process of its own."""
    if sys.argv[1] == "--serve":
        counters = start(parse(on_tiny_models(json.loads(sys.argv[2]), Path(sys.argv[3]))))
        sys.stdout.write(f"{MARK}{json.dumps(counters)}\n")
        return
    folder = Path(sys.argv[2]).absolute().parent / "tiny"
    folder.mkdir(exist_ok=True)
    answer("llama.cpp", f"xllamacpp {version('xllamacpp')}", lambda case: judge(case, folder))


if __name__ == "__main__":
    main()
