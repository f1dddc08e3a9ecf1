"""What stands after --model -> ModelArch: a path, a catalog name, or a hub id."""

import re
from dataclasses import replace
from pathlib import Path

from hwprofiles.paths import existing_path
from planner.arch.catalog import catalog_name_of, load_catalog_model
from planner.arch.records import ModelArch
from planner.errors import InputError

_DRAFTER = re.compile(r"eagle|dflash|dspark|medusa|speculator", re.IGNORECASE)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def load_model(text: str) -> ModelArch:
    """The model that a path to a config.json, folder, .gguf or its log, or a name stands for.

    Raises:
        InputError: no such file or name, or a file that cannot be believed.
    """
    path = existing_path(text) or existing_path(text.strip())
    text = text.strip()
    if path is not None:
        return _load_path(path)
    if _looks_like_path(text):
        raise InputError(
            f"{ascii(text)[1:-1][:200]} does not exist; give a path to a config.json, a checkpoint "
            "folder or a .gguf file, or a catalog name"
        )
    try:
        return load_catalog_model(text)
    except InputError as error:
        if _HUB_ID.fullmatch(text) is None:
            raise
        from planner.arch.hub import load_from_hub  # noqa: PLC0415  # for names alone

        return load_from_hub(text, str(error))


def _looks_like_path(text: str) -> bool:
    return text.startswith((".", "/", "~")) or text.endswith((".json", ".gguf", "/"))


def _load_path(path: Path) -> ModelArch:
    """A file or folder; a model that the catalog knows too goes by its hub id."""
    arch = _read_path(path)
    if _DRAFTER.search(arch.architecture):
        raise InputError(
            f"{path} describes a drafter ({arch.architecture}), not a model; give it as "
            "--drafter-path"
        )
    known = catalog_name_of(arch, path.name)
    if known is None or known == arch.name:
        return arch
    return replace(arch, name=known, extra={**arch.extra, "name_in_file": arch.name})


def _read_path(path: Path) -> ModelArch:
    from planner.arch.checkpoint import (  # noqa: PLC0415  # a catalog name reads no file
        read_checkpoint,
        read_config_file,
    )
    from planner.arch.gguf_file import read_gguf  # noqa: PLC0415
    from planner.arch.gguf_log import is_log  # noqa: PLC0415

    if path.is_dir():
        return read_checkpoint(path)
    if path.suffix.lower() == ".gguf":
        return read_gguf(path)
    if path.suffix.lower() == ".safetensors":
        raise InputError(f"{path} holds tensors only; give the folder with its config.json")
    if is_log(path):
        from planner.arch.gguf_log_layers import read_gguf_log  # noqa: PLC0415

        return read_gguf_log(path)
    return read_config_file(path)
