"""auto_unroll: loops that stay short when written out are marked unrolled.

    for i in T.serial(8, annotations={"pragma_auto_unroll_max_step": 16}):    →    for i in range(8):
        for j in range(4):                                                             for j in T.unroll(4):
            B[i, j] = A[i, j]                                                              B[i, j] = A[i, j]

A step is a store or a call. A serial loop of constant length is marked when all that it comes to, its inner loops
unrolled, is at most `auto_max_step` steps (or its length at most `auto_max_extent`), and at most `auto_max_depth` loops
are unrolled in one another. The setting `tir.UnrollLoop` asks for it everywhere; the pragmas `auto_unroll_max_step` and
`unroll_explicit`, on a loop or block, for what is inside. Code generation unrolls what is marked; `unroll_loops` writes
it out, for reading.

Needs: loops from 0, no blocks.  Leaves: no such pragma.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.ir import AttrStmt, BufferStore, Evaluate, For, ForKind, IntImm, PrimFunc, Stmt, deep, is_no_op
from loopwright.ir.attributes import python_value
from loopwright.ir.pass_config import UnrollLoopConfig
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import BadAnnotation
from loopwright.transform.parts.statements import StmtRewriter

MAX_STEP: Final = "pragma_auto_unroll_max_step"
EXPLICIT: Final = "pragma_unroll_explicit"


class _Size(NamedTuple):
    steps: int = 0
    depth: int = 0  # of loops marked unrolled
    has_loops: bool = False  # that stay loops


class _AutoUnroll(StmtRewriter):
    def __init__(self, config: UnrollLoopConfig) -> None:
        self.config = config
        self.max_step = config.auto_max_step
        self.size = _Size()

    def visit_For(self, loop: For) -> Stmt:
        outer, around = self.max_step, self.size
        if MAX_STEP in loop.annotations:
            self.max_step = _steps(loop.annotations[MAX_STEP], loop)
        self.size = _Size()
        body = self.visit(loop.body)
        wanted = self._wanted(loop)
        kind = ForKind.UNROLLED if wanted else loop.kind
        inside, self.max_step = self.size, outer
        extent = loop.extent.value if isinstance(loop.extent, IntImm) else 1
        if kind is ForKind.UNROLLED:
            inside = _Size(max(extent, 0) * inside.steps, inside.depth + 1, inside.has_loops)
        elif kind is not ForKind.VECTORIZED:
            inside = inside._replace(has_loops=True)
        self.size = _joined(around, inside)
        notes = loop.annotations
        if MAX_STEP in notes or EXPLICIT in notes:
            notes = {key: value for key, value in notes.items() if key not in (MAX_STEP, EXPLICIT)}
        return loop.with_(kind=kind, body=body, annotations=notes)

    def _wanted(self, loop: For) -> bool:
        if loop.kind is not ForKind.SERIAL or not isinstance(loop.extent, IntImm) or self.size.has_loops:
            return False
        if self.size.depth >= self.config.auto_max_depth:
            return False
        extent = loop.extent.value
        return 0 < extent * max(1, self.size.steps) <= self.max_step or 0 < extent <= self.config.auto_max_extent

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key not in (MAX_STEP, EXPLICIT):
            return self.rebuild(node)
        outer = self.max_step
        if node.attr_key == MAX_STEP:
            self.max_step = _steps(node.value, node)
        body: Stmt = self.visit(node.body)
        self.max_step = outer
        return body

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        self.size = self.size._replace(steps=self.size.steps + 1)
        return store

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        if not is_no_op(node):
            self.size = self.size._replace(steps=self.size.steps + 1)
        return node


def _joined(a: _Size, b: _Size) -> _Size:
    return _Size(a.steps + b.steps, max(a.depth, b.depth), a.has_loops or b.has_loops)


def _steps(value: object, at: object) -> int:
    number = python_value(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise BadAnnotation(MAX_STEP, value, "how many steps a loop may come to, a number from 0 on", at)
    return int(number)


def mark_short_loops(body: Stmt) -> Stmt:
    """`body` with the loops marked unrolled that the settings and its pragmas ask for."""
    result: Stmt = _AutoUnroll(PassContext.current().setting("tir.UnrollLoop")).visit(body)
    return result


@function_pass
@deep
def auto_unroll(func: PrimFunc) -> PrimFunc:
    """Loops that stay short when written out are marked unrolled."""
    return func.with_(body=mark_short_loops(func.body))
