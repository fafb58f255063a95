"""Declaring intrinsics: functions from script text, and from loops over one store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Stmt,
    Var,
    const,
)
from loopwright.transform.tensor_intrinsics.nest import loads_of
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin

_DOT = """
from loopwright.script import tir as T

@T.prim_func
def main(
    A: T.Buffer((4,), "{a}", offset_factor=1),
    B: T.Buffer(({lanes}, 4), "{b}", offset_factor=1),
    C: T.Buffer(({lanes},), "{c}", offset_factor=1),
):
    with T.block("root"):
        T.reads(C[0:{lanes}], A[0:4], B[0:{lanes}, 0:4])
        T.writes(C[0:{lanes}])
"""

_DOT_DESCRIPTION = (
    _DOT
    + """        for i, k in T.grid({lanes}, 4):
            with T.block("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.Cast("{c}", A[vk]) * T.Cast("{c}", B[vi, vk])
"""
)

_DOT_INSTRUCTION = (
    _DOT
    + """        four = T.reinterpret("int32", A.vload([0], "{a}x4"))
        C[T.ramp(0, 1, {lanes})] = T.call_llvm_pure_intrin(
            "{c}x{lanes}",
            "{instruction}",
            C.vload([0], "{c}x{lanes}"),
            T.reinterpret("{a}x{bytes}", T.broadcast(four, {lanes})),
            B.vload([0, 0], "{b}x{bytes}"),
        )
"""
)

_DOT_LOOPS = (
    _DOT
    + """        for i, k in T.grid({lanes}, 4):
            C[i] = C[i] + T.Cast("{c}", A[k]) * T.Cast("{c}", B[i, k])
"""
)


def from_text(text: str) -> PrimFunc:
    """The function that a script holds."""
    from loopwright.script import from_source

    result = from_source(text)
    assert isinstance(result, PrimFunc)
    return result


def register_dot(name: str, instruction: str | None, lanes: int, a: str, b: str, c: str = "int32") -> None:
    """C[i] += sum over k of A[k] * B[i, k], for `lanes` results and four products each, by one LLVM intrinsic.

    The four elements of A are spread over the register; B is contiguous. None: by loops, which LLVM vectorizes with the
    instructions that there are, exactly (those that add pairs of products saturate).
    """
    sizes = {"lanes": lanes, "a": a, "b": b, "c": c}
    if instruction is None:
        impl = _DOT_LOOPS.format(**sizes)
    else:
        impl = _DOT_INSTRUCTION.format(**sizes, bytes=4 * lanes, instruction=instruction)
    TensorIntrin.register(name, from_text(_DOT_DESCRIPTION.format(**sizes)), from_text(impl))


def description(
    buffers: Sequence[Buffer],
    axes: Sequence[tuple[str, int, IterType]],
    store: Callable[..., BufferStore],
    from_zero: bool = False,
) -> PrimFunc:
    """Loops over one block with these axes (name, extent, kind), whose body `store` makes from their variables.

    `from_zero`: it is a sum that begins here, not one that goes on.
    """
    iters = [IterVar(_range(extent), Var(f"v{name}", "int32"), kind) for name, extent, kind in axes]
    body = store(*[axis.var for axis in iters])
    loads = [_point(load.buffer, load.indices) for load in loads_of(body.value)]
    init = BufferStore(body.buffer, const(0, body.buffer.dtype), body.indices) if from_zero else None
    block = Block(tuple(iters), tuple(loads), (_point(body.buffer, body.indices),), "update", body, init)
    loops = [Var(name, "int32") for name, _, _ in axes]
    nest: Stmt = BlockRealize(tuple(loops), const(True), block)
    for var, (_, extent, _) in zip(reversed(loops), reversed(axes), strict=True):
        nest = For(var, const(0), const(extent), ForKind.SERIAL, nest)
    return function(buffers, nest)


def function(buffers: Sequence[Buffer], body: Stmt, allocated: Sequence[Buffer] = ()) -> PrimFunc:
    """A function of these buffers, of which it writes the last."""
    whole = [BufferRegion(buffer, tuple([_from_zero(size) for size in buffer.shape])) for buffer in buffers]
    root = Block((), tuple(whole), (whole[-1],), "root", body, alloc_buffers=tuple(allocated))
    return PrimFunc(list(buffers), BlockRealize((), const(True), root))


def load(buffer: Buffer, *indices: Expr | int) -> BufferLoad:
    """An element."""
    return BufferLoad(buffer, tuple([const(index) if isinstance(index, int) else index for index in indices]))


def _range(size: int) -> Range:
    return _from_zero(const(size))


def _from_zero(size: Expr) -> Range:
    return Range.from_min_extent(const(0), size)


def _point(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    return BufferRegion(buffer, tuple([Range.from_min_extent(index, const(1)) for index in indices]))
