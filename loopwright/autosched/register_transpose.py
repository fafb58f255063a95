"""Which square tiles registers can turn, and the intrinsic that does it."""

from __future__ import annotations

from typing import Final

from loopwright.transform.tensor_intrinsics.registry import TRANSPOSES

_NAMES: Final = {what: name for name, what in TRANSPOSES.items()}


def transpose_intrinsic(size: int, between: int, dtype: str, after: int = 0) -> str | None:
    """The intrinsic for tiles of `size` × `size`; None where there is none.

    Its rows lie in a dimension of a buffer, their elements in a later one with `between` others before it; `after` it
    are only dimensions of one element.
    """
    return _NAMES.get((size, between, after, dtype))
