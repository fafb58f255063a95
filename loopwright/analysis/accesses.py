"""Accesses: every place where a program reads or writes a buffer, and when that happens.

An index that is affine is known exactly. One that depends on data has no form: a *may* access widens it to its whole
dimension, a *must* access does not count it at all. An access is guarded by the conditions around its statement and by
the lazy forms around it (`if_then_else`, `and`, `or`); `Select` computes both sides, so it guards nothing.

What a call does through a pointer (`A.data`, `A.access_ptr("w")`, `address_of(A[i])`) is what its block declares to
read and write of that buffer; where it declares nothing, the whole buffer. What may be written counts as read before.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from loopwright.analysis.effects import CHANGES, HARMLESS, OUTSIDE, SEES, is_pure_call, reaches_outside
from loopwright.analysis.instances import Assumption, Barrier, Instance, InstanceWalk, Loop, Realized
from loopwright.analysis.memory_reach import bytes_of, flat_index, min_offset, reach, row_extent
from loopwright.analysis.polyhedral import Polyhedra
from loopwright.analysis.products import Symbols, symbols_in
from loopwright.analysis.ranges import Ranges
from loopwright.analysis.reduction_init import write_named_inits
from loopwright.analysis.thread_axes import has_threads, is_per, is_virtual_tag, is_warp_call, scope_of
from loopwright.analysis.thread_regions import Regions, write_regions
from loopwright.arith.affine import AnyOf, Condition, Eq, Form, Ge, constant, inequalities
from loopwright.arith.affine_reader import Affine
from loopwright.ir import (
    Allocate,
    AllocateConst,
    And,
    AttrStmt,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    GlobalVar,
    IntImm,
    Let,
    LetStmt,
    Node,
    Or,
    PointerType,
    PrimFunc,
    PrimType,
    Ramp,
    Var,
    While,
    any_node,
    cast,
    const,
    decl_buffer,
    deep,
    structural_equal,
)
from loopwright.ir.annotations import ASSUMED_SIZES, TOUCHED
from loopwright.ir.machine_intrinsics import HANDOFFS
from loopwright.ir.matrix_intrinsics import MATRIX_OPERANDS, regions_of
from loopwright.ir.products import product
from loopwright.runtime.dtype import HANDLE, INT64, DataType

_UNBOUNDED: Final = (1 << 31) - 1  # elements
_ANY: Final = 4  # of a pointer: what it is for is not said; else 1 to read, 2 to write, 3 for both


class Memory(NamedTuple):
    """What a pointer points to: whose memory, and at which of its bytes the pointer is.

    The memory has `size` bytes. A pointer may be for `rows` of them: with strides, those of all rows, though the last
    one ends earlier. They count from `base` on: a matched buffer begins where its region does.
    """

    owner: Var
    size: Expr
    rows: Expr
    start: Expr
    base: Expr


class Access:
    """One load or store: `buffer[indices]`, where an index that is not affine is None.

    `loops` are those around the statement, then one for each vector index, whose lanes all happen at once, then the
    products (`products.py`), which are none. `cell` is the buffer and indices that a sub-buffer stands for; otherwise
    the same as `buffer` and `indices`. `loose` are the indices of the cell where some have loose products.
    """

    __slots__ = (
        "assumptions",
        "buffer",
        "call",
        "cell",
        "exact",
        "guards",
        "indices",
        "instance",
        "loops",
        "loose",
        "node",
        "pointer",
        "writes",
    )

    def __init__(
        self,
        instance: Instance,
        node: BufferLoad | BufferStore,
        indices: tuple[Form | None, ...],
        cell: tuple[Buffer, tuple[Form | None, ...]],
        loops: tuple[Loop, ...],
        guards: tuple[Condition, ...],
        exact: bool,
        assumptions: tuple[Assumption, ...] = (),
        pointer: Buffer | None = None,
        call: Call | None = None,
    ) -> None:
        self.instance = instance
        self.node = node
        self.buffer = node.buffer
        self.indices = indices
        self.cell = cell
        self.loops = loops
        self.guards = guards
        self.assumptions = assumptions
        self.exact = exact  # the loops and guards say exactly when it happens
        self.loose: tuple[Form | None, ...] = cell[1]
        self.pointer = pointer  # the buffer that a call has a pointer to, where this is done through it
        self.call = call  # the hand-off between blocks that does this, atomically
        self.writes = isinstance(node, BufferStore)

    @property
    def is_must(self) -> bool:
        """Whether it is known exactly which cells are touched, and when."""
        return self.exact and None not in self.cell[1]

    @property
    def running(self) -> tuple[Loop, ...]:
        """The loops, without products."""
        return tuple([loop for loop in self.loops if loop.product is None])

    @property
    def depth(self) -> int:
        """How many loops are around the statement."""
        return len(self.instance.loops)

    @property
    def time(self) -> tuple[int | Var, ...]:
        """When it happens: the 2d+1 vector of the statement, then whether it is a store (loads come first)."""
        vector: list[int | Var] = []
        for position, loop in zip(self.instance.positions, self.instance.loops, strict=False):
            vector += [position, loop.var]
        return (*vector, self.instance.positions[-1], int(self.writes))

    def time_in(self, names: Mapping[Var, str]) -> list[int | str]:
        """The same, loops by their names."""
        return [names[item] if isinstance(item, Var) else item for item in self.time]


def disturb(one: Access, other: Access, are_blocks: bool) -> bool:
    """Whether two threads, or two blocks, disturb each other by accesses to one cell.

    Not where both only read, where both take tickets, and where one block awaits what another one publishes.
    """
    if not (one.writes or other.writes):
        return False
    calls = {access.call.op.name if access.call is not None else "" for access in (one, other)}
    return not (calls == {"tir.take_ticket"} or (are_blocks and calls == {"tir.publish", "tir.await_published"}))


class Window(NamedTuple):
    """A buffer that sees memory of another, or a pointer with a range: where it begins there, and where it ends."""

    of: Buffer | Call
    owner: str
    size: Expr
    ends: Sequence[Access]
    callee: str | None = None  # the function that is called with it, and takes it for `of`


class Program:
    """What the checks need to know of one function."""

    def __init__(
        self, function: PrimFunc, functions: Mapping[str, PrimFunc] | None = None, steady: Container[Var] = ()
    ) -> None:
        walk = _AccessWalk(function.argument_buffers())
        walk.functions = functions or {}
        walk.steady = steady
        walk.sizes = tuple(extent for buffer in function.argument_buffers() for extent in buffer.shape)
        body, self.inits, self.init_loops = write_named_inits(function.body)
        self.regions = write_regions(body) if has_threads(function.body) else Regions(body)
        walk.visit(self.regions.body)
        self.function = function
        self.affine: Affine = walk.affine
        self.accesses: Sequence[Access] = walk.accesses
        # Through pointers, where every pointer to that memory is followed.
        self.pointers: Sequence[Access] = [] if walk.has_threads else walk.pointers
        # The same, of threads as well.
        self.by_calls: Sequence[Access] = walk.pointers
        self.handoffs: Sequence[Access] = walk.handoffs  # between blocks; their memory counts as unknown
        self.addresses: Sequence[Access] = walk.addresses  # elements whose address is taken
        self.windows: Sequence[Window] = walk.windows
        self.matched: Sequence[Access] = walk.matched  # regions of sub-buffers that a call has a pointer to
        self.calls: Sequence[Access] = walk.calls  # of what is outside: two for each call that reaches there
        self.realized: Sequence[Realized] = walk.realized
        self.barriers: Sequence[Barrier] = walk.barriers
        if self.affine.products:
            self._name_products()
        self.homes = walk.homes
        self._sources = {part: view.source for part, view in walk.views.items()}
        self.definitions = walk.definitions
        self.constants = walk.constants
        self.handed_off: set[Var] = walk.handed_off - walk.unknown - walk.pointed  # of which `handoffs` tell the rest
        self.unknown: set[Var] = walk.unknown | walk.pointed | walk.handed_off
        self._unfollowed: set[Var] = walk.unknown | walk.handed_off
        # Memory that calls touch in ways that neither `accesses` nor, of matrix instructions, `by_calls` tells. What
        # goes by several names is told: two names of it may mean any cells.
        told = {access.cell[0].data for access in walk.pointers if is_warp_call(access.instance.statement)}
        told -= {access.cell[0].data for access in walk.pointers if not is_warp_call(access.instance.statement)}
        renamed = walk.renamed - walk.lost - walk.handed_off
        self.untold: set[Var] = (walk.unknown - renamed) | (walk.pointed - told)
        self.opaque: set[Var] = (
            self.unknown if walk.has_threads else walk.unknown | walk.handed_off
        )  # of which `pointers` do not tell all
        self.effects: Sequence[Call] = walk.effects  # calls that do something besides returning a value
        self.unordered: Sequence[Call] = walk.unordered  # those of which it is not known when and how often they come
        self.outside: Sequence[tuple[Call, Instance]] = walk.outside  # those that may do anything, and where
        self.has_threads = walk.has_threads
        self.crossings: dict[bool, Any] = {}  # filled by thread_races.py
        self._owners: dict[Buffer, tuple[str | Var, ...]] = {}
        if walk.may_leave:
            for access in [*walk.accesses, *walk.handoffs, *walk.addresses, *walk.matched, *walk.pointers, *walk.calls]:
                access.exact = False
            self.realized = [realized._replace(exact=False) for realized in self.realized]
        # Sizes of arguments are not negative, whatever the caller gives.
        self.sizes: set[Var] = set()
        self.context: list[Ge] = []
        for buffer in function.argument_buffers():
            for extent in buffer.shape:
                form = self.affine.form(extent)
                if form is not None and form.terms:
                    self.context.append(Ge(form))
                    self.sizes |= form.variables()
        plain = {v for c in self.context if not c.form.const for v in _just_variable(c.form)}
        assumed: Any = function.attrs.get(ASSUMED_SIZES, ())
        self.choices: list[AnyOf] = []  # of which one case holds; they cost too much to be asked with everything
        for condition in assumed:
            known, _ = self.affine.condition(condition)
            self.context += [Ge(form) for form in inequalities([known]) if form.variables() <= self.sizes]
            if isinstance(known, AnyOf) and _variables_of(known) <= self.sizes:
                self.choices.append(known)
        self.ranges = Ranges(plain)
        self.polyhedra = Polyhedra(self)
        self.dataflow: Any = None  # made by dataflow.py when first asked for

    def _name_products(self) -> None:
        """Where a product may be named, its symbol is a variable like a loop's, and the cases are a condition."""
        known: dict[tuple[Loop, ...], Symbols] = {}

        def symbols(loops: tuple[Loop, ...]) -> Symbols:
            if loops not in known:
                known[loops] = symbols_in(loops, self.affine)
            return known[loops]

        for access in [*self.accesses, *self.handoffs, *self.addresses, *self.matched, *self.pointers, *self.calls]:
            result = symbols(access.instance.loops)
            access.loops, access.guards = (*access.loops, *result.loops), (*access.guards, *result.guards)
        self.realized = [
            item._replace(loops=(*item.loops, *result.loops), guards=(*item.guards, *result.guards))
            for item in self.realized
            for result in [symbols(item.loops)]
        ]
        self.barriers = [item._replace(exact=item.exact and not symbols(item.loops).loops) for item in self.barriers]

    def is_left_alone(self, buffer: Buffer, loop: Loop) -> bool:
        """Whether no call in the loop touches the buffer, and every one outside is known, though threads run them."""
        if buffer.data in self._unfollowed:
            return False
        return all([access.cell[0] is not buffer or loop not in access.loops for access in self.by_calls])

    def owners(self, buffer: Buffer) -> tuple[str | Var, ...]:
        """The thread axes whose every index has the memory of its own, though it is allocated outside their loops.

        A block or thread axis is called by its tag, a virtual one by its variable. Every use is under these axes.
        """
        if not self.has_threads:
            return ()
        result = self._owners.get(buffer)
        if result is None:
            home, scope = self.homes.get(buffer.data, ()), scope_of(buffer.data)
            around = [
                {loop.thread_tag for loop in access.instance.loops if loop not in home}
                for access in self.accesses
                if access.cell[0] is buffer and buffer.data in self.homes
            ]
            # What is also used outside the threads lives there, once.
            common = set.intersection(*around) if around else set()
            kept: set[str | Var] = {tag for tag in common if tag and is_per(scope, tag)}
            for axis in self.regions.hoisted.get(buffer.data, ()):
                kept.add(axis.var if is_virtual_tag(axis.tag) else axis.tag)
            result = self._owners[buffer] = tuple(sorted(kept, key=str))
        return result

    def owner_index(self, key: str | Var, loops: Sequence[Loop]) -> Loop | None:
        """The loop around a place that runs the axis."""
        return next((loop for loop in loops if key is loop.var or key == loop.thread_tag), None)

    def source(self, buffer: Buffer) -> Buffer:
        """The buffer whose memory it is: of a sub-buffer, the one that it is a part of."""
        while buffer in self._sources:
            buffer = self._sources[buffer]
        return buffer

    def is_own(self, buffer: Buffer, loop: Loop) -> bool:
        """Whether each iteration of `loop` has the memory for itself."""
        if loop in self.homes.get(buffer.data, ()):
            return True
        return any([key is loop.var or key == loop.thread_tag for key in self.owners(buffer)])


