"""Fields of a drafter's config.json, whichever of the formats wrote it; wrong values are said."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import InputError

MAX_BYTES = 4 << 20
"""Largest drafter config that is read."""
MAX_DIM = 1 << 24


@dataclass(frozen=True, slots=True)
class DraftConfig:
    """One config with its decoder section (`transformer_layer_config` of speculators) on top."""

    raw: Mapping[str, Any]
    decoder: Mapping[str, Any]
    where: str

    def value(self, *keys: str) -> Any:
        """First of the keys that is set, in the decoder section or at the top."""
        for key in keys:
            for section in (self.decoder, self.raw, self.block_section):
                if section.get(key) is not None:
                    return section[key]
        return None

    @property
    def block_section(self) -> Mapping[str, Any]:
        """`dflash_config`, which DFlash and DSpark share."""
        found = self.raw.get("dflash_config")
        return found if isinstance(found, dict) else {}

    @property
    def architecture(self) -> str:
        """First architecture name, else the speculators model type, lower case."""
        names = self.raw.get("architectures")
        first = names[0] if isinstance(names, list) and names else ""
        kinds = [first, self.raw.get("speculators_model_type"), self.raw.get("model_type")]
        return " ".join(str(kind)[:200] for kind in kinds if isinstance(kind, str)).lower()

    def whole(self, *keys: str) -> int | None:
        """A whole number >= 0, or None where no key is set."""
        found = self.value(*keys)
        if found is None:
            return None
        whole = isinstance(found, int | float) and not isinstance(found, bool)
        if not whole or not 0 <= found <= MAX_DIM or found != int(found):
            raise InputError(
                f"{self.where}: {keys[0]} must be a whole number within 0..{MAX_DIM}, "
                f"found {ascii(found)[:60]}"
            )
        return int(found)

    def need(self, *keys: str) -> int:
        """A whole number > 0; a missing one is an error, never a default."""
        found = self.whole(*keys)
        if not found:
            raise InputError(
                f"{self.where}: {' / '.join(keys)} is missing and cannot be guessed; add it to "
                "the config"
            )
        return found

    def items(self, *keys: str) -> Sequence[Any]:
        """A list of at most 4096 entries; empty where no key is set."""
        found = self.value(*keys)
        if found is None:
            return ()
        if not isinstance(found, list) or len(found) > 4096:
            raise InputError(f"{self.where}: {keys[0]} must be a list, of at most 4096 entries")
        return found

    @property
    def served_draft_len(self) -> int | None:
        """D of the default proposal method (speculators format)."""
        outer = self.raw.get("speculators_config")
        methods = outer.get("proposal_methods") if isinstance(outer, dict) else None
        for method in methods if isinstance(methods, list) else ():
            tokens = method.get("speculative_tokens") if isinstance(method, dict) else None
            if isinstance(tokens, int) and 0 < tokens < 1024:
                return tokens
        return None


def read_config(path: Path) -> DraftConfig:
    """The config.json at a path or in a folder.

    Raises:
        InputError: unreadable, too large, or not a JSON object.
    """
    try:
        file = path / "config.json" if path.is_dir() else path
        if file.exists() and not file.is_file():
            raise InputError(f"{file} is not a regular file; give the path of a config.json")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: no file system takes such a name
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"cannot read the drafter {path} ({error}); give a folder with config.json, the file "
            "itself, or a .gguf"
        ) from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{file} is larger than {MAX_BYTES >> 20} MiB, which no config is")
    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid JSON: {ascii(str(error))[:120]}") from error
    if not isinstance(raw, dict):
        raise InputError(f"{file} holds a {type(raw).__name__}, expected a JSON object")
    inner = raw.get("transformer_layer_config") or raw.get("text_config") or raw
    if not isinstance(inner, dict):
        raise InputError(f"{file}: transformer_layer_config must be a section with keys")
    return DraftConfig(raw=raw, decoder=inner, where=str(file))
