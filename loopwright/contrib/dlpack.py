"""Compiled functions for other libraries' tensors.

Compiled functions take every tensor that speaks DLPack, torch's among them, without a copy. So there is little to do
here: a function that is wrapped makes sure of the tensors' kind, and says which argument is not one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from loopwright.runtime.errors import LoopwrightError


class NotThatTensor(LoopwrightError, TypeError):
    """A function wrapped for the tensors of one library was called with something else.

    For example:

        import numpy as np
        from loopwright.contrib import dlpack

        class Tensor:
            "A tensor of some library."

        function = dlpack.convert_func(print, Tensor, lambda tensor: tensor)
        function(np.zeros(3))
    """

    code = "LW0034"

    def __init__(self, position: int, given: object, wanted: type) -> None:
        super().__init__(
            f"argument number {position} is a {type(given).__module__}.{type(given).__name__}, "
            f"not a {wanted.__module__}.{wanted.__name__}",
            hint=f"convert it to a {wanted.__name__}, or call the compiled function itself, which takes any tensor",
        )


def convert_func(
    tvm_func: Callable[..., object], tensor_type: type, to_dlpack_func: Callable[[Any], object]
) -> Callable[..., Any]:
    """`tvm_func` for arguments of `tensor_type`, each passed on as `to_dlpack_func` gives it; numbers pass too."""

    @functools.wraps(tvm_func, updated=())
    def converted(*args: object) -> Any:
        passed = []
        for position, arg in enumerate(args, 1):
            if isinstance(arg, tensor_type):
                passed.append(to_dlpack_func(arg))
            elif arg is None or isinstance(arg, (bool, int, float, str)):
                passed.append(arg)
            else:
                raise NotThatTensor(position, arg, tensor_type)
        return tvm_func(*passed)

    return converted


def to_pytorch_func(tvm_func: Callable[..., object]) -> Callable[..., Any]:
    """A compiled function that takes torch tensors, and reads and writes their memory in place."""
    import torch  # only here: it takes seconds

    def exported(tensor: Any) -> Any:
        return tensor.detach() if tensor.requires_grad else tensor  # gradients do not flow through compiled code

    return convert_func(tvm_func, torch.Tensor, exported)
