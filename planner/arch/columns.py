"""Columns: one `ModelArch` that stands for many, its counts being arrays.

Cost functions are arithmetic on counts, so they serve a column as they serve one model. What
decides a kernel (heads, KV heads, head widths, window) is one number for a whole column; a column
has the shape (N, 1, 1, 1), which broadcasts over batch, context and draft length. The records type
a count as `int`; `column` is the one place where an array takes that type.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

AXES = (-1, 1, 1, 1)
"""Architectures, batch, context, draft length."""


def column(values: npt.ArrayLike) -> int:
    """Counts of many architectures, where a record wants one."""
    made: Any = np.array(values, float).reshape(AXES)
    made.setflags(write=False)  # `total += count` on an alias would change the model
    return made  # type: ignore[no-any-return]


def is_column(count: object) -> bool:
    """Whether a count stands for many architectures."""
    return isinstance(count, np.ndarray)


def whole(count: float) -> int:
    """The count without its fraction; of each architecture in a column."""
    made: Any = np.floor(count) if is_column(count) else int(count)
    return made  # type: ignore[no-any-return]


def largest(counts: Sequence[int]) -> int:
    """The largest count, 0 of none; of each architecture in columns."""
    if not any(is_column(c) for c in counts):
        return max(counts, default=0)
    made: Any = np.maximum.reduce(np.broadcast_arrays(*counts))
    return made  # type: ignore[no-any-return]


def smallest(counts: Sequence[int]) -> int:
    """The smallest count; of each architecture in columns."""
    return -largest([-c for c in counts])
