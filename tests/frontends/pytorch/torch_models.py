"""Modules made of functions, and comparisons of what they give here with what they give in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from loopwright.frontends.common.runners import interpreted
from loopwright.frontends.pytorch import CompiledModule
from loopwright.frontends.pytorch.element_types import as_array


class Computes(torch.nn.Module):
    """A module whose forward is a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def real(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    made = torch.Generator().manual_seed(seed + 31 * len(shape) + sum(shape))
    return torch.randn(*shape, generator=made, dtype=torch.float64).to(dtype)


def whole(*shape: int, low: int = -9, high: int = 10, seed: int = 0, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    made = torch.Generator().manual_seed(seed + 7 * len(shape))
    return torch.randint(low, high, shape, generator=made).to(dtype)


def imported(model: Any, *args: Any, **options: Any) -> CompiledModule:
    """The module, run by the interpreter."""
    module = model if isinstance(model, torch.nn.Module) else Computes(model)
    return CompiledModule(module, args, make_runner=interpreted, **options)


def same(found: Any, expected: Any, terms: int = 64) -> None:
    """Each result has the type and shape that torch gives, and is as near as a sum of so many terms can be."""
    ours, theirs = (_pytree.tree_flatten(value) for value in (found, expected))
    assert ours[1] == theirs[1]
    for place, (one, other) in enumerate(zip(ours[0], theirs[0])):
        if not isinstance(other, torch.Tensor):
            assert one == other, f"result {place}"
            continue
        assert one.dtype == other.dtype, f"result {place}"
        assert one.shape == other.shape, f"result {place}"
        near(as_array(one), as_array(other), terms, f"result {place}")


def near(found: np.ndarray, expected: np.ndarray, terms: int = 64, what: str = "") -> None:
    if found.dtype.kind not in "fV" and found.dtype.name != "bfloat16":
        np.testing.assert_array_equal(found, expected, what)
        return
    step = {"bfloat16": 2.0**-8}.get(found.dtype.name) or float(np.finfo(found.dtype).eps)
    one, other = found.astype(np.float64), expected.astype(np.float64)
    scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
    np.testing.assert_allclose(one, other, rtol=terms * step, atol=terms * step * scale, err_msg=what)


def check(function: Any, *args: Any, terms: int = 64, **options: Any) -> CompiledModule:
    """Hold the import of a function against the function itself."""
    compiled = imported(function, *args, **options)
    same(compiled(*args), function(*args), terms)
    return compiled


def all_of(functions: Sequence[Callable[..., Any]]) -> Callable[..., list[Any]]:
    """One function of many: exporting costs more than running."""
    return lambda *args: [function(*args) for function in functions]
