"""A hub id -> ModelArch, through huggingface_hub where it is installed."""

from importlib import import_module
from pathlib import Path

from planner.arch.checkpoint import read_config_pair
from planner.arch.records import ModelArch
from planner.errors import InputError, OutsideFailure

_TIMEOUT_S = 10.0


def load_from_hub(repo_id: str, not_in_catalog: str) -> ModelArch:
    """The model of a hub repository, from its config.json and hf_quant_config.json.

    Raises:
        InputError: huggingface_hub is not installed, or the repository has no config.json.
        OutsideFailure: the hub cannot be reached.
    """
    try:
        hub = import_module("huggingface_hub")
        errors = import_module("huggingface_hub.errors")
    except ImportError:
        raise InputError(
            f"{not_in_catalog}; to read {repo_id} from the hub install the extra: "
            'pip install "specplanner[hub]"'
        ) from None
    try:
        config = Path(hub.hf_hub_download(repo_id, "config.json", etag_timeout=_TIMEOUT_S))
    except errors.LocalEntryNotFoundError as error:
        raise _offline(repo_id, not_in_catalog) from error
    except (errors.EntryNotFoundError, errors.HFValidationError) as error:
        raise InputError(f"{repo_id} has no config.json on the hub; {not_in_catalog}") from error
    except errors.HfHubHTTPError as error:
        raise InputError(f"{repo_id} cannot be read from the hub; {not_in_catalog}") from error
    except (OSError, RuntimeError) as error:
        raise _offline(repo_id, not_in_catalog) from error
    quant: Path | None = None
    try:
        quant = Path(hub.hf_hub_download(repo_id, "hf_quant_config.json", etag_timeout=_TIMEOUT_S))
    except (errors.EntryNotFoundError, errors.HfHubHTTPError, OSError, RuntimeError):
        quant = None
    return read_config_pair(config, quant, name=repo_id, source=f"https://huggingface.co/{repo_id}")


def _offline(repo_id: str, not_in_catalog: str) -> OutsideFailure:
    return OutsideFailure(
        f"the hub cannot be reached for {repo_id}; download its config.json and give the path, or "
        f"use a catalog name ({not_in_catalog})"
    )
