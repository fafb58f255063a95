"""The programs that are searched: rows of the other benchmarks, and some that no benchmark has.

A row of `benchmarks.bench` brings its peers along, so that the curve can be told in terms of the best library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.bench.case import Case
from benchmarks.bench.cases import cases_of
from benchmarks.bench.cases.gemm import matmul

# Of each family, the rows whose names are these; batch 1 where a row has a batch.
ROWS = {
    "sgemm": (
        "256³", "512³", "1024³", "4096×64×64", "64×4096×64", "8×1024×1024", "257³", "A·Bᵀ 512³",
        "Aᵀ·B 512³", "8 × 256³",
    ),
    "chain": ("1024×2048×1024×3072", "256×512×256×768"),
    "resnet50": (
        "224² 3→64, 7×7 s2", "56² 64→64, 1×1", "56² 64→64, 3×3", "56² 128→128, 3×3 s2", "28² 128→512, 1×1",
        "28² 128→128, 3×3", "14² 256→1024, 1×1", "14² 1024→256, 1×1", "7² 2048→512, 1×1", "7² 512→512, 3×3",
    ),
    "mobilenetv2": (
        "224² 3→32, 3×3 s2", "112² 32 depthwise, 3×3", "112² 32→16, 1×1", "112² 16→96, 1×1",
        "56² 144 depthwise, 3×3 s2", "14² 384 depthwise, 3×3", "14² 576→96, 1×1", "7² 960→160, 1×1",
    ),
    "softmax": ("softmax 64×1024", "softmax 1024×1024", "log_softmax 1024×1024"),
    "normalization": ("layer_norm 1024×4096", "rms_norm 1024×4096", "batch_norm 8×64×56×56"),
    "low_precision": ("int8 256³", "int8 512³"),
    "reductions": ("sum of rows, 1000²", "max of columns, 1000²"),
}  # fmt: skip
ODD_GEMMS = ((197, 768, 192), (49, 512, 2048), (33, 65, 2050), (100, 300, 77))  # transformers' and nobody's


@dataclass(frozen=True)
class Searched:
    """A program to search, by name; `case` knows its peers, where it has any."""

    family: str
    name: str
    program: Callable[[], Any]
    case: Case | None = None


def tasks() -> Iterator[Searched]:
    """All of them, family by family."""
    for family, names in ROWS.items():
        by_name = {case.name.removesuffix(", batch 1"): case for case in cases_of(family)}
        for name in names:
            case = by_name[name]
            yield Searched(family, name, lambda case=case: case.make(*case.shape).program(), case)  # type: ignore[misc]
    for m, k, n in ODD_GEMMS:
        case = Case(f"{m}×{k}×{n}", matmul, (m, k, n))
        yield Searched("odd GEMM", case.name, lambda case=case: case.make(*case.shape).program(), case)  # type: ignore[misc]
    yield Searched("pooling", "max 3×3 s2, 64 at 112²", lambda: _pooling("max"))
    yield Searched("pooling", "average 3×3, 192 at 28²", lambda: _pooling("avg", 192, 28, 1))
    yield Searched("LSTM cell", "batch 4, 256", lambda: _lstm(4, 256))
    yield Searched("attention", "8 heads of 64, 128 tokens", lambda: _attention(8, 128, 64))
    yield Searched("inception", "17² 128→192, 1×7", lambda: _convolution(128, 192, 17, (1, 7)))
    yield Searched("inception", "35² 96→96, 3×3", lambda: _convolution(96, 96, 35, (3, 3)))


def _pooling(kind: str, channels: int = 64, size: int = 112, stride: int = 2) -> Any:
    from loopwright import te, topi

    x = te.placeholder((1, channels, size, size), name="X")
    y = topi.nn.pool2d(x, [3, 3], [stride, stride], [1, 1], [1, 1, 1, 1], kind)
    return [x, y]


def _convolution(inputs: int, outputs: int, size: int, taps: tuple[int, int]) -> Any:
    from loopwright import te, topi

    x = te.placeholder((1, inputs, size, size), name="X")
    w = te.placeholder((outputs, inputs, *taps), name="W")
    padding = (taps[0] // 2, taps[1] // 2)
    y = topi.nn.relu(topi.nn.conv2d_nchw(x, w, stride=1, padding=padding, dilation=1))
    return [x, w, y]


def _lstm(batch: int, size: int) -> Any:
    from loopwright import te, topi

    x, h, c = (te.placeholder((batch, size), name=name) for name in "xhc")
    w, u = (te.placeholder((4 * size, size), name=name) for name in "wu")
    gates = topi.add(topi.nn.dense(x, w), topi.nn.dense(h, u))

    def gate(k: int) -> Any:
        return te.compute((batch, size), lambda i, j: gates[i, j + k * size], name=f"gate{k}")

    forget, write, show = (topi.sigmoid(gate(k)) for k in (0, 1, 2))
    cell = topi.add(topi.multiply(forget, c), topi.multiply(write, topi.tanh(gate(3))))
    return [x, h, c, w, u, cell, topi.multiply(show, topi.tanh(cell))]


def _attention(heads: int, tokens: int, size: int) -> Any:
    from loopwright import te, topi

    q, k, v = (te.placeholder((heads, tokens, size), name=name) for name in "qkv")
    scores = topi.nn.batch_matmul(q, k)
    shares = topi.nn.softmax(scores, axis=-1)
    turned = topi.transpose(v, (0, 2, 1))
    return [q, k, v, topi.nn.batch_matmul(shares, turned)]
