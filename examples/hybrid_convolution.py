"""A convolution in hybrid script: one function that runs as Python, and is compiled; and the same as a script.

    python examples/hybrid_convolution.py

Run as Python on numpy arrays it can be stepped through with any debugger. On te tensors it gives a tensor, whose loops
keep the kinds that were written, and which other computes may use.
"""

# ruff: noqa: F821 (the words of hybrid script are not imported)
from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.script import tir as T

CHANNELS, FILTERS, SIZE, KERNEL, PAD = 3, 8, 10, 3, 1


@te.hybrid.script
def convolution(data, weight, pad, stride):
    """data (channel, row, column), weight (filter, channel, row, column); zeros around the image."""
    rows = (data.shape[1] + 2 * pad - weight.shape[2]) // stride + 1
    columns = (data.shape[2] + 2 * pad - weight.shape[3]) // stride + 1
    result = output_tensor((weight.shape[0], rows, columns), data.dtype)
    padded = allocate((data.shape[0], data.shape[1] + 2 * pad, data.shape[2] + 2 * pad), data.dtype)
    for c in range(data.shape[0]):
        for y in range(data.shape[1] + 2 * pad):
            for x in range(data.shape[2] + 2 * pad):
                inside = pad <= y < data.shape[1] + pad and pad <= x < data.shape[2] + pad
                padded[c, y, x] = data[c, y - pad, x - pad] if inside else 0.0
    for f in parallel(weight.shape[0]):
        for y in range(rows):
            for x in range(columns):
                total = 0.0
                for c in range(data.shape[0]):
                    for ky in unroll(weight.shape[2]):
                        for kx in unroll(weight.shape[3]):
                            total += padded[c, y * stride + ky, x * stride + kx] * weight[f, c, ky, kx]
                result[f, y, x] = total
    return result


def graph(stride: int = 1) -> list[te.Tensor]:
    """The convolution between two computes."""
    data = te.placeholder((CHANNELS, SIZE, SIZE), name="data")
    weight = te.placeholder((FILTERS, CHANNELS, KERNEL, KERNEL), name="weight")
    made = convolution(data, weight, PAD, stride)
    relu = te.compute(made.shape, lambda f, y, x: te.max(made[f, y, x], 0.0), name="relu")
    return [data, weight, relu]


def script_function() -> PrimFunc:
    """The same with stride 1, as loops of a script."""
    channels, filters, size, kernel, pad = CHANNELS, FILTERS, SIZE, KERNEL, PAD

    @T.prim_func
    def main(
        data: T.Buffer((channels, size, size), "float32"),
        weight: T.Buffer((filters, channels, kernel, kernel), "float32"),
        relu: T.Buffer((filters, size, size), "float32"),
    ):
        for f in T.parallel(filters):
            for y, x in T.grid(size, size):
                with T.block("relu"):
                    vf, vy, vx = T.axis.remap("SSS", [f, y, x])
                    total = T.alloc_buffer((1,))
                    total[0] = T.float32(0)
                    for c, ky, kx in T.grid(channels, kernel, kernel):
                        if 0 <= vy + ky - pad < size and 0 <= vx + kx - pad < size:
                            total[0] = total[0] + data[c, vy + ky - pad, vx + kx - pad] * weight[vf, c, ky, kx]
                    relu[vf, vy, vx] = T.max(total[0], T.float32(0))

    return main


def reference(data: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """In float64."""
    padded = np.pad(data.astype("float64"), ((0, 0), (PAD, PAD), (PAD, PAD)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), (1, 2))[:, ::stride, ::stride]
    return np.maximum(np.einsum("cyxij,fcij->fyx", windows, weight.astype("float64")), 0)


def main() -> None:
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 1, (CHANNELS, SIZE, SIZE)).astype("float32")
    weight = rng.uniform(-1, 1, (FILTERS, CHANNELS, KERNEL, KERNEL)).astype("float32")
    terms = CHANNELS * KERNEL * KERNEL
    bound = terms * terms * 2.0**-24  # a sum of `terms` products below 1, each addition rounded

    small = data[:, :4, :4]
    as_python = np.maximum(convolution(small, weight, PAD, 1), 0)
    assert np.abs(as_python - reference(small, weight, 1)).max() <= bound
    print(f"as Python, on a corner of the image: a result of shape {as_python.shape}")

    for name, program, stride in (
        ("hybrid", te.create_prim_func(graph()), 1),
        ("hybrid, stride 2", te.create_prim_func(graph(2)), 2),
        ("script", script_function(), 1),
    ):
        exact = reference(data, weight, stride)
        relu = np.empty(exact.shape, "float32")
        lw.build(program)(data, weight, relu)
        error = np.abs(relu - exact).max()
        assert error <= bound, f"{name} is wrong by {error}"
        print(f"{name}: shape {relu.shape}, largest error {error:.1e} (bound {bound:.1e})")


if __name__ == "__main__":
    main()
