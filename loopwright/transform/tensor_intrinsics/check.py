"""check_intrinsic: try on numbers that an intrinsic's implementation computes what its description says.

The description runs in the evaluator. The implementation runs there too where it can, else as native code on this
machine. Integers are drawn from the whole range of their type, extremes first; floating-point values are small whole
numbers, on which products and sums are exact: so the results must be equal, bit for bit.
"""

from __future__ import annotations

import numpy as np

from loopwright.analysis.thread_axes import has_warp_call
from loopwright.evaluator import evaluate
from loopwright.ir import Buffer, IntImm, IRModule, PrimFunc
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.tensor import as_argument
from loopwright.target import Target, describe
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin


class IntrinsicDisagrees(LoopwrightError, ValueError):
    """The implementation of a tensor intrinsic computes something else than its description says.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def desc(A: T.Buffer(4), B: T.Buffer(4)):
            with T.block("root"):
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi] + 1.0

        @T.prim_func
        def impl(A: T.Buffer(4), B: T.Buffer(4)):
            with T.block("root"):
                for i in range(4):
                    B[i] = A[i] + 2.0

        tir.TensorIntrin.register("lw0784_example", desc, impl)
        tir.check_intrinsic("lw0784_example")
    """

    code = "LW0784"

    def __init__(self, name: str, buffer: Buffer, where: tuple[int, ...], wanted: object, got: object) -> None:
        cell = f"{buffer.name}[{', '.join([str(index) for index in where])}]"
        super().__init__(
            f"tensor intrinsic {name!r}: {cell} is {wanted} by its description, {got} by its implementation",
            fields={"name": name, "cell": cell, "description": wanted, "implementation": got},
        )


def check_intrinsic(name: str, target: str | Target | None = None, cases: int = 4) -> None:
    """Compare implementation and description on `cases` random inputs; raises IntrinsicDisagrees."""
    intrin = TensorIntrin.get(name)
    assert intrin is not None
    if has_warp_call(intrin.impl.body):
        hint = "use it in a schedule, and build that for target='cuda -model=emulated'"
        raise NotBuilt(f"trying {name!r} by itself, which the lanes of a warp do together", hint)
    buffers = intrin.parameters
    native = None
    for seed in range(cases):
        arrays = [_numbers(buffer, np.random.default_rng([seed, index]), seed) for index, buffer in enumerate(buffers)]
        wanted, got = [array.copy() for array in arrays], [array.copy() for array in arrays]
        evaluate(intrin.desc, *wanted)
        if native is None:
            try:
                evaluate(intrin.impl, *got, check=False)  # a vector may run on over the rows of a contiguous buffer
            except NotBuilt:
                native = _built(intrin.impl, target)
                got = [array.copy() for array in arrays]
        if native is not None:
            native(*[as_argument(array) for array in got])
        for buffer, a, b in zip(buffers, wanted, got, strict=True):
            wrong = np.argwhere(a != b)
            if len(wrong):
                where = tuple([int(index) for index in wrong[0]])
                raise IntrinsicDisagrees(name, buffer, where, a[where], b[where])


def _built(function: PrimFunc, target: str | Target | None) -> PackedFunction:
    from loopwright.codegen.llvm.make_module import make_module
    from loopwright.transform.pipeline import lower

    chosen = Target(target or "llvm")
    lowered = lower(IRModule({"main": function.with_attr("global_symbol", "main")}), chosen)
    result: PackedFunction = make_module(lowered, describe(chosen))["main"]
    return result


def _numbers(buffer: Buffer, rng: np.random.Generator, seed: int) -> np.ndarray:
    shape = [size.value for size in buffer.shape if isinstance(size, IntImm)]
    dtype = buffer.dtype.numpy()
    if buffer.dtype.is_float:
        return rng.integers(-3, 4, shape).astype(dtype)
    low, high = int(buffer.dtype.min_value()), int(buffer.dtype.max_value())
    if seed == 0:
        return rng.choice(np.array([low, high], dtype), shape)
    return rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype)
