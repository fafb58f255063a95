"""Parallel loops: the body becomes a function of a range of iterations, which the thread pool runs on chunks.

    for i in T.parallel(n): body      →      status = lw_parallel_for(run_chunk, 0, n, &closure)

The chunk function takes what it uses as parameters, unpacked from the closure by a small stub: so pointers keep
their no-alias facts, which a load from memory would lose.

Every thread gets one contiguous chunk. Where iterations differ much in length, the annotation `parallel_dynamic` has
them handed out in small pieces to whoever is free; its value is the size of a piece, 0 lets the pool choose. What is
computed is the same either way.
"""

from __future__ import annotations

import re
from typing import Final

from loopwright import ir
from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.loop_hints import NO_VECTORS, LoopHints
from loopwright.codegen.llvm.types import register_type
from loopwright.runtime.dtype import INT64
from loopwright.runtime.errors import LoopwrightError

DYNAMIC: Final = ("parallel_dynamic", "pragma_parallel_dynamic")  # the second is what `pragma` of te writes


class BadGrain(LoopwrightError, ValueError):
    """The annotation `parallel_dynamic` of a parallel loop is not a number of iterations.

    It says how many iterations a thread takes at a time, an integer from 0 on; 0 leaves the choice to the thread pool.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((64,), "int32")):
            for i in T.parallel(64, annotations={"parallel_dynamic": -1}):
                A[i] = i

        loopwright.build(f)
    """

    code = "LW0671"

    def __init__(self, loop: ir.For, given: object) -> None:
        super().__init__(
            f"the parallel loop {loop.loop_var.name} is annotated with parallel_dynamic = {given}",
            at=loop,
            why="the value says how many iterations a thread takes at a time",
            hint="give an integer from 0 on; 0 leaves the choice to the thread pool",
            fields={"loop": loop.loop_var.name, "given": str(given)},
        )


def emit_parallel(emitter: ControlFlow, loop: ir.For) -> None:
    """Run the iterations of `loop` on the thread pool."""
    grain = _grain(loop)
    low = emitter.index(loop.min)
    high = emitter.index(loop.min + loop.extent)
    captured = _captured(loop.body, emitter)
    chunk = emitter.module.unique("lw.parallel." + re.sub(r"\W", "_", loop.loop_var.name, flags=re.ASCII))
    _emit_chunk(emitter, loop, captured, chunk)
    _emit_stub(emitter, captured, chunk)

    b = emitter.b
    low, high = _wide(emitter, low, loop.loop_var), _wide(emitter, high, loop.loop_var)
    closure_type = "{ " + ", ".join(register_type(var.dtype) for var in captured) + " }"
    closure = b.alloca(closure_type, 1, 64)
    for position, var in enumerate(captured):
        slot = b.value(f"getelementptr inbounds {closure_type}, ptr {closure}, i32 0, i32 {position}")
        b.do(f"store {register_type(var.dtype)} {emitter.values[var]}, ptr {slot}")
    # Weak: an object linked into a program without the thread pool runs the loop in its caller.
    name, more_types, more = "lw_parallel_for", "", ""
    if grain is not None:
        name, more_types, more = "lw_parallel_for_dynamic", ", i64", f", i64 {grain}"
    emitter.module.declare(name, f"extern_weak i32 @{name}(ptr, i64, i64, ptr{more_types})")
    pooled, alone, joined = b.label("pooled"), b.label("alone"), b.label("joined")
    b.branch(b.value(f"icmp ne ptr @{name}, null"), pooled, alone)
    b.start(pooled)
    shared = b.value(f"call i32 @{name}(ptr @{chunk}.stub, i64 {low}, i64 {high}, ptr {closure}{more})")
    b.jump(joined)
    b.start(alone)
    single = b.value(f"call i32 @{chunk}.stub(i64 {low}, i64 {high}, ptr {closure})")
    b.jump(joined)
    b.start(joined)
    status = b.value(f"phi i32 [ {shared}, %{pooled} ], [ {single}, %{alone} ]")
    emitter.pass_on(status)


def _grain(loop: ir.For) -> int | None:
    """How many iterations are handed out at a time, 0: as the pool likes; None: every thread gets one chunk."""
    for key in DYNAMIC:
        if key in loop.annotations:
            given = loop.annotations[key]
            value = ir.python_value(given)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
                raise BadGrain(loop, value)
            return int(value)
    return None


def _wide(emitter: ControlFlow, value: str, var: ir.Var) -> str:
    return emitter.cast(value, var.dtype, INT64)


def _captured(body: ir.Stmt, emitter: ControlFlow) -> list[ir.Var]:
    """The variables of the enclosing function that `body` uses, in order of first use."""
    result: dict[ir.Var, None] = {}

    def look(node: ir.Node) -> None:
        if isinstance(node, ir.Buffer):
            node = node.data
        if isinstance(node, ir.Var) and node in emitter.values:
            result[node] = None

    ir.pre_order_visit(body, look)
    return list(result)


def _emit_chunk(emitter: ControlFlow, loop: ir.For, captured: list[ir.Var], name: str) -> None:
    parameters = ["i64 %begin, i64 %end"]
    # One pointer of unknown origin may reach the memory of any other.
    known = emitter.apart | emitter.overlapping
    is_known = all([var in known for var in captured if var.dtype.kind == "handle"])
    for position, var in enumerate(captured):
        attributes = " noalias" if is_known and var in emitter.apart and var.dtype.kind == "handle" else ""
        parameters.append(f"{register_type(var.dtype)}{attributes} %c{position}")
    builder = FunctionBuilder(emitter.module, f"internal i32 @{name}({', '.join(parameters)})", "noinline nounwind ")
    inner = type(emitter)(emitter.module, builder, emitter.target, emitter._bodies)
    inner.in_parallel = True
    inner.apart = set(emitter.apart)
    inner.writable = emitter.writable
    inner.overlapping = set(emitter.overlapping)
    inner.values = {var: f"%c{position}" for position, var in enumerate(captured)}
    low, high = (inner.cast(bound, INT64, loop.loop_var.dtype) for bound in ("%begin", "%end"))
    # A chunk is a loop like any other: LLVM is not to make vectors of iterations that lie apart in memory.
    hints = LoopHints().of(loop).properties
    metadata = emitter.module.loop_metadata(*hints) if hints == NO_VECTORS else None
    inner.counted_loop(loop.loop_var, low, high, lambda: inner.run(loop.body), metadata)
    if builder.open:
        builder.ret("i32 0")
    emitter.module.define(builder.text())


def _emit_stub(emitter: ControlFlow, captured: list[ir.Var], name: str) -> None:
    signature = f"internal i32 @{name}.stub(i64 %begin, i64 %end, ptr %closure)"
    builder = FunctionBuilder(emitter.module, signature, "nounwind ")
    closure_type = "{ " + ", ".join(register_type(var.dtype) for var in captured) + " }"
    arguments = ["i64 %begin", "i64 %end"]
    for position, var in enumerate(captured):
        slot = builder.value(f"getelementptr inbounds {closure_type}, ptr %closure, i32 0, i32 {position}")
        text = register_type(var.dtype)
        arguments.append(f"{text} {builder.value(f'load {text}, ptr {slot}')}")
    status = builder.value(f"call i32 @{name}({', '.join(arguments)})")
    builder.ret(f"i32 {status}")
    emitter.module.define(builder.text())
