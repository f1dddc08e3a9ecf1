"""Scenario lines in, predictions out; callable, as `planner.predict(lines)`."""

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any


class _Predict(ModuleType):
    """The package and the function share their name, so the package is what is called."""

    def __call__(
        self, lines: Iterable[Mapping[str, Any]], *, calibration: str | None = None
    ) -> list[dict[str, Any]]:
        """One answer for each line, in order; a bad line gets an `error` and the rest goes on.

        `calibration` is a file or `none`; without it those of the user's folder count.
        """
        from hwprofiles.calibration import shelf_of  # noqa: PLC0415
        from planner.predict.batch import answer_lines  # noqa: PLC0415  # numpy, for callers alone

        return answer_lines(list(lines), shelf=shelf_of(calibration))


sys.modules[__name__].__class__ = _Predict
