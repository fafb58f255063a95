"""Reductions and scans for `bandwidth.py`: everything, rows, columns, axes in the middle, statistics of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from case import Case

from loopwright import te, topi

if TYPE_CHECKING:
    import torch

Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]


def _mean(data: te.Tensor, axis: Axis) -> te.Tensor:
    total = topi.sum(data, axis)
    count = prod([int(size) for size in data.shape]) // prod([int(size) for size in total.shape])
    return te.compute(total.shape, lambda *at: total(*at) / te.const(float(count), data.dtype), name="mean")


_OURS: dict[str, Callable[[te.Tensor, Axis], te.Tensor]] = {
    "sum": topi.sum,
    "max": topi.max,
    "min": topi.min,
    "mean": _mean,
    "argmax": topi.argmax,
}
_THEIRS = {"max": "amax", "min": "amin"}


def _reduction(family: str, what: str, shape: Shape, axis: Axis, dtype: str = "float32") -> Case:
    def program() -> Sequence[te.Tensor]:
        data = te.placeholder(shape, dtype, name="data")
        if dtype == "float16" and what in ("sum", "mean"):  # summed in float32, as torch does
            wide = _OURS[what](topi.cast(data, "float32"), axis)
            return [data, topi.cast(wide, dtype)]
        return [data, _OURS[what](data, axis)]

    def reference(data: torch.Tensor) -> torch.Tensor:
        import torch

        function = getattr(torch, _THEIRS.get(what, what))
        return function(data) if axis is None else function(data, axis)  # type: ignore[no-any-return]

    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    out = tuple([size for at, size in enumerate(shape) if at not in axes])
    name = f"{what} of {' × '.join(map(str, shape))} {dtype}" + ("" if axis is None else f" over {axis}")
    return Case(family, name, program, reference, ((shape, dtype),), out)


def _batch_norm(shape: Shape) -> Case:
    channels = shape[1]

    def program() -> Sequence[te.Tensor]:
        data = te.placeholder(shape, name="data")
        gamma, beta, mean, var = [te.placeholder((channels,), name=name) for name in ("gamma", "beta", "mean", "var")]
        return [data, gamma, beta, mean, var, topi.nn.batch_norm(data, gamma, beta, mean, var, training=True)[0]]

    def reference(
        data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, mean: torch.Tensor, var: torch.Tensor
    ) -> torch.Tensor:
        import torch

        return torch.nn.functional.batch_norm(data, mean.clone(), var.clone(), gamma, beta, training=True)

    inputs = ((shape, "float32"), *[((channels,), "float32")] * 4)
    return Case("batch norm", " × ".join(map(str, shape)), program, reference, inputs, shape)


def _scan(shape: Shape, axis: int = -1, exclusive: bool = False) -> Case:
    def program() -> Sequence[te.Tensor]:
        data = te.placeholder(shape, name="data")
        return [data, topi.cumsum(data, axis, exclusive=exclusive)]

    def reference(data: torch.Tensor) -> torch.Tensor:
        import torch

        result = torch.cumsum(data, axis)
        return result - data if exclusive else result

    name = f"{'exclusive ' * exclusive}sum of {' × '.join(map(str, shape))} along {axis}"
    return Case("scan", name, program, reference, ((shape, "float32"),), shape)


CASES: list[Case] = [
    *[_reduction("reduce everything", "sum", (1 << bits,), None) for bits in (10, 14, 17, 20, 22, 24, 26, 28)],
    *[_reduction("reduce everything", what, (1 << 26,), None) for what in ("max", "mean", "argmax")],
    _reduction("reduce everything", "sum", ((1 << 26) + 3,), None),
    _reduction("reduce everything", "sum", (1 << 27,), None, "float16"),
    _reduction("reduce everything", "max", (8192, 8191), None),
    _reduction("reduce rows", "sum", (8, 1 << 22), 1),
    _reduction("reduce rows", "max", (16, 100_000), 1),
    _reduction("reduce rows", "sum", (128, 50_257), 1),
    _reduction("reduce rows", "mean", (8192, 8192), 1),
    _reduction("reduce rows", "sum", (1 << 20, 64), 1),
    _reduction("reduce rows", "argmax", (4096, 4096), 1),
    _reduction("reduce rows", "sum", (2048, 65_536), 1),
    _reduction("reduce rows", "sum", (32_768, 8192), 1),
    _reduction("reduce columns", "sum", (8192, 8192), 0),
    _reduction("reduce columns", "max", (8192, 8192), 0),
    _reduction("reduce columns", "sum", (1 << 20, 64), 0),
    _reduction("reduce columns", "mean", (64, 1 << 20), 0),
    _reduction("reduce columns", "sum", (1 << 22, 3), 0),
    _reduction("reduce columns", "sum", (1024, 1024), 0),
    _reduction("reduce columns", "sum", (16_384, 8192), 0, "float16"),
    _reduction("reduce columns", "sum", (32_768, 8192), 0),
    _reduction("reduce columns", "max", (1 << 22, 64), 0),
    _reduction("reduce axes", "mean", (64, 256, 56, 56), (2, 3)),
    _reduction("reduce axes", "mean", (64, 256, 56, 56), (0, 2, 3)),
    _reduction("reduce axes", "mean", (64, 56, 56, 256), (0, 1, 2)),
    _reduction("reduce axes", "sum", (64, 512, 1024), 1),
    _reduction("reduce axes", "sum", (256, 64, 14, 14), 0),
    _batch_norm((64, 256, 56, 56)),
    _batch_norm((32, 64, 112, 112)),
    *[_scan((1 << bits,)) for bits in (10, 16, 20, 22, 24, 26, 28)],
    _scan((1 << 24,), exclusive=True),
    _scan((4096, 4096)),
    _scan((64, 1 << 20)),
    _scan((4096, 4096), 0),
]
