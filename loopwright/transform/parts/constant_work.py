"""constant_work: which statements of a function depend on nothing but its constants.

    packed[j // 16, k, j % 16] = W[k, j]        constant work, when W is a constant and nobody else writes `packed`
    C[i, j] += A[i, k] * packed[…]              not: A comes from the caller

A statement counts when all it reads are constants, loop indices and buffers that constant work has written, when all it
writes are buffers of the function's own that nobody else writes, and when nobody reads those before they are finished.
Three things are left to the call: indices that are read from memory (nothing says that they lie inside), large results
of small constants (a broadcast is cheaper to compute than to load), and work that would take the compiler long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

import numpy as np

from loopwright.analysis.effects import EffectsWalk
from loopwright.ir import (
    Add,
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IntImm,
    Let,
    LetStmt,
    Mul,
    Node,
    Op,
    Prefetch,
    PrimFunc,
    SeqStmt,
    Stmt,
    Sub,
    Var,
    While,
    deep,
    intrinsics,
    uses_var,
)
from loopwright.ir.annotations import TENSORIZED
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, LIKELY
from loopwright.transform.parts.purity import has_data

MARK: Final = "precompute_constants"  # the attribute of a function that is False where nothing shall be done early
GROWTH: Final = 16  # times the constants it comes from: int8 becomes float32, and is padded to whole panels
ALWAYS: Final = 1 << 20  # bytes that are worth storing however small their source
MOST_WORK: Final = 1 << 28  # stores: under a second

# What these compute follows from their arguments on every machine, to the last bit.
_EXACT: Final = frozenset(
    [
        IF_THEN_ELSE,
        LIKELY,
        *[Op.get(f"tir.{name}") for name in (*intrinsics.ROUNDING, *intrinsics.PREDICATES)],
        *[Op.get(f"tir.{name}") for name in "sqrt copysign abs clz popcount reinterpret".split()],
        *[Op.get(f"tir.shift_{name}") for name in ("left", "right")],
        *[Op.get(f"tir.bitwise_{name}") for name in ("and", "or", "xor", "not")],
    ]
)
# Pure, and yet not ours to run: code from elsewhere, and values that are not there.
_NOT_OURS: Final = frozenset(
    Op.get(f"tir.{name}")
    for name in "call_pure_extern call_llvm_pure_intrin undef lookup_param tvm_thread_invariant".split()
)


Wrapper = AllocateConst | DeclBuffer


class Top(NamedTuple):
    """The root block of a function: what is declared around everything, and the statements in order."""

    root: BlockRealize
    wrappers: list[Wrapper]
    statements: list[Stmt]

    def constants(self) -> dict[Var, AllocateConst]:
        return {node.buffer_var: node for node in self.wrappers if isinstance(node, AllocateConst)}


def top_of(func: PrimFunc) -> Top | None:
    """The root block of a function taken apart; None when it has none, or asks that nothing be precomputed."""
    root = func.body
    if not isinstance(root, BlockRealize) or root.block.iter_vars or not func.attrs.get(MARK, True):
        return None
    top = Top(root, [], [])
    body = root.block.body
    while True:
        if isinstance(body, (AllocateConst, DeclBuffer)):
            top.wrappers.append(body)
            body = body.body
            continue
        parts = body.seq if isinstance(body, SeqStmt) else (body,)
        top.statements.extend(parts[:-1])
        body = parts[-1]
        if not isinstance(body, (AllocateConst, DeclBuffer)):  # what is declared on the way may be from the start
            top.statements.append(body)
            return top


@dataclass
class Work:
    """A statement: the memory it touches (by the pointer to it), and whether it could be done ahead of the call."""

    reads: set[Var]
    writes: set[Var]
    can_be_early: bool
    is_exact: bool  # computes the same bits on every machine

    @property
    def touches(self) -> set[Var]:
        return self.reads | self.writes


class _Look(EffectsWalk):
    def __init__(self) -> None:
        super().__init__()
        self.used: set[Var] = set()
        self.bound: set[Var] = set()
        self.data: set[Var] = set()  # names of values that were read from memory
        self.can_be_early = self.is_exact = True
        self.times = 1  # that the place runs
        self.stores = 0

    def visit_Var(self, var: Var) -> None:
        if var.dtype.kind == "handle":  # given away: anything may happen to the memory
            self.can_be_early = False
        self.used.add(var)
        super().visit_Var(var)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        super().visit_BufferLoad(load)
        self._access(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        super().visit_BufferStore(store)
        self.stores += self.times
        self._access(store)

    def _access(self, node: BufferLoad | BufferStore) -> None:
        buffer = node.buffer
        # An index that is data may lie outside: the call shall find that out, not the compiler.
        if buffer.dtype.custom or any(
            uses_var(index, self.data.__contains__) or has_data(index) for index in node.indices
        ):
            self.can_be_early = False
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            self.visit(part)

    def visit_For(self, loop: For) -> None:
        self.bound.add(loop.loop_var)
        outer = self.times
        if isinstance(loop.extent, IntImm) and loop.kind is not ForKind.THREAD_BINDING:
            self.times *= max(loop.extent.value, 0)
        else:
            self.can_be_early = False
        self.visit_children(loop)
        self.times = outer

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.bound.add(let.var)
        if has_data(let.value) or uses_var(let.value, self.data.__contains__):
            self.data.add(let.var)
        super().visit_LetStmt(let)

    visit_Let = visit_LetStmt

    def visit_Block(self, block: Block) -> None:
        if block.match_buffers or TENSORIZED in block.annotations:
            self.can_be_early = False
        self.bound.update(axis.var for axis in block.iter_vars)
        super().visit_Block(block)

    def visit_Allocate(self, allocation: Allocate | AllocateConst) -> None:
        self.found.allocated.add(allocation.buffer_var)
        self.visit(allocation.body)

    visit_AllocateConst = visit_Allocate

    def _stays(self, node: AttrStmt | AssertStmt | While | Prefetch) -> None:
        self.can_be_early = False
        self.visit_children(node)

    visit_AttrStmt = visit_AssertStmt = visit_While = visit_Prefetch = _stays

    def visit_BufferRealize(self, realize: BufferRealize) -> None:
        self.can_be_early = False
        self.visit_children(realize)

    def visit_Call(self, call: Call) -> None:
        op = call.op
        if not isinstance(op, Op) or not op.is_pure or op in _NOT_OURS or op.name in Op.of_users:
            self.can_be_early = False
        self.is_exact = self.is_exact and op in _EXACT
        super().visit_Call(call)

    def _sum(self, node: Add | Sub) -> None:
        # One rounding or two: form_fma asks the machine.
        if node.dtype.is_float and (isinstance(node.a, Mul) or isinstance(node.b, Mul)):
            self.is_exact = False
        self.visit_children(node)

    visit_Add = visit_Sub = _sum


@deep
def look(statement: Node) -> Work:
    """What a statement touches and needs."""
    seen = _Look()
    seen.visit(statement)
    done = seen.found
    reads, writes = {*done.loaded, *done.pointers, *done.named} - done.allocated, done.changed - done.allocated
    is_early = seen.can_be_early and seen.stores <= MOST_WORK and seen.used <= seen.bound
    return Work(reads, writes, is_early, seen.is_exact)


def constant_work(works: Sequence[Work], own: Mapping[Var, Buffer], constants: Mapping[Var, int]) -> list[int]:
    """The places of the statements that are constant work; `own` are the function's buffers, `constants` have bytes."""
    chosen = {index for index, work in enumerate(works) if work.can_be_early and work.writes <= own.keys()}
    while True:
        search = _Search(works, own, constants, chosen)
        kept = {location for location in chosen if search.stands(location)}
        if kept == chosen:
            return sorted(chosen)
        chosen = kept


