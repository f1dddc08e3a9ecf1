"""A drafter's config.json, whichever of the formats wrote it (HF, speculators, DFlash, DSpark)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwprofiles.paths import existing_path
from planner.arch.fields import Fields
from planner.arch.json_file import read_json_object
from planner.errors import InputError

MAX_DRAFT_LEN = 1023
"""Longest draft that a config is believed to serve, tokens."""


@dataclass(frozen=True, slots=True)
class DraftConfig:
    """One config with its decoder section (`transformer_layer_config` of speculators) on top."""

    raw: Mapping[str, Any]
    where: str
    fields: Fields
    """The keys of all sections: the decoder's before the file's own before `dflash_config`."""

    @property
    def block_section(self) -> Mapping[str, Any]:
        """`dflash_config`, which DFlash and DSpark share."""
        return _section(self.raw, "dflash_config")

    @property
    def architecture(self) -> str:
        """First architecture name, else the speculators model type, lower case."""
        names = self.raw.get("architectures")
        first = names[0] if isinstance(names, list) and names else ""
        kinds = [first, self.raw.get("speculators_model_type"), self.raw.get("model_type")]
        return " ".join(str(kind)[:200] for kind in kinds if isinstance(kind, str)).lower()

    @property
    def served_draft_len(self) -> int | None:
        """D of the default proposal method (speculators format)."""
        methods = _section(self.raw, "speculators_config").get("proposal_methods")
        for method in methods if isinstance(methods, list) else ():
            tokens = method.get("speculative_tokens") if isinstance(method, dict) else None
            if isinstance(tokens, int) and 0 < tokens <= MAX_DRAFT_LEN:
                return tokens
        return None


def read_config(path: Path) -> DraftConfig:
    """The config.json at a path or in a folder.

    Raises:
        InputError: unreadable, too large, or not a JSON object.
    """
    found = existing_path(str(path))
    file = found / "config.json" if found is not None and found.is_dir() else found
    if file is None or not file.exists():
        raise InputError(
            f"cannot read the drafter {path}: there is no such file; give a folder with "
            "config.json, the file itself, or a .gguf"
        )
    raw = read_json_object(file)
    decoder = raw.get("transformer_layer_config") or raw.get("text_config") or {}
    if not isinstance(decoder, dict):
        raise InputError(f"{file}: transformer_layer_config must be a section with keys")
    sections = (_section(raw, "dflash_config"), raw, decoder)
    known = {k: v for section in sections for k, v in section.items() if v is not None}
    return DraftConfig(raw, str(file), Fields(known, str(file)))


def _section(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key)
    return found if isinstance(found, dict) else {}