def _variables_of(condition: Condition) -> set[Var]:
    if isinstance(condition, (Ge, Eq)):
        return condition.form.variables()
    return {var for item in condition.items for var in _variables_of(item)}


def _just_variable(form: Form) -> list[Var]:
    """The variable that the form is."""
    return [term for term, k in form.terms.items() if k == 1 and isinstance(term, Var) and len(form.terms) == 1]


@deep
def accesses_of(
    function: PrimFunc, functions: Mapping[str, PrimFunc] | None = None, steady: Container[Var] = ()
) -> Program:
    """Every access of `function`, the inits of its reductions written down first.

    `functions` are those that it may call: what they take for a buffer is a window of what they are given. Variables of
    lets that are `steady` have one value wherever accesses are compared, and count as parameters.
    """
    return Program(function, functions, steady)


def _is_address(expr: Expr) -> TypeGuard[Call]:
    """Whether it is the address of an element of a buffer."""
    return isinstance(expr, Call) and expr.op.name == "tir.address_of" and isinstance(expr.args[0], BufferLoad)


class _Owner(NamedTuple):
    """Who has memory: an allocation, or a buffer that the caller gives, a block allocates or matches."""

    dtype: DataType
    extents: Sequence[Expr] | None = None  # what is allocated
    buffer: Buffer | None = None
    base: Expr | None = None  # where a matched region begins


