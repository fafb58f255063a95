"""Arrays that scripts may also treat as tensors: `constant.data.numpy()`, `executor.evaluate()(x).numpy()`."""

from __future__ import annotations

import numpy as np


class TensorArray(np.ndarray):
    """An array; `numpy()` is it, for scripts that were written for tensors."""

    answers_as_tensor = True

    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)

    asnumpy = numpy

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce__(self) -> object:  # type: ignore[override]
        return _again, (self.view(np.ndarray),)


def _again(array: np.ndarray) -> TensorArray:
    return array.view(TensorArray)


def as_tensor_array(array: np.ndarray) -> TensorArray:
    """The same elements, in the same memory."""
    return array if isinstance(array, TensorArray) else array.view(TensorArray)
