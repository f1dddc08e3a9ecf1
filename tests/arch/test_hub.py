"""A hub id that the catalog lacks: read through huggingface_hub, refused, or said to be offline."""

import builtins
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from planner.arch import hub
from planner.errors import InputError, OutsideFailure

CONFIG = (
    Path(__file__).parents[1] / "data" / "configs" / "meta-llama--Meta-Llama-3.1-8B.config.json"
)


class LocalEntryNotFoundError(builtins.FileNotFoundError):
    pass


class EntryNotFoundError(Exception):
    pass


class HFValidationError(ValueError):
    pass


class HfHubHTTPError(OSError):
    pass


Download = Callable[[str], str]


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Download], None]:
    """Puts a hub in place that answers each file name by a function."""

    def install(download: Download) -> None:
        library, errors = ModuleType("huggingface_hub"), ModuleType("huggingface_hub.errors")
        library.hf_hub_download = lambda _, name, **__: download(name)  # type: ignore[attr-defined]
        for kind in (
            LocalEntryNotFoundError,
            EntryNotFoundError,
            HFValidationError,
            HfHubHTTPError,
        ):
            setattr(errors, kind.__name__, kind)
        monkeypatch.setitem(sys.modules, "huggingface_hub", library)
        monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)

    return install


def raising(error: Exception) -> Download:
    def download(_: str) -> str:
        raise error

    return download


def test_a_config_of_the_hub_is_read(answering: Callable[[Download], None]) -> None:
    def download(name: str) -> str:
        if name != "config.json":
            raise EntryNotFoundError(name)
        return str(CONFIG)

    answering(download)
    arch = hub.load_from_hub("some/model", "not in the catalog")
    assert (arch.name, arch.num_layers) == ("some/model", 32)
    assert arch.source == "https://huggingface.co/some/model"


def test_a_quantisation_file_is_read_with_it(
    answering: Callable[[Download], None], tmp_path: Path
) -> None:
    quant = tmp_path / "hf_quant_config.json"
    quant.write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    answering(lambda name: str(CONFIG if name == "config.json" else quant))
    arch = hub.load_from_hub("some/model", "not in the catalog")
    assert arch.native_format is not None
    assert arch.native_format.bits_per_weight == pytest.approx(8, abs=0.6)


@pytest.mark.parametrize(
    ("error", "family", "said"),
    [
        (LocalEntryNotFoundError("x"), OutsideFailure, "cannot be reached"),
        (OSError("x"), OutsideFailure, "cannot be reached"),
        (RuntimeError("x"), OutsideFailure, "cannot be reached"),
        (EntryNotFoundError("x"), InputError, r"no config\.json"),
        (HFValidationError("x"), InputError, r"no config\.json"),
        (HfHubHTTPError("x"), InputError, "cannot be read from the hub"),
    ],
)
def test_each_failure_of_the_hub_has_its_family(
    answering: Callable[[Download], None], error: Exception, family: type[Exception], said: str
) -> None:
    answering(raising(error))
    with pytest.raises(family, match=said) as caught:
        hub.load_from_hub("some/model", "no model named some/model in the catalog")
    assert "some/model" in str(caught.value)


def test_without_the_extra_its_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"specplanner\[hub\]"):
        hub.load_from_hub("some/model", "not in the catalog")
