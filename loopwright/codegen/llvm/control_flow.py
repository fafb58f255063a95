"""ControlFlow: what calls, parallel loops and statements share: counted loops, and the ways out of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright import ir
from loopwright.codegen.llvm.expressions import ExpressionEmitter
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.raising import emit_raise, emit_raise_with
from loopwright.codegen.llvm.types import register_type
from loopwright.runtime.dtype import INT64
from loopwright.target import CpuDescription


class ControlFlow(ExpressionEmitter):
    """Writes the flow of one function; `emitter.py` adds the statements."""

    def __init__(
        self, module: ModuleText, builder: FunctionBuilder, target: CpuDescription, bodies: Callable[..., str]
    ) -> None:
        super().__init__(module, builder, target, bodies)
        self.workspaces: list[str] = []  # live heap memory, to be freed on the way out
        self.writable: set[ir.Var] = set()  # constants whose address functions outside the program get
        self.in_parallel = False

    def run(self, statement: ir.Stmt) -> None:
        """Emit a statement. What its expressions computed is forgotten after it: stores change what loads see."""
        outer, outer_trail = self._known, self._trail
        self._known, self._trail = {}, []
        if self.b.open:
            self._table[type(statement)](self, statement)
        self._known, self._trail = outer, outer_trail

    def counted_loop(
        self,
        var: ir.Var,
        low: str,
        high: str,
        body: Callable[[], None],
        metadata: str | None = None,
        is_entered: bool = False,
    ) -> None:
        """for var in [low, high): body()

        A loop that `is_entered`, whatever happens, asks after its body whether there is more: the form that LLVM would
        bring it to.
        """
        text = register_type(var.dtype)
        head, after, latch, before = self.b.label("loop"), self.b.label("after"), self.b.label("next"), self.b.block
        counter, following = f"%{head}.i", f"%{head}.next"
        self.b.jump(head)
        self.b.start(head)
        self.b.do(f"{counter} = phi {text} [ {low}, %{before} ], [ {following}, %{latch} ]")
        if not is_entered:
            inside = self.b.label("body")
            self.b.branch(self.b.value(f"icmp slt {text} {counter}, {high}"), inside, after)
            self.b.start(inside)
        self.values[var] = counter
        body()
        if self.b.open:
            self.b.jump(latch)
        self.b.start(latch)
        self.b.do(f"{following} = add nsw {text} {counter}, 1")
        if is_entered:
            self.b.branch(self.b.value(f"icmp eq {text} {following}, {high}"), after, head, loop=metadata)
        else:
            self.b.jump(head, loop=metadata)
        self.b.start(after)

    def fail_unless(self, condition: str, kind: str, message: str, values: Sequence[ir.Expr] = ()) -> None:
        """Leave the function with an error unless `condition` holds. With `values`, `message` is a format for them."""
        bad, good = self.b.label("bad"), self.b.label("good")
        self.b.branch(condition, good, bad)
        self.b.start(bad)
        if values:
            shown = [self.cast(self.value(value), value.dtype, INT64) for value in values]
            emit_raise_with(self.module, self.b, kind, message, shown)
        else:
            emit_raise(self.module, self.b, kind, self.module.string(message))
        self.leave("-1")
        self.b.start(good)

    def pass_on(self, status: str) -> None:
        """Leave the function with the status of a call, unless that is 0: whoever failed has said why."""
        fine = self.b.value(f"icmp eq i32 {status}, 0")
        bad, good = self.b.label("bad"), self.b.label("good")
        self.b.branch(fine, good, bad)
        self.b.start(bad)
        self.leave(status)
        self.b.start(good)

    def leave(self, status: str) -> None:
        """Return `status`, freeing what is still held."""
        for pointer in reversed(self.workspaces):
            self.b.do(f"call void @lw_workspace_free(ptr {pointer})")
        self.b.ret(f"i32 {status}")
