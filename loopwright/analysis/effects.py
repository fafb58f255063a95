"""Effects: what a statement does: the memory it reads and writes, the memory it allocates, the calls it makes.

    for i in range(4):                                  reads    A, and X: what goes by a pointer is what the block
        with T.block("b"):                                       declares, or both where it declares nothing
            W = T.match_buffer(A[0:4], (4,))            writes   A (by its window W), X
            W[i] = W[i] + 1                             calls    f
            T.evaluate(T.call_extern("int32", "f", X.data))

This is the one answer to that question: proofs, primitives, passes and code generators all ask here. Memory is told
apart by the pointer it stands behind. A window of a buffer, and a pointer made from another one, count as the memory
they are names of; names that are bound around a statement are known to it by the `path` of statements to it. Exactly
which cells are touched, and when, is for `accesses.py` to say.

Calls that may do anything, outside the program too, have a number and an order that are part of its meaning:

    T.call_packed("count", i)        T.call_extern("int32", "log_line", i)        a call of another function

Such calls are never duplicated, dropped or reordered, nor made by two iterations at once. Operators of the machine that
only touch the memory they point to (`mma_sync`, `ptx_cp_async`, …) are not among them: that memory is looked at.

To the proof, what is outside of the program is a cell that every such call reads and then writes: `OUTSIDE`. Each call
sees the one before it, the caller sees the last, so the flow through this cell is the sequence of calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from loopwright.analysis.thread_axes import LAUNCHES
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IntImm,
    Let,
    LetStmt,
    MatchBufferRegion,
    Node,
    Op,
    PrimFunc,
    Stmt,
    StringImm,
    Var,
    Visitor,
    collect,
    const,
    decl_buffer,
    deep,
    is_no_op,
    pre_order_visit,
)
from loopwright.ir.matrix_intrinsics import MATRIX_OPERANDS, READS

_ANYTHING: Final = frozenset(
    f"tir.{name}"
    for name in (
        "call_cpacked",
        "call_cpacked_lowered",
        "call_extern",
        "call_llvm_intrin",
        "call_packed",
        "call_packed_lowered",
        "call_tir",
        "end_profile_intrinsic",
        "start_profile_intrinsic",
        "tvm_call_cpacked",
        "tvm_call_packed",
        "tvm_call_trace_packed",
    )
)

OUTSIDE: Final[Buffer] = decl_buffer((), "int32", "outside")
SEES: Final = BufferLoad(OUTSIDE, ())
CHANGES: Final = BufferStore(OUTSIDE, const(0), ())

# Calls that are neither pure nor do anything to memory: promises, hints, barriers and returns.
HARMLESS: Final = frozenset({"tir.assume", "tir.likely", "tir.prefetch", "tir.ret", "tir.tvm_storage_sync"})

# The arguments of calls of the machine that point to memory which is only read there.
_SOURCES: Final = {
    "tir.bulk_copy_async": (1,),
    "tir.ptx_cp_async": (2,),
    "tir.wgmma": (3, 9),
    "tir.tensor_copy_async": (1,),
    "tir.tensor_store_async": (1,),
    **{
        name: tuple([position for position, does in operands.items() if does == READS])
        for name, operands in MATRIX_OPERANDS.items()
    },
}

READ: Final = 1  # what a pointer is for, as in `access_ptr`
WRITE: Final = 2
BOTH: Final = READ | WRITE

Names = Mapping[Var, tuple[Buffer, ...]]  # a window's pointer, or one made from others → the memory behind it
_NO_NAMES: Final[Names] = {}


# --- calls --------------------------------------------------------------------------------------------------------


def is_pure_call(call: Call) -> bool:
    """Whether the call gives a value that depends on its arguments alone, and does nothing else."""
    return isinstance(call.op, Op) and call.op.is_pure


def reaches_outside(call: Call) -> bool:
    """Whether the call may depend on, or change, something that is no memory of the program."""
    op = call.op
    if not isinstance(op, Op):  # another function
        return True
    return op.name in _ANYTHING or (op.name in Op.of_users and not op.is_pure)


def called_name(call: Call) -> str:
    """What is called, for messages."""
    names = [argument.value for argument in call.args if isinstance(argument, StringImm)]
    return repr(names[0]) if names and call.op.name in _ANYTHING else call.op.name


@deep
def calls_of_threads(function: PrimFunc) -> list[Call]:
    """The calls that reach outside from within loops that threads run."""
    result: list[Call] = []

    def outside(node: Node) -> bool:
        launches = isinstance(node, AttrStmt) and node.attr_key in LAUNCHES
        if launches or (isinstance(node, For) and node.kind is ForKind.THREAD_BINDING):
            pre_order_visit(node, inside)
            return False
        return True

    def inside(node: Node) -> None:
        if isinstance(node, Call) and reaches_outside(node):
            result.append(node)

    pre_order_visit(function.body, outside)
    return result


def _only_reads(call: Call) -> bool:
    """Whether it is an LLVM intrinsic that reads from the address it takes."""
    name = call.args[0] if call.args else None
    return isinstance(name, StringImm) and name.value in ("llvm.x86.tileloadd64", "llvm.x86.ldtilecfg")


# --- memory -------------------------------------------------------------------------------------------------------


class Effects:
    """What a statement or an expression does."""

    def __init__(self) -> None:
        self.loads: list[BufferLoad] = []
        self.stores: list[BufferStore] = []
        self.loaded: dict[Var, Buffer] = {}
        self.stored: dict[Var, Buffer] = {}
        # Memory whose address goes to a call, and what for: as the block around declares, or else both.
        self.pointers: dict[Var, int] = {}
        self.named: dict[Var, int] = {}  # memory that got another name, and what may be done by it, likewise
        self.declared_reads: dict[Var, Buffer] = {}  # by blocks; their bodies may do less
        self.declared_writes: dict[Var, Buffer] = {}
        self.calls: list[Call] = []  # those that do more than give a value, a hint or an address
        self.hints: list[Call] = []  # prefetches: they touch nothing,
        self.hinted: set[Var] = set()  # only name this memory
        self.allocated: set[Var] = set()
        self.names: dict[Var, tuple[Buffer, ...]] = {}  # bound inside
        self.kinds: set[type[Stmt]] = set()  # of the statements that are no stores, blocks, lets or no-ops

    @cached_property
    def reads(self) -> dict[Var, Buffer]:
        """All memory that may be read."""
        return {**self._by_pointers(READ), **self.declared_reads, **self.loaded}

    @cached_property
    def writes(self) -> dict[Var, Buffer]:
        """All memory that may be written."""
        return {**self._by_pointers(WRITE), **self.declared_writes, **self.stored}

    @property
    def changed(self) -> set[Var]:
        """The memory that is stored to, or that calls and other names may write: whatever else blocks declare."""
        return {*self.stored, *self._by_pointers(WRITE)}

    @property
    def reaches_outside(self) -> bool:
        """Whether a call may depend on, or change, what is outside of the program."""
        return any([reaches_outside(call) for call in self.calls])

    def _by_pointers(self, mask: int) -> dict[Var, Buffer]:
        given = [*self.pointers.items(), *self.named.items()]
        return {data: _any_buffer(data) for data, allowed in given if allowed & mask}

    def conflicts(self, other: Effects) -> bool:
        """Whether one writes what the other touches, or both make calls that do more than give a value."""
        return bool(self.shared(other)) or bool(self.calls and other.calls)

    def shared(self, other: Effects) -> dict[Var, Buffer]:
        """The memory both touch and at least one writes."""
        result = {data: buffer for data, buffer in self.writes.items() if data in other.writes or data in other.reads}
        result.update({data: buffer for data, buffer in other.writes.items() if data in self.reads})
        return result


class EffectsWalk(Visitor):
    """Collects effects; a class that extends it may ask more on the way."""

    def __init__(self, names: Names = _NO_NAMES) -> None:
        self.found = Effects()
        self.names: dict[Var, tuple[Buffer, ...]] = dict(names)
        self.declared: dict[Var, int] = {}  # what the block around declares to read or write
        self.pointer_mask = BOTH  # what the pointers in the call around are for
        self.is_in_call = False  # whether we are in an argument of a call that does more than give a value
        self.sources: dict[Var, None] | None = None  # the memory of the pointers in what gets another name

    # --- statements -----------------------------------------------------------------------------------------------

    def visit_Stmt(self, statement: Stmt) -> None:
        self.found.kinds.add(type(statement))
        self.visit_children(statement)

    def visit_Evaluate(self, statement: Evaluate) -> None:
        if not is_no_op(statement):
            self.visit_Stmt(statement)

    def visit_Block(self, block: Block) -> None:
        for match in block.match_buffers:
            self.visit(match)
        self.found.allocated.update([buffer.data for buffer in block.alloc_buffers])
        outer, self.declared = self.declared, {}
        for regions, mask in ((block.reads, READ), (block.writes, BOTH)):  # what may be written may be kept as it was
            for region in regions:
                for buffer in self.memory(region.buffer):
                    self.declared[buffer.data] = self.declared.get(buffer.data, 0) | mask
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        self.declared = outer
        for region in block.reads:
            self._add(self.found.declared_reads, region.buffer)
        for region in block.writes:
            self._add(self.found.declared_writes, region.buffer)

    def visit_MatchBufferRegion(self, match: MatchBufferRegion) -> None:
        self._bind(match.buffer.data, (match.source.buffer,))
        for part in match.source.region:
            self.visit(part)

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        if let.var.dtype.kind == "handle":
            self._bind_pointer(let.var, let.value)
        else:
            self.visit(let.value)
        self.visit(let.body)

    visit_Let = visit_LetStmt

    def visit_Allocate(self, allocation: Allocate | AllocateConst) -> None:
        self.found.allocated.add(allocation.buffer_var)
        self.visit_Stmt(allocation)

    visit_AllocateConst = visit_Allocate

    def visit_BufferRealize(self, realize: BufferRealize) -> None:
        self.found.allocated.add(realize.buffer.data)
        self.visit_Stmt(realize)

    # --- accesses -------------------------------------------------------------------------------------------------

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.found.loads.append(load)
        self._add(self.found.loaded, load.buffer)
        for index in load.indices:
            self.visit(index)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.found.stores.append(store)
        self._add(self.found.stored, store.buffer)
        self.visit(store.value)
        for index in store.indices:
            self.visit(index)

    def visit_BufferRegion(self, region: BufferRegion) -> None:
        self._add(self.found.loaded, region.buffer)

    def visit_Buffer(self, _: Buffer) -> None:
        """A declaration touches nothing."""

    # --- calls ----------------------------------------------------------------------------------------------------

    def visit_Call(self, call: Call) -> None:
        name = call.op.name
        if is_pure_call(call):
            outer = self.pointer_mask
            if not self.is_in_call and self.sources is None:
                self.pointer_mask = READ  # what it returns goes nowhere
            self.visit_children(call)
            self.pointer_mask = outer
        elif name == "tir.address_of" and isinstance(call.args[0], BufferLoad):
            self.visit_address(call.args[0])
        elif name == "tir.tvm_access_ptr" and isinstance(call.args[1], Var) and isinstance(call.args[4], IntImm):
            self.visit(call.args[2])
            self.visit(call.args[3])
            self.point(call.args[1], call.args[4].value & self.pointer_mask)
        elif name == "tir.prefetch":
            self.found.hints.append(call)
            self._visit_hint(call)
        else:
            self.found.calls.append(call)
            outer, self.pointer_mask = self.pointer_mask, READ if _only_reads(call) else BOTH
            outside, self.is_in_call = self.is_in_call, True
            self.visit_arguments(call)
            self.pointer_mask, self.is_in_call = outer, outside

    def visit_arguments(self, call: Call) -> None:
        """What is handed to a call that does more than give a value."""
        is_machine = not reaches_outside(call) and call.op.name not in HARMLESS
        outer, sources = self.pointer_mask, _SOURCES.get(call.op.name, ())
        for position, argument in enumerate(call.args):
            self.pointer_mask = READ if position in sources else outer
            if isinstance(argument, Buffer):
                self.point(argument.data)
            elif is_machine and isinstance(argument, BufferLoad):  # it may be the element to write
                self.visit_address(argument)
            self.visit(argument)
        self.pointer_mask = outer

    def visit_address(self, element: BufferLoad) -> None:
        """The address of an element goes somewhere."""
        for index in element.indices:
            self.visit(index)
        self.point(element.buffer.data)

    def _visit_hint(self, call: Call) -> None:
        """Of a prefetch only the indices are computed: nobody goes to the address."""
        for argument in call.args:
            parts = argument.args if isinstance(argument, Call) and argument.dtype.kind == "handle" else (argument,)
            for part in parts:
                if isinstance(part, BufferLoad):
                    self.found.hinted.update([buffer.data for buffer in self.memory(part.buffer)])
                    for index in part.indices:
                        self.visit(index)
                elif isinstance(part, Var) and part.dtype.kind == "handle":
                    self.found.hinted.update(self.roots(part))
                else:
                    self.visit(part)

    def visit_Var(self, var: Var) -> None:
        if var.dtype.kind == "handle":
            self.point(var)

    def point(self, data: Var, mask: int | None = None) -> None:
        """A pointer goes somewhere, to read or to write there.

        Where nothing says what for, it is as the block declares; where that says nothing, it may be for anything.
        """
        found = self.found.pointers if self.is_in_call or self.sources is None else self.found.named
        for memory in self.roots(data):
            allowed = self.declared.get(memory, BOTH) & self.pointer_mask if mask is None else mask
            found[memory] = found.get(memory, 0) | allowed
            if self.sources is not None:
                self.sources[memory] = None

    # --- names ----------------------------------------------------------------------------------------------------

    def memory(self, buffer: Buffer) -> list[Buffer]:
        """The buffers whose memory it is, or may be."""
        if buffer.data not in self.names:
            return [buffer]
        result: list[Buffer] = []
        pending, seen = [buffer], {buffer.data}
        while pending:
            one = pending.pop()
            behind = self.names.get(one.data)
            if behind is None:
                result.append(one)
                continue
            for other in behind:
                if other.data not in seen:
                    seen.add(other.data)
                    pending.append(other)
        return result

    def roots(self, pointer: Var) -> list[Var]:
        """The memory behind a pointer."""
        return [buffer.data for buffer in self.memory(_any_buffer(pointer))] if pointer in self.names else [pointer]

    def _add(self, found: dict[Var, Buffer], buffer: Buffer) -> None:
        if buffer.data not in self.names:
            found.setdefault(buffer.data, buffer)
            return
        for one in self.memory(buffer):
            found.setdefault(one.data, one)

    def _bind(self, var: Var, behind: tuple[Buffer, ...]) -> None:
        self.names[var] = self.found.names[var] = behind

    def _bind_pointer(self, var: Var, value: Expr) -> None:
        """A pointer made from others is a name of all memory that they point to."""
        outer, self.sources = self.sources, {}
        outside, self.is_in_call = self.is_in_call, False
        self.visit(value)
        found, self.sources, self.is_in_call = self.sources, outer, outside
        if found:
            self._bind(var, tuple([_any_buffer(memory) for memory in found]))


def _any_buffer(data: Var) -> Buffer:
    """A buffer of which only the memory counts."""
    return Buffer(data, "int8", (), name=data.name)


@deep
def effects(root: Node, path: Sequence[Stmt] = ()) -> Effects:
    """What a statement or an expression does; `path` are the statements around it, whose names of memory it knows."""
    walk = EffectsWalk(names_on(path))
    walk.visit(root)
    return walk.found


@deep
def effects_of_all(roots: Iterable[Node], path: Sequence[Stmt] = ()) -> Effects:
    """What several statements or expressions do together."""
    walk = EffectsWalk(names_on(path))
    for root in roots:
        walk.visit(root)
    return walk.found


@deep
def names_on(path: Sequence[Stmt]) -> Names:
    """The names of memory that the statements of a path bind: windows of blocks, and pointers made from others."""
    walk: EffectsWalk | None = None
    for statement in path:
        if isinstance(statement, LetStmt) and statement.var.dtype.kind == "handle":
            walk = walk or EffectsWalk()
            walk._bind_pointer(statement.var, statement.value)
        elif isinstance(statement, Block):
            for match in statement.match_buffers:
                walk = walk or EffectsWalk()
                walk.visit(match)
    return _NO_NAMES if walk is None else walk.names


def meet_in_memory(pointers: Iterable[Var], path: Sequence[Stmt]) -> bool:
    """Whether two of the pointers may be names of the same memory, by what the statements of a path bind."""
    walk = EffectsWalk(names_on(path))
    if not walk.names:
        return False
    memory = [data for pointer in pointers for data in walk.roots(pointer)]
    return len(memory) != len(set(memory))


def stored_memory(root: Node) -> list[Var]:
    """The pointers that are stored through, each once, in program order; what they are names of is not asked."""
    return list(dict.fromkeys([store.buffer.data for store in collect(root, BufferStore)]))