class _Search:
    """Whether statements that were chosen can stay chosen."""

    def __init__(
        self,
        works: Sequence[Work],
        own: Mapping[Var, Buffer],
        constants: Mapping[Var, int],
        chosen: set[int],
    ) -> None:
        self.works, self.own, self.constants, self.chosen = works, own, constants, chosen

    def stands(self, index: int) -> bool:
        work = self.works[index]
        return all(var in self.constants or self._is_settled(var) for var in work.touches) and all(
            self._is_worth_storing(self.own[var]) for var in work.writes
        )

    def _writers(self, var: Var) -> list[int]:
        return [index for index, work in enumerate(self.works) if var in work.writes]

    def _is_settled(self, var: Var) -> bool:
        """Whether only constant work writes the buffer, and others see it only when it is finished."""
        writers = self._writers(var)
        if var not in self.own or not writers or not self.chosen.issuperset(writers):
            return False
        return not any(var in self.works[index].touches for index in range(writers[-1]) if index not in self.chosen)

    def _is_worth_storing(self, buffer: Buffer) -> bool:
        size = size_of(buffer)
        source = sum(self.constants[var] for var in self._sources(buffer.data))
        return size is not None and source > 0 and size <= GROWTH * source + ALWAYS

    def _sources(self, var: Var) -> set[Var]:
        """The constants that a buffer's values come from."""
        result: set[Var] = set()
        pending, seen = [var], {var}
        while pending:
            for location in self._writers(pending.pop()):
                reads = self.works[location].reads
                result |= reads & self.constants.keys()
                new = reads - seen - self.constants.keys()
                seen |= new
                pending += new
        return result


def size_of(buffer: Buffer) -> int | None:
    """The bytes of a buffer that an array can stand for; None when none can."""
    is_plain = not buffer.strides and buffer.scope() == "global" and _is_zero(buffer.elem_offset)
    if not is_plain or buffer.dtype.lanes != 1 or (buffer.dtype.bits < 8 and buffer.dtype.is_int):
        return None
    shape = shape_of(buffer)
    return prod(shape) * max(1, buffer.dtype.bits // 8) if len(shape) == len(buffer.shape) else None


def shape_of(buffer: Buffer) -> list[int]:
    """The sizes of a buffer that are constants."""
    return [size.value for size in buffer.shape if isinstance(size, IntImm)]


def _is_zero(offset: Expr) -> bool:
    return isinstance(offset, IntImm) and offset.value == 0


def bytes_of_constant(constant: AllocateConst) -> int:
    """How large a constant is in memory."""
    return int(np.asarray(constant.data).nbytes)
