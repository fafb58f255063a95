"""Scopes: a step leaves no use of a buffer where the buffer does not exist.

That is looked at in the whole new version, whatever the primitive. The start value of a reduction is written before
the outermost loop that carries it (see `analysis/reduction_init.py`), so a step that moves no use by itself may still
move that one out of the loop where the buffer is allocated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from loopwright.analysis.reduction_init import InitUsesReduction, NamedInits, variables_of, write_named_inits
from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    Buffer,
    DeclBuffer,
    For,
    IfThenElse,
    Let,
    LetStmt,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    any_statement,
    collect,
    deep,
)
from loopwright.ir.verifier import NotWellFormed, verify
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.step import Step
from loopwright.schedule.view import Path, View


class LeavesScope(ScheduleError):
    """The step would move a use of a buffer, or of a let, out of the scope where it lives.

    `stage` and `sink_alloc` allocate memory inside a loop: each iteration has its own, and outside there is none. A
    reduction counts as used where its start value is written, which is before the outermost loop that carries it.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def func(A: T.Buffer((1, 3)), I: T.Buffer((1,), "int32"), E: T.Buffer((2,), "int32")):
            for _i in range(1):
                V = T.decl_buffer((1,))
                for k in range(3):
                    with T.block("V"):
                        vi = T.axis.spatial(1, 0)
                        vk = T.axis.reduce(3, k)
                        with T.init():
                            I[vi] = -1
                            V[vi] = -1000.0
                        x: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
                        y: T.float32 = T.max(V[vi], A[vi, vk])
                        I[vi] = x
                        V[vi] = y
            for j in range(2):
                with T.block("E"):
                    vj = T.axis.spatial(2, j)
                    E[vj] = I[0]

        sch = tir.Schedule(func)
        sch.merge(sch.get_loops("V")[0], sch.get_loops("E")[0])
    """

    code = "LW0258"

    def __init__(self, step: str, name: str, at: object, hint: str | None = None) -> None:
        super().__init__(
            f"{step} would move a use of {name} out of the scope where {name} lives",
            at=at,
            hint=hint,
            fields={"memory": name},
        )


def check_scopes(step: str, result: Step) -> None:
    """Every use of a buffer in the new version, start values of reductions included, is where the buffer exists."""
    function = result.after
    try:
        verify(function)
        _check_starts(function)
    except NotWellFormed as error:
        if error.memory is not None:
            raise LeavesScope(step, error.memory, result.at) from error
        if error.variable is None or not _is_let(function, error.variable):
            raise
        hint = "bind the let before the loops, or compute its value where it is used"
        raise LeavesScope(step, error.variable.name, result.at, hint) from error
    except InitUsesReduction as error:
        raise NotSupported(step, error.problem, result.at) from None


def _is_let(function: PrimFunc, var: Var) -> bool:
    return any_statement(function.body, lambda node: isinstance(node, LetStmt) and node.var is var)


@lru_cache(maxsize=16)  # a primitive may ask before the engine does
def verify_inits(function: PrimFunc) -> None:
    """Raise `NotWellFormed` unless a function that keeps every rule does so with its inits written down, too."""
    written = write_named_inits(function.body)
    if not _Names(written).has_all(function):
        verify(function.with_(body=written.body))  # says what is missing


class _Names(Visitor):
    """Does every init find the variables and the memory that it uses? What else it is made of has been verified."""

    def __init__(self, written: NamedInits) -> None:
        self.written = written
        self.here: set[Var] = set()
        self.is_complete = True

    @deep
    def has_all(self, function: PrimFunc) -> bool:
        arguments = function.argument_buffers()
        self.here = {*function.params, *[var for buffer in arguments for var in _names_of(buffer)]}
        self.visit(self.written.body)
        return self.is_complete

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        block = realize.block
        if block in self.written.blocks:
            self.is_complete = self.is_complete and _used_by_init(realize) <= self.here
            return
        matched = [var for match in block.match_buffers for var in _names_of(match.buffer)]
        memory = [buffer.data for buffer in block.alloc_buffers]
        self._inside([*[axis.var for axis in block.iter_vars], *memory, *matched], block.body)

    def visit_For(self, loop: For) -> None:
        if loop.loop_var in self.written.loops:
            self.is_complete = self.is_complete and variables_of(loop.min) | variables_of(loop.extent) <= self.here
        self._inside([loop.loop_var], loop.body)

    def visit_Allocate(self, allocation: Allocate) -> None:
        self._inside([allocation.buffer_var], allocation.body)

    def visit_AllocateConst(self, allocation: AllocateConst) -> None:
        self._inside([allocation.buffer_var], allocation.body)

    def visit_DeclBuffer(self, declaration: DeclBuffer) -> None:
        self._inside([declaration.buffer.data], declaration.body)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self._inside([let.var], let.body)

    def _inside(self, variables: Sequence[Var], body: Stmt) -> None:
        fresh = [var for var in variables if var not in self.here]
        self.here.update(fresh)
        self.visit(body)
        self.here.difference_update(fresh)

    def visit_Expr(self, _: Node) -> None:
        """Expressions hold no blocks."""

    visit_Buffer = visit_BufferRegion = visit_MatchBufferRegion = visit_IterVar = visit_Range = visit_Expr
    visit_BufferStore = visit_Evaluate = visit_Expr


def _names_of(buffer: Buffer) -> set[Var]:
    """The variables that a buffer brings with it: its memory, and the sizes of its shape."""
    exprs = (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset)
    return {var for expr in exprs for var in variables_of(expr)}


@lru_cache(maxsize=1024)  # most steps leave most inits as they are
def _used_by_init(realize: BlockRealize) -> frozenset[Var]:
    used = {node.data if isinstance(node, Buffer) else node for node in collect(realize, Var, Buffer)}
    matched = [var for match in realize.block.match_buffers for var in _names_of(match.buffer)]
    bound = [let.var for let in collect(realize, Let, LetStmt)] + [loop.loop_var for loop in collect(realize, For)]
    return frozenset(used.difference([axis.var for axis in realize.block.iter_vars], matched, bound))


_CHECKED: Final[dict[Hashable, None]] = {}  # reductions by what is around them: most steps leave most where they are
_KEPT: Final = 1024


def _check_starts(function: PrimFunc) -> None:
    """Raise `NotWellFormed` unless every start of a reduction finds what it uses."""
    paths = [path for path in View(function).index.blocks.values() if _depends_on_scopes(path)]
    keys = [key for key in [(function.params, *_around(path)) for path in paths] if key not in _CHECKED]
    if keys:
        verify_inits(function)
        if len(_CHECKED) + len(keys) > _KEPT:
            _CHECKED.clear()
        _CHECKED.update(dict.fromkeys(keys))


def _depends_on_scopes(path: Path) -> bool:
    """Is it a reduction in a let, or one that touches memory which is allocated around it, or in its block?"""
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    block = realize.block
    if block.init is None:
        return False
    scoped = {node.buffer_var for node in path if isinstance(node, Allocate)}
    if block.alloc_buffers or any([isinstance(node, LetStmt) for node in path]):
        return True  # an init may use neither what the block allocates, nor a let that it stands before
    return any([region.buffer.data in scoped for region in (*block.reads, *block.writes)])


def _around(path: Path) -> Iterator[Hashable]:
    """What decides where a reduction starts, and what there is to be used."""
    for node, inside in pairwise(path):
        if isinstance(node, For):
            yield node.loop_var, node.min, node.extent
        elif isinstance(node, BlockRealize):
            block = node.block
            yield block.iter_vars, block.alloc_buffers, block.match_buffers, node.iter_values, node.predicate
        elif isinstance(node, Allocate | AllocateConst):
            yield node.buffer_var
        elif isinstance(node, DeclBuffer):
            yield node.buffer
        elif isinstance(node, LetStmt):
            yield node.var, node.value
        elif isinstance(node, IfThenElse):
            yield node.condition, inside is node.else_case
        elif not isinstance(node, SeqStmt | Block):
            yield node
    yield path[-1]
