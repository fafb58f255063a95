"""PyTorch's element types and ours, and its tensors as numpy arrays on the same memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from loopwright.frontends.pytorch.errors import UnsupportedTorchType
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    import torch

_NAMES: Final = {
    **{name: name for name in "float64 float32 float16 bfloat16 bool".split()},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float8_e4m3fn": "e4m3_float8",
    "float8_e5m2": "e5m2_float8",
}
# Types that torch does not hand to numpy: numbers of the same size do.
_CARRIERS: Final = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def torch_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def our_dtype(dtype: torch.dtype, what: str = "a tensor") -> str:
    """The name of a torch.dtype here; `what` has it, for the error."""
    name = torch_name(dtype)
    if name not in _NAMES:
        raise UnsupportedTorchType(what, name)
    return _NAMES[name]


def torch_dtype(dtype: str) -> torch.dtype:
    """The torch.dtype of a name of ours, or of one of torch ("float", "long", "half" as well)."""
    import torch

    result = getattr(torch, next((theirs for theirs, ours in _NAMES.items() if ours == dtype), dtype), None)
    if not isinstance(result, torch.dtype):
        raise UnsupportedTorchType("an input", dtype)
    return result


def as_array(tensor: torch.Tensor, what: str = "a tensor") -> np.ndarray:
    """A tensor as a numpy array: on the same memory, where that is in rows on this machine."""
    import torch

    kind = our_dtype(tensor.dtype, what)
    plain = tensor.detach().cpu().resolve_neg().contiguous()
    carrier = _CARRIERS.get(torch_name(tensor.dtype))
    if carrier is None:
        return plain.numpy()
    return plain.view(getattr(torch, carrier)).numpy().view(DataType(kind).numpy())


def as_tensor(array: np.ndarray) -> torch.Tensor:
    """An array as a tensor of torch, on the same memory."""
    import torch

    kind = str(DataType(array.dtype.name))
    theirs = next(name for name, ours in _NAMES.items() if ours == kind)
    carrier = _CARRIERS.get(theirs)
    plain = array if array.flags.writeable and min(array.strides, default=0) >= 0 else array.copy()
    if carrier is None:
        return torch.from_numpy(plain) if plain.ndim else torch.tensor(plain[()], dtype=getattr(torch, theirs))
    return torch.from_numpy(np.ascontiguousarray(plain).view(carrier)).view(getattr(torch, theirs)).reshape(plain.shape)
