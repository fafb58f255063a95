"""FunctionEmitter: statements of lowered IR as LLVM instructions.

What comes in is the pipeline's last stage: loops from 0, one-dimensional buffers, pointer-wide indices, no blocks.
Expressions are in `expressions.py`, loops and the ways out of a function in `control_flow.py`; calls of intrinsics go
through the table in `calls.py`, parallel loops through `parallel.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from loopwright import ir
from loopwright.codegen.llvm.calls import emit_call
from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.loop_hints import LoopHints
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.packed_calls import emit_packed_call, is_packed_call
from loopwright.codegen.llvm.parallel import emit_parallel
from loopwright.codegen.llvm.strided_lanes import has_strided_taps
from loopwright.codegen.llvm.tiles import Tile, is_tile
from loopwright.codegen.llvm.types import storage_type
from loopwright.codegen.llvm.unrolling import is_worth_unrolling
from loopwright.ir.annotations import ONCE_SCOPE
from loopwright.ir.assertion_errors import error_of
from loopwright.runtime.dtype import INT64
from loopwright.target import CpuDescription

# Larger allocations come from the workspace: threads have small stacks, and a stack overflow kills the process.
STACK_LIMIT_BYTES = 16384
STACK_TOTAL_BYTES = 1 << 18  # of all buffers of one function together
ALIGNMENT = 64


class FunctionEmitter(ControlFlow):
    """Writes one function, statement by statement."""

    def __init__(
        self, module: ModuleText, builder: FunctionBuilder, target: CpuDescription, bodies: Callable[..., str]
    ) -> None:
        super().__init__(module, builder, target, bodies)
        self.hints = LoopHints(target.units.has_scalable_vectors)
        self._stack_bytes = 0

    def visit_Call(self, call: ir.Call) -> str:
        outer, self.no_wrap = self.no_wrap, ""
        result = emit_call(self, call)
        self.no_wrap = outer
        return result

    def visit_SeqStmt(self, statement: ir.SeqStmt) -> None:
        for part in statement.seq:
            self.run(part)

    def visit_For(self, loop: ir.For) -> None:
        if loop.kind is ir.ForKind.PARALLEL and not self.in_parallel:
            emit_parallel(self, loop)
            return
        if self.tile is not None or is_tile(loop):
            self._write_tile(loop)
            return
        if loop.kind is ir.ForKind.UNROLLED and is_worth_unrolling(loop) and has_strided_taps(loop):
            self.write_out(loop)
            return
        low = self.index(loop.min)
        high = self.index(loop.min + loop.extent)
        hints = self.hints.of(loop)
        metadata = self.module.loop_metadata(*hints.properties) if hints.properties else None
        is_entered = isinstance(loop.extent, ir.IntImm) and loop.extent.value > 0
        outer, self.carried = self.carried, hints.carried
        self.counted_loop(loop.loop_var, low, high, lambda: self.run(loop.body), metadata, is_entered)
        self.carried = outer

    def _write_tile(self, loop: ir.For) -> None:
        """A nest of unrolled loops, whose copies share addresses and values."""
        outer = self.tile
        if outer is None:
            self.tile = Tile(loop, self.apart, self.hints.facts)
        self.write_out(loop)
        self.tile = outer

    def write_out(self, loop: ir.For) -> None:
        """The iterations one after the other, each with its number known here."""
        assert isinstance(loop.min, ir.IntImm) and isinstance(loop.extent, ir.IntImm)
        for step in range(loop.min.value, loop.min.value + loop.extent.value):
            self.steps[loop.loop_var] = step
            self.values[loop.loop_var] = str(step)
            self.run(loop.body)
        del self.steps[loop.loop_var]

    def visit_While(self, loop: ir.While) -> None:
        head, inside, after = self.b.label("while"), self.b.label("body"), self.b.label("after")
        self.b.jump(head)
        self.b.start(head)
        self.b.branch(self.value(loop.condition), inside, after)
        self.b.start(inside)
        self.run(loop.body)
        if self.b.open:
            self.b.jump(head)
        self.b.start(after)

    def visit_LetStmt(self, statement: ir.LetStmt) -> None:
        self.values[statement.var] = self.value(statement.value)
        self._from_memory.bind(statement.var, statement.value)
        self.run(statement.body)

    def visit_AttrStmt(self, statement: ir.AttrStmt) -> None:
        if statement.attr_key == ONCE_SCOPE:
            self._run_once(statement.body)
        else:
            self.run(statement.body)

    def _run_once(self, body: ir.Stmt) -> None:
        """In the first call alone, whichever thread makes it; the others do not wait."""
        flag = self.module.variable(self.module.unique("lw.once"), "i32 0", 4)
        old = self.b.value(f"atomicrmw xchg ptr {flag}, i32 1 seq_cst")
        first, end = self.b.label("first"), self.b.label("end")
        self.b.branch(self.b.value(f"icmp eq i32 {old}, 0"), first, end)
        self.b.start(first)
        self.run(body)
        if self.b.open:
            self.b.jump(end)
        self.b.start(end)

    def visit_DeclBuffer(self, statement: ir.DeclBuffer) -> None:
        self.run(statement.body)

    def visit_Evaluate(self, statement: ir.Evaluate) -> None:
        value = statement.value
        if isinstance(value, ir.Call) and is_packed_call(value):
            emit_packed_call(self, value, is_wanted=False)
        elif not isinstance(value, ir.IntImm):
            self.value(value)

    def visit_IfThenElse(self, statement: ir.IfThenElse) -> None:
        condition = self.value(statement.condition)
        if condition in ("true", "false"):
            case = statement.then_case if condition == "true" else statement.else_case
            if case is not None:
                self.run(case)
            return
        then, end = self.b.label("then"), self.b.label("end")
        otherwise = end if statement.else_case is None else self.b.label("else")
        self.b.branch(condition, then, otherwise)
        self.b.start(then)
        mark = self.mark()
        self.run(statement.then_case)
        self.forget(mark)
        if self.b.open:
            self.b.jump(end)
        if statement.else_case is not None:
            self.b.start(otherwise)
            self.run(statement.else_case)
            self.forget(mark)
            if self.b.open:
                self.b.jump(end)
        self.b.start(end)

    def visit_AssertStmt(self, statement: ir.AssertStmt) -> None:
        kind, text, values = error_of(statement)
        holds = self.value(statement.condition)
        self.fail_unless(holds, kind, text, values)
        self.run(statement.body)

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        if store.value.dtype.lanes == 1 and isinstance(store.value, (ir.BufferLoad, ir.IntImm, ir.FloatImm)):
            self.b.moves_cells = True
        super().visit_BufferStore(store)

    def visit_Allocate(self, statement: ir.Allocate) -> None:
        var, bytes_each, count = statement.buffer_var, statement.dtype.nbytes * statement.dtype.lanes, 1
        for extent in statement.extents:
            # -1: not known here
            count = count * max(extent.value, 0) if isinstance(extent, ir.IntImm) and count >= 0 else -1
        self.apart.add(var)
        known_bytes = count * bytes_each
        if 0 <= known_bytes <= min(STACK_LIMIT_BYTES, STACK_TOTAL_BYTES - self._stack_bytes):
            self._stack_bytes += known_bytes
            self.b.keeps_tiles = True
            self.values[var] = self.b.alloca(storage_type(statement.dtype), max(count, 1), ALIGNMENT)
            self.on_stack.add(var)
            self.run(statement.body)
            return
        needed = self._bytes_of(statement.extents, bytes_each)
        self.module.declare("lw_workspace_alloc", "noalias ptr @lw_workspace_alloc(i64)")
        self.module.declare("lw_workspace_free", "void @lw_workspace_free(ptr)")
        pointer = self.b.value(f"call noalias align {ALIGNMENT} ptr @lw_workspace_alloc(i64 {needed})")
        present = self.b.value(f"icmp ne ptr {pointer}, null")
        text = f"no memory for the intermediate buffer {var.name}\x1f\x1ffree memory, or tile the program"
        self.fail_unless(present, "WorkspaceExhausted", text)
        self.values[var] = pointer
        self.workspaces.append(pointer)
        self.run(statement.body)
        self.workspaces.pop()
        if self.b.open:
            self.b.do(f"call void @lw_workspace_free(ptr {pointer})")

    def _bytes_of(self, extents: Sequence[ir.Expr], bytes_each: int) -> str:
        """The size of a buffer; -1, which no allocation can serve, where 64 bits do not hold it."""
        total, too_large = str(bytes_each), "false"
        self.module.declare("llvm.smul.with.overflow.i64", "{i64, i1} @llvm.smul.with.overflow.i64(i64, i64)")
        factors = list(extents)
        while factors:
            factor = factors.pop()
            if isinstance(factor, ir.Mul):  # flat buffers have one extent, the product of what it was
                factors += [factor.a, factor.b]
                continue
            count = self.cast(self.index(factor), factor.dtype, INT64)
            pair = self.b.value(f"call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 {total}, i64 {count})")
            total = self.b.value(f"extractvalue {{i64, i1}} {pair}, 0")
            overflows = self.b.value(f"extractvalue {{i64, i1}} {pair}, 1")
            too_large = self.b.value(f"or i1 {too_large}, {overflows}")
        at_least_none = self.intrinsic("llvm.smax.i64", INT64, [(INT64, total), (INT64, "0")])
        return self.b.value(f"select i1 {too_large}, i64 -1, i64 {at_least_none}")

    def visit_AllocateConst(self, statement: ir.AllocateConst) -> None:
        data = np.ascontiguousarray(np.asarray(statement.data, dtype=statement.dtype.numpy())).tobytes()
        writable = statement.buffer_var in self.writable
        symbol = self.module.constant_bytes(self.module.unique("lw.const"), data, ALIGNMENT, writable)
        self.values[statement.buffer_var] = symbol
        self.apart.add(statement.buffer_var)
        self.run(statement.body)
