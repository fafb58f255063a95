"""given_arrays: what a caller gives as a tensor, as an array of numbers; `BadModelInput` where it is none."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from loopwright.model.errors import BadModelInput


class HasNumpy(Protocol):
    """A tensor of this package, or of another that can give its elements as an array."""

    def numpy(self) -> np.ndarray: ...


TensorLike: TypeAlias = npt.ArrayLike | HasNumpy  # what `array_of` makes an array of

_NOT_NUMBERS = frozenset("OSUMm")  # kinds of element types: objects, bytes, texts, dates and times


def array_of(value: object, what: str, *, shared: bool = False) -> np.ndarray:
    """An array of numbers from an array, a tensor that has `numpy()`, a number or a (nested) list of them.

    With `shared`, the array of a tensor is on its own memory: what is written into one stands in the other.
    """
    if isinstance(value, np.ndarray):
        array = value
    else:
        try:
            array = np.asarray(value.numpy() if hasattr(value, "numpy") and not shared else value)
        except (TypeError, ValueError, RuntimeError, AttributeError, OverflowError) as error:
            raise BadModelInput(f"{what} is {type(value).__name__}, and no array: {error}") from error
    if array.dtype.kind in _NOT_NUMBERS or array.dtype.fields:
        given = f"{type(value).__name__} {value!r:.40}"
        if isinstance(value, np.ndarray):
            given = f"an array of {array.dtype}"
        hint = "give an array, a tensor, a number or a list of numbers"
        raise BadModelInput(f"{what} is {given}, and holds no numbers", hint)
    return array
