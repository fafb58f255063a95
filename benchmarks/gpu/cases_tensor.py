"""Matrix products of `tensor_gemm.py`: float16, bfloat16, float8 and int8, and what torch (cuBLAS) makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TORCH = {"float8_e4m3": "float8_e4m3fn"}  # torch's names, where they are others
RESULTS = {"float16": "float16", "bfloat16": "bfloat16", "float8_e4m3": "bfloat16", "int8": "int32"}
# Half of the last bit of a result, and what the sums of tensor cores lose of |A|·|B| beside roundings: those of float8
# keep 13 bits behind the point of the largest term.
HALF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "int32": 0.0}
LOST = {"float8_e4m3": 2.0**-11}
LARGE_TILES = ("128×256", "256×128", "128×192", "128×160", "128×128", "128×128, 2 blocks", "64×256", "128×256, 2 parts")
SMALL_TILES = (
    *("64×128", "128×64", "64×128, 2 blocks", "64×64", "64×64, 2 blocks"),
    *("128×128, 2 parts", "128×128, 4 parts", "128×256, 4 parts"),
)
FEW_TILES = ("64×16", "64×16, 2 blocks", "128×16", "64×32", "64×64")
# Rows, columns, blocks of a multiprocessor, parts of the sum.
VARIANTS = {
    "128×256": (128, 256, 1, 1),
    "256×128": (256, 128, 1, 1),
    "128×192": (128, 192, 1, 1),
    "128×160": (128, 160, 1, 1),
    "128×128": (128, 128, 1, 1),
    "128×128, 2 parts": (128, 128, 1, 2),
    "128×128, 4 parts": (128, 128, 1, 4),
    "128×256, 2 parts": (128, 256, 1, 2),
    "128×256, 4 parts": (128, 256, 1, 4),
    "128×128, 2 blocks": (128, 128, 2, 1),
    "64×256": (64, 256, 1, 1),
    "64×128": (64, 128, 1, 1),
    "128×64": (128, 64, 1, 1),
    "64×128, 2 blocks": (64, 128, 2, 1),
    "64×64": (64, 64, 1, 1),
    "64×64, 2 blocks": (64, 64, 2, 1),
    "64×32": (64, 32, 1, 1),
    "64×16": (64, 16, 1, 1),
    "64×16, 2 blocks": (64, 16, 2, 1),
    "128×16": (128, 16, 1, 1),
    "64×16, 2 parts": (64, 16, 1, 2),
    "64×16, 4 parts": (64, 16, 1, 4),
    "64×64, 4 parts": (64, 64, 1, 4),
    "64×64, 32 parts": (64, 64, 1, 32),
    "128×128, 64 parts": (128, 128, 1, 64),
}


@dataclass(frozen=True)
class Case:
    """A product of m × k by k × n; `layout` says with t which operand is given transposed."""

    m: int
    n: int
    k: int
    layout: str = "nt"
    dtype: str = "float16"
    batch: int = 0
    epilogue: bool = False

    @property
    def family(self) -> str:
        few = " few rows" if self.m <= 128 else ""
        odd = " odd" if (self.k if self.layout[0] == "n" else self.m) * self.itemsize % 16 else ""
        return f"{self.dtype}{few or odd}"

    @property
    def itemsize(self) -> int:
        return 2 if "float16" in self.dtype else 1

    @property
    def result(self) -> str:
        return RESULTS[self.dtype]

    @property
    def name(self) -> str:
        batch = f"{self.batch} × " if self.batch else ""
        return f"{batch}{self.m}×{self.n}×{self.k} {self.layout} {self.dtype}{' bias relu' if self.epilogue else ''}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * max(1, self.batch)

    @property
    def variants(self) -> tuple[str, ...]:
        if self.m == 1:
            return ()  # a reduction of rows
        if self.m <= 64:
            return (*FEW_TILES, "64×16, 2 parts", "64×16, 4 parts")
        if self.m * self.n * max(1, self.batch) <= 1 << 20:
            return (*SMALL_TILES, "128×128", *(("64×64, 4 parts",) if self.k >= 4096 else ()))
        return LARGE_TILES if self.m * self.n >= 1 << 23 else (*LARGE_TILES, *SMALL_TILES)

    def shapes(self) -> list[tuple[int, ...]]:
        """Of the inputs and the result."""
        outer = (self.batch,) if self.batch else ()
        a = (self.m, self.k) if self.layout[0] == "n" else (self.k, self.m)
        b = (self.k, self.n) if self.layout[1] == "n" else (self.n, self.k)
        bias = [(self.n,)] if self.epilogue else []
        return [(*outer, *a), (*outer, *b), *bias, (*outer, self.m, self.n)]

    def program(self) -> list[Any]:
        from loopwright import te

        shapes, total = self.shapes(), "int32" if self.dtype == "int8" else "float32"
        a, b = (te.placeholder(shape, self.dtype, name=name) for shape, name in zip(shapes[:2], "AB", strict=True))
        k = te.reduce_axis((0, self.k), name="k")

        def cell(*index: Any) -> Any:
            outer, (i, j) = index[:-2], index[-2:]
            first = a[(*outer, i, k)] if self.layout[0] == "n" else a[(*outer, k, i)]
            second = b[(*outer, k, j)] if self.layout[1] == "n" else b[(*outer, j, k)]
            return te.sum(first.astype(total) * second.astype(total), axis=k)

        c = te.compute(shapes[-1], cell, name="C")
        if self.epilogue:
            bias = te.placeholder(shapes[2], self.result, name="bias")
            zero = te.const(0, total)

            def relu(*index: Any) -> Any:
                return te.max(c(*index) + bias[index[-1]].astype(total), zero).astype(self.result)

            return [a, b, bias, te.compute(shapes[-1], relu, name="D")]
        if self.result == total:
            return [a, b, c]
        return [a, b, te.compute(shapes[-1], lambda *index: c(*index).astype(self.result), name="D")]

    # --- torch ----------------------------------------------------------------------------------------------------

    def operands(self, given: Sequence[Any]) -> tuple[Any, Any]:
        a, b = given[:2]
        return (
            a if self.layout[0] == "n" else a.transpose(-1, -2),
            b if self.layout[1] == "n" else b.transpose(-1, -2),
        )

    def reference(self, given: Sequence[Any], out: Any) -> Callable[[], Any]:
        """What torch does; the result is `out` where torch can write it there."""
        import torch

        a, b = self.operands(given)
        if self.dtype == "int8":
            return lambda: torch._int_mm(a, b)
        if self.dtype.startswith("float8"):
            one = torch.ones((), device=a.device)
            return lambda: torch._scaled_mm(
                *(a, b), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        if self.epilogue:
            return lambda: torch._addmm_activation(given[2], a, b, out=out)  # relu, in cuBLAS's epilogue
        return lambda: torch.matmul(a, b, out=out)

    def checked(self, given: Sequence[Any], result: Any) -> float:
        """The greatest difference to float64 of some rows, in units of what rounding may cause."""
        import torch

        a, b = self.operands(given)
        rows = torch.linspace(0, self.m - 1, min(self.m, 16), device=result.device).long()
        picked = a.to(torch.float32).index_select(-2, rows).double()
        other = b.to(torch.float32).double()
        expected, size = picked @ other, picked.abs() @ other.abs()
        if self.epilogue:
            bias = given[2].double()
            expected, size = (expected + bias).clamp(min=0), size + bias.abs()
        got = result.index_select(-2, rows).double()
        unit = (self.k + 2) * 2.0**-24 + LOST.get(self.dtype, 0.0)
        bound = expected.abs() * HALF[self.result] + (0.0 if self.dtype == "int8" else 1.0) * size * unit + 1e-7
        return float(((got - expected).abs() / bound).max().item())


CUBES = [Case(size, size, size) for size in (1024, 2048, 4096, 8192, 16384)]
LAYERS = [
    Case(4096, 4096, 11008),
    Case(4096, 11008, 4096),
    Case(4096, 12288, 4096, dtype="bfloat16"),
    Case(8192, 1024, 8192, dtype="bfloat16"),
    Case(8192, 28672, 8192, dtype="bfloat16"),
    Case(2048, 5120, 5120, "nn", epilogue=True),
    Case(512, 4096, 4096, "nn"),
    Case(4096, 4096, 4096, epilogue=True),
]
LAYOUTS = [
    *[Case(4096, 4096, 4096, layout) for layout in ("nn", "tn", "tt")],
    Case(8192, 8192, 8192, "nn", "bfloat16"),
    Case(4096, 4096, 4096, dtype="bfloat16"),
]
FEW = [
    *[Case(m, 4096, 4096) for m in (1, 8, 16, 64, 128)],
    *[Case(m, 11008, 4096, "nn") for m in (8, 16, 64)],
    Case(16, 4096, 11008, dtype="bfloat16"),
]
BATCHED = [Case(512, 512, 512, batch=32), Case(1024, 1024, 128, batch=64), Case(2048, 128, 2048, "nn", batch=32)]
ODD = [Case(1000, 1001, 777, "nn"), Case(4095, 4095, 4095), Case(4000, 4104, 4104, "nn"), Case(128, 128, 65536)]
BYTES = [
    *[Case(size, size, size, dtype="float8_e4m3") for size in (2048, 4096, 8192)],
    Case(4096, 11008, 4096, dtype="float8_e4m3"),
    *[Case(size, size, size, dtype="int8") for size in (2048, 4096, 8192)],
    Case(64, 4096, 4096, dtype="int8"),
]
CASES = [*CUBES, *LAYERS, *LAYOUTS, *FEW, *BATCHED, *ODD, *BYTES]
TRIAL = [
    Case(128, 128, 128),
    Case(100, 72, 80, "tn", epilogue=True),
    Case(8, 128, 128, "nn", "bfloat16"),
    Case(65, 71, 77, batch=2),
    Case(64, 64, 128, dtype="float8_e4m3"),
    Case(64, 64, 128, "tn", dtype="int8"),
]