def seen_through(function: PrimFunc, position: int, functions: Mapping[str, PrimFunc]) -> list[Buffer]:
    """The buffers of constant shapes that a function, and those it passes a pointer on to, see behind a parameter."""
    result: dict[Buffer, None] = {}
    done: set[tuple[PrimFunc, int]] = set()

    def look_at(function: PrimFunc, position: int) -> None:
        if (function, position) in done or position >= len(function.params):
            return
        done.add((function, position))
        param = function.params[position]
        if param in function.buffer_map:
            result[function.buffer_map[param]] = None
        elif param.dtype.kind == "handle":

            def look(node: Node) -> bool:
                if isinstance(node, (BufferLoad, BufferStore, DeclBuffer)) and node.buffer.data is param:
                    result[node.buffer] = None
                elif isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op.name in functions:
                    for index, argument in enumerate(node.args):
                        if argument is param:
                            look_at(functions[node.op.name], index)
                return False

            any_node(function.body, look)

    look_at(function, position)
    return [
        buffer
        for buffer in result
        if all([isinstance(extent, IntImm) for extent in (*buffer.shape, *buffer.strides, buffer.elem_offset)])
    ]


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


class _AccessWalk(InstanceWalk):
    def __init__(self, arguments: Sequence[Buffer]) -> None:
        super().__init__()
        self.accesses: list[Access] = []
        self.pointers: list[Access] = []
        self.handoffs: list[Access] = []
        self.handed_off: set[Var] = set()  # the memory of these
        self.addresses: list[Access] = []
        self.functions: Mapping[str, PrimFunc] = {}
        self.windows: list[Window] = []
        self.matched: list[Access] = []
        self._memory: dict[Var, Memory] = {}
        self._owners: dict[Var, _Owner] = {}
        self._seen: set[Buffer] = set()
        self.pointed: set[Var] = set()  # memory that calls touch through pointers that are followed
        self.unknown: set[Var] = set()  # memory that calls may touch in other ways, or that goes by several names
        self.lost: set[Var] = set()  # of this, what calls may touch
        self.renamed: set[Var] = set()  # and what goes by several names
        self._buffers: dict[Var, Buffer] = {}
        for buffer in arguments:
            self._own(buffer)
            self._buffers[buffer.data] = buffer
        self._touched: list[tuple[BufferRegion, int]] | None = None  # what an attribute says of pointers
        self._asked = _ANY  # what a pointer in this argument is for
        self._handed: dict[Var, int] | None = None  # pointers in the statement → what they are for
        self.effects: list[Call] = []
        self.calls: list[Access] = []
        self.unordered: list[Call] = []
        self.outside: list[tuple[Call, Instance]] = []
        self._names: dict[Var, Buffer] = {}
        self._indexing = 0  # inside how many indices we are

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.begin(store)
        self._handed = {}
        self.visit(store.value)
        self._visit_indices(store)
        self._record(store)
        if self._handed:
            both = {store.buffer.data} & self._handed.keys()  # is it written by the call, or after it?
            self.unknown |= both
            self.lost |= both
            self._follow_pointers()
        self._handed = None

    def visit_Evaluate(self, evaluate: Evaluate) -> None:
        self._handed = {}
        super().visit_Evaluate(evaluate)
        if self._handed:
            self._follow_pointers()
        self._handed = None

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        for buffer in realize.block.alloc_buffers:
            self._own(buffer, extents=buffer.allocated_extents())
            self._call_by_name(buffer)
        for match in realize.block.match_buffers:
            self._own(match.buffer, base=match.buffer.elem_offset)
            self._call_by_name(match.buffer)
        super().visit_BlockRealize(realize)

    def visit_DeclBuffer(self, declared: DeclBuffer) -> None:
        self._call_by_name(declared.buffer)
        self.begin(declared)
        if declared.buffer not in self._seen:
            self._look_through(declared.buffer)
        self.visit(declared.body)

    def visit_Allocate(self, allocation: Allocate) -> None:
        self._owners[allocation.buffer_var] = _Owner(allocation.dtype, allocation.extents)
        self._is_own(allocation)
        super().visit_Allocate(allocation)

    def visit_AllocateConst(self, allocation: AllocateConst) -> None:
        self._owners[allocation.buffer_var] = _Owner(allocation.dtype, allocation.extents)
        self._is_own(allocation)
        super().visit_AllocateConst(allocation)

    def _is_own(self, allocation: Allocate | AllocateConst) -> None:
        """A buffer that is declared right where memory is allocated for it has the same sizes, whatever they read."""
        declared = allocation.body
        if isinstance(declared, DeclBuffer) and declared.buffer.data is allocation.buffer_var:
            buffer = declared.buffer
            if _is_zero(buffer.elem_offset) and not buffer.strides and buffer.dtype is allocation.dtype:
                if structural_equal(buffer.shape, allocation.extents):
                    self._seen.add(buffer)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        if attr.attr_key != TOUCHED:
            super().visit_AttrStmt(attr)
            return
        saved, self._touched = self._touched, regions_of(attr)
        self.visit(attr.body)
        self._touched = saved

    def visit_LetStmt(self, let: LetStmt) -> None:
        memory = self._pointed_to(let.value) if let.var.dtype is HANDLE else None
        if memory is not None:
            self._memory[let.var] = memory
        super().visit_LetStmt(let)

    def _call_by_name(self, buffer: Buffer) -> None:
        if self._buffers.setdefault(buffer.data, buffer) is not buffer:
            self.unknown.add(buffer.data)
            self.renamed.add(buffer.data)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._visit_indices(load)
        self._record(load)

    def _visit_indices(self, node: BufferLoad | BufferStore) -> None:
        self._indexing += 1
        for index in node.indices:
            self.visit(index)
        self._indexing -= 1

    def _record(self, node: BufferLoad | BufferStore) -> None:
        self.accesses.append(self._access(node))

    def _access(self, node: BufferLoad | BufferStore) -> Access:
        if node.buffer not in self._seen:
            self._look_through(node.buffer)
        loops = self.loops
        indices: list[Form | None] = []
        for index in node.indices:
            if isinstance(index, Ramp):
                lane = Var("lane", index.base.dtype)
                self.affine.own(lane, constant(0), constant(index.lanes - 1))
                loops = (*loops, Loop(lane, constant(0), constant(index.lanes - 1), index))
                base, stride = self.affine.form(index.base), self.affine.form(index.stride)
                if base is None or stride is None or stride.terms:
                    indices.append(None)
                else:
                    indices.append(base.plus(Form({lane: 1}, 0), stride.const))
            else:
                indices.append(self.affine.form(index))
        given = tuple(indices)
        cell = self._resolve(node.buffer, given)
        if self._names.setdefault(cell[0].data, cell[0]) is not cell[0]:
            self.unknown.add(cell[0].data)
            self.renamed.add(cell[0].data)
        access = Access(self.instance, node, given, cell, loops, self.guards, self.exact, self.assumptions)
        if None in cell[1] and cell[0] is node.buffer:
            loose = [form or self.affine.loose_form(index) for form, index in zip(given, node.indices, strict=True)]
            access.loose = tuple(loose)
        return access

    def _resolve(self, buffer: Buffer, indices: tuple[Form | None, ...]) -> tuple[Buffer, tuple[Form | None, ...]]:
        """The element of the allocated buffer that an element of a sub-buffer is."""
        while buffer in self.views:
            buffer, starts = self.views[buffer]
            fixed = len(starts) - len(indices)
            moved = [
                None if a is None or b is None else a.plus(b) for a, b in zip(starts[fixed:], indices, strict=True)
            ]
            indices = (*starts[:fixed], *moved)
        return buffer, indices

    def visit_Call(self, call: Call) -> None:
        name = call.op.name
        if name == "tir.if_then_else":
            condition, chosen, other = call.args
            self.visit(condition)
            self._guarded(condition, True, chosen)
            self._guarded(condition, False, other)
        elif name == "tir.prefetch" and _is_address(call.args[0]):
            hint = call.args[0].args[0]  # nothing is touched, wherever the address is
            assert isinstance(hint, BufferLoad)
            self._visit_indices(hint)
        elif _is_address(call):
            load = call.args[0]
            assert isinstance(load, BufferLoad)
            self._visit_indices(load)
            self.addresses.append(self._access(load))
            self._call_by_name(load.buffer)
            self._hand(load.buffer.data, self._asked)
        elif name == "tir.tvm_access_ptr" and isinstance(call.args[1], Var) and isinstance(call.args[4], IntImm):
            self.visit(call.args[2])
            self.visit(call.args[3])
            self._look_at_range(call)
            self._hand(call.args[1], call.args[4].value & 3)
        else:
            rest = call.args
            if name in HANDOFFS and _is_address(pointer := call.args[0]):
                self._hand_off(call, pointer.args[0])
                rest = call.args[1:]
            operands = MATRIX_OPERANDS.get(name, {})
            for position, argument in enumerate(rest):
                self._asked = operands.get(position, _ANY)
                self.visit(argument)
            self._asked = _ANY
            if isinstance(call.op, GlobalVar) and name in self.functions:
                self._look_into(self.functions[name], call)
            if not is_pure_call(call) and name not in HARMLESS:
                self.effects.append(call)
                if reaches_outside(call):
                    self.outside.append((call, self.instance))
                    self._reach_outside(call)

    def _hand_off(self, call: Call, element: Expr) -> None:
        """One cell, that of the element, is read, written, or both at once."""
        assert isinstance(element, BufferLoad)
        self._visit_indices(element)
        self.addresses.append(self._access(element))
        self._call_by_name(element.buffer)
        access = self._access(element)
        self.handed_off.add(access.cell[0].data)
        if call.op.name != "tir.await_published":
            access.node, access.writes = BufferStore(element.buffer, element, element.indices), True
        access.call = call
        self.handoffs.append(access)

    def _reach_outside(self, call: Call) -> None:
        """What is outside is seen and changed here, after all that the statement called before."""
        if isinstance(self.instance.statement, (BlockRealize, While)):
            # Bindings are computed wherever an axis stands, the condition of a `while` once more than its body runs.
            self.unordered.append(call)
        instance = self.instance._replace(positions=(*self.instance.positions[:-1], self._next))
        self._next += 1
        for node in (SEES, CHANGES):
            cell = (OUTSIDE, ())
            access = Access(instance, node, (), cell, self.loops, self.guards, self.exact, self.assumptions)
            self.calls.append(access)

    def visit_And(self, both: And) -> None:
        self.visit(both.a)
        self._guarded(both.a, True, both.b)

    def visit_Or(self, either: Or) -> None:
        self.visit(either.a)
        self._guarded(either.a, False, either.b)

    def visit_Let(self, let: Let) -> None:
        self.bind(let.var, let.value)
        self.visit(let.body)

    def _guarded(self, condition: Expr, holds: bool, value: Expr) -> None:
        saved = self.conditions
        self.guard(condition, holds)
        self.visit(value)
        self.conditions = saved

    def visit_Var(self, var: Var) -> None:
        if var.dtype is HANDLE:
            self._hand(var, self._asked)
        elif self.binders.get(var, self.place) is not self.place:
            (self.place.indexed if self._indexing else self.place.outer)[var] = None

    # --- pointers -------------------------------------------------------------------------------------------------

    def _hand(self, data: Var, mask: int) -> None:
        """A pointer to the memory goes somewhere: to a call in this statement, or who knows where."""
        if self._asked != _ANY and data not in self._buffers:
            annotation = data.type_annotation  # memory that has no name but this pointer
            kind = annotation.element_type if isinstance(annotation, PointerType) else None
            dtype = kind.dtype if isinstance(kind, PrimType) else DataType("int8")
            self._call_by_name(decl_buffer((_UNBOUNDED,), dtype, data.name, data=data))
        if self._handed is None or data not in self._buffers:
            buffer = self._buffers.get(data)
            lost = {data} if buffer is None else {data, self._resolve(buffer, (None,) * len(buffer.shape))[0].data}
            self.unknown |= lost
            self.lost |= lost
        else:
            self._handed[data] = self._handed.get(data, 0) | mask

    def _follow_pointers(self) -> None:
        """Record what the calls of the current statement may do through the pointers they get."""
        block = self.place.block
        for data, mask in (self._handed or {}).items():
            buffer = self._buffers[data]
            memory = self._resolve(buffer, (None,) * len(buffer.shape))[0]
            self.pointed.update((data, memory.data))
            whole = [(const(0, extent.dtype), extent) for extent in buffer.shape]
            if buffer in self.views:
                self.matched.append(self._through(buffer, buffer, whole)[0])
            regions = [] if block is None else [(r, 1) for r in block.reads] + [(w, 2) for w in block.writes]
            regions = regions if self._touched is None else self._touched
            declared = [(region, does) for region, does in regions if region.buffer.data in (data, memory.data)]
            for region, does in declared:  # 1: reads, 2: writes, and so reads as well
                ranges = [(axis.min, axis.extent) for axis in region.region]
                self.pointers += self._through(buffer, region.buffer, ranges)[:does]
            # A pointer is for what it says, also where the block does not declare it.
            rest = mask & 3 & ~sum({does for _, does in declared}) if declared or mask < _ANY else 3
            if rest:
                self.pointers += self._through(buffer, buffer, whole)[:rest]

    def _through(self, pointer: Buffer, buffer: Buffer, ranges: Sequence[tuple[Expr, Expr]]) -> list[Access]:
        """Reading and writing a region of a buffer through a pointer.

        What may be written is always read as well: the call may leave some of it as it was.
        """
        loops = self.loops
        indices: list[Form | None] = []
        points: tuple[Expr, ...] = ()
        for low, extent in ranges:
            start, size = self.affine.form(low), self.affine.form(extent)
            if isinstance(extent, IntImm) and extent.value == 1:
                indices.append(start)
                points += (low,)
                continue
            var = Var("element", low.dtype)
            last = None if size is None else size.shifted(-1)
            self.affine.own(var, constant(0), last)
            loops = (*loops, Loop(var, constant(0), last, extent))
            indices.append(None if start is None or size is None else start.plus(Form({var: 1}, 0)))
            points += (low + var,)
        cell = self._resolve(buffer, tuple(indices))
        if self._names.setdefault(cell[0].data, cell[0]) is not cell[0]:
            self.unknown.add(cell[0].data)
            self.renamed.add(cell[0].data)
        load = BufferLoad(buffer, points)
        given = cell, loops, self.guards, self.exact, self.assumptions, pointer
        nodes: list[BufferLoad | BufferStore] = [load, BufferStore(buffer, load, points)]
        return [Access(self.instance, node, tuple(indices), *given) for node in nodes]

    # --- other names of memory ------------------------------------------------------------------------------------

    def _own(self, buffer: Buffer, extents: Sequence[Expr] | None = None, base: Expr | None = None) -> None:
        """The buffer has memory of its own: the caller's, as much as is allocated, or a region from `base` on."""
        self._owners[buffer.data] = _Owner(buffer.dtype, extents, buffer, base)
        if extents is None or not (buffer.strides or not _is_zero(buffer.elem_offset)):
            self._seen.add(buffer)

    def _memory_of(self, data: Expr) -> Memory | None:
        """The memory behind a pointer variable; worked out when it is first asked for."""
        if not isinstance(data, Var):
            return None
        result, owner = self._memory.get(data), self._owners.get(data)
        if result is None and owner is not None:
            buffer, base, dtype = owner.buffer, owner.base, owner.dtype
            size = rows = const(0) if owner.extents is None else product(owner.extents)
            if buffer is not None:
                ahead = buffer.elem_offset if base is None else const(0)
                rows = ahead + row_extent(buffer)
                size = ahead + reach(buffer) if owner.extents is None else size
            at = const(0) if base is None else bytes_of(base, dtype)
            result = self._memory[data] = Memory(data, bytes_of(size, dtype), bytes_of(rows, dtype), const(0), at)
        return result

    def _look_into(self, callee: PrimFunc, call: Call) -> None:
        """A function of the module is called: what it takes for its buffers must be large enough."""
        for position, argument in enumerate(call.args[: len(callee.params)]):
            memory = self._pointed_to(argument)
            if memory is not None:
                for buffer in seen_through(callee, position, self.functions):
                    self._see(buffer, memory, call.op.name)

    def _look_through(self, buffer: Buffer) -> None:
        """A buffer is met: where it sees memory that is not its own, that must be large enough."""
        self._seen.add(buffer)
        memory = self._memory_of(buffer.data)
        if memory is not None:
            self._see(buffer, memory)

    def _see(self, buffer: Buffer, memory: Memory, callee: str | None = None) -> None:
        first = memory.start + bytes_of(self._wide(buffer.elem_offset), buffer.dtype)
        end = first + bytes_of(self._wide(reach(buffer)), buffer.dtype)
        if buffer.strides:
            first = first - bytes_of(self._wide(min_offset(buffer)), buffer.dtype)
        self._add_window(buffer, memory, memory.size, first, end, callee)

    def _look_at_range(self, call: Call) -> None:
        """A pointer into memory says how much of it a call may touch."""
        kind, data, offset, extent = call.args[:4]
        memory = self._memory_of(data)
        if memory is not None:
            first = memory.start + bytes_of(self._wide(offset), kind.dtype)
            end = first + bytes_of(self._wide(extent), kind.dtype)
            self._add_window(call, memory, memory.rows, first, end)

    def _pointed_to(self, pointer: Expr) -> Memory | None:
        """The memory behind a pointer, and where in it that points."""
        if isinstance(pointer, Var):
            return self._memory_of(pointer)
        if _is_address(pointer) and isinstance(load := pointer.args[0], BufferLoad):
            memory = self._memory_of(load.buffer.data)
            if memory is None or any([index.dtype.lanes > 1 for index in load.indices]):
                return None
            at = load.buffer.elem_offset + flat_index(load.buffer, load.indices)
            return memory._replace(start=memory.start + bytes_of(self._wide(at), load.buffer.dtype))
        if isinstance(pointer, Call) and pointer.op.name == "tir.tvm_access_ptr":
            memory = self._memory_of(pointer.args[1])
            if memory is not None:
                return memory._replace(
                    start=memory.start + bytes_of(self._wide(pointer.args[2]), pointer.args[0].dtype)
                )
        return None

    def _wide(self, count: Expr) -> Expr:
        """A number of elements that data decides, in the 64 bits that addresses have."""

        def is_data(node: Node) -> bool:
            if isinstance(node, Var):
                return node not in self.affine.digits and self.affine.values.get(node, 0) is None
            return isinstance(node, (BufferLoad, Call))

        return cast(count, INT64) if any_node(count, is_data) else count

    def _add_window(
        self, of: Buffer | Call, memory: Memory, size: Expr, first: Expr, end: Expr, callee: str | None = None
    ) -> None:
        if not _is_zero(memory.base):
            first, end = first - memory.base, end - memory.base
        numbers = [expr.value for expr in (first, end, size) if isinstance(expr, IntImm)]
        if len(numbers) == 3 and min(numbers) >= 0 and max(numbers) == numbers[2]:
            return
        seen = Buffer(memory.owner, "int8", (size + 1,), name=memory.owner.name)  # the places between bytes
        saved = self.conditions
        ends = []
        for at in (first, end):
            index = (self.affine.form(at),)
            given = self.loops, self.guards, self.exact, self.assumptions
            ends.append(Access(self.instance, BufferLoad(seen, (at,)), index, (seen, index), *given))
            for extent in of.shape if isinstance(of, Buffer) else of.args[3:4]:
                self.guard(extent > const(0, extent.dtype))  # of nothing, the end does not count
        self.conditions = saved
        self.windows.append(Window(of, memory.owner.name, size, ends, callee))
