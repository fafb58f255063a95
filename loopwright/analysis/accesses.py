"""Accesses: every place where a program reads or writes a buffer, and when that happens.

An index that is affine is known exactly. One that depends on data has no form: a *may* access widens it to its whole
dimension, a *must* access does not count it at all. An access is guarded by the conditions around its statement and by
the lazy forms around it (`if_then_else`, `and`, `or`); `Select` computes both sides, so it guards nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from loopwright.analysis.affine import Affine, Condition, Form, Ge, constant, inequalities
from loopwright.analysis.effects import CHANGES, OUTSIDE, SEES, reaches_outside
from loopwright.analysis.instances import Assumption, Barrier, Instance, InstanceWalk, Loop, Realized
from loopwright.analysis.polyhedral import Polyhedra
from loopwright.analysis.products import Symbols, symbols_in
from loopwright.analysis.ranges import Ranges
from loopwright.analysis.reduction_init import write_named_inits
from loopwright.analysis.thread_axes import is_per, is_virtual_tag, scope_of
from loopwright.analysis.thread_regions import write_regions
from loopwright.ir import (
    And,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    Let,
    Or,
    PrimFunc,
    Ramp,
    Var,
    While,
    deep,
)
from loopwright.ir.annotations import ASSUMED_SIZES
from loopwright.runtime.dtype import HANDLE

# Calls that are neither pure nor do anything: promises, hints, and returns, which the walk itself looks at.
_HARMLESS: Final = frozenset({"tir.assume", "tir.likely", "tir.prefetch", "tir.ret", "tir.tvm_storage_sync"})


class Access:
    """One load or store: `buffer[indices]`, where an index that is not affine is None.

    `loops` are those around the statement, then one for each vector index, whose lanes all happen at once, then the
    products (`products.py`), which are none. `cell` is the buffer and indices that a sub-buffer stands for; otherwise
    the same as `buffer` and `indices`. `loose` are the indices of the cell where some have loose products.
    """

    __slots__ = (
        "assumptions",
        "buffer",
        "cell",
        "exact",
        "guards",
        "indices",
        "instance",
        "loops",
        "loose",
        "node",
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


class Program:
    """What the checks need to know of one function."""

    def __init__(self, function: PrimFunc) -> None:
        walk = _AccessWalk()
        walk.sizes = tuple(extent for buffer in function.argument_buffers() for extent in buffer.shape)
        body, self.inits = write_named_inits(function.body)
        self.regions = write_regions(body)
        walk.visit(self.regions.body)
        self.function = function
        self.affine: Affine = walk.affine
        self.accesses: Sequence[Access] = walk.accesses
        self.calls: Sequence[Access] = walk.calls  # of what is outside: two for each call that reaches there
        self.realized: Sequence[Realized] = walk.realized
        self.barriers: Sequence[Barrier] = walk.barriers
        if self.affine.products:
            self._name_products()
        self.homes = walk.homes
        self.definitions = walk.definitions
        self.constants = walk.constants
        self.unknown: set[Var] = walk.unknown
        self.effects: Sequence[Call] = walk.effects  # calls that do something besides returning a value
        self.unordered: Sequence[Call] = walk.unordered  # those of which it is not known when and how often they come
        self.outside: Sequence[tuple[Call, Instance]] = walk.outside  # those that may do anything, and where
        self.has_threads = walk.has_threads
        self.crossings: dict[bool, Any] = {}  # filled by thread_races.py
        self._owners: dict[Buffer, tuple[str | Var, ...]] = {}
        if walk.may_leave:
            for access in [*walk.accesses, *walk.calls]:
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
        for condition in assumed:
            known, _ = self.affine.condition(condition)
            self.context += [Ge(form) for form in inequalities([known]) if form.variables() <= self.sizes]
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

        for access in [*self.accesses, *self.calls]:
            found = symbols(access.instance.loops)
            access.loops, access.guards = (*access.loops, *found.loops), (*access.guards, *found.guards)
        self.realized = [
            item._replace(loops=(*item.loops, *found.loops), guards=(*item.guards, *found.guards))
            for item in self.realized
            for found in [symbols(item.loops)]
        ]
        self.barriers = [item._replace(exact=item.exact and not symbols(item.loops).loops) for item in self.barriers]

    def owners(self, buffer: Buffer) -> tuple[str | Var, ...]:
        """The thread axes whose every index has the memory of its own, though it is allocated outside their loops.

        A block or thread axis is called by its tag, a virtual one by its variable. Every use is under these axes.
        """
        if not self.has_threads:
            return ()
        found = self._owners.get(buffer)
        if found is None:
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
            found = self._owners[buffer] = tuple(sorted(kept, key=str))
        return found

    def owner_index(self, key: str | Var, loops: Sequence[Loop]) -> Loop | None:
        """The loop around a place that runs the axis."""
        return next((loop for loop in loops if key is loop.var or key == loop.thread_tag), None)

    def is_own(self, buffer: Buffer, loop: Loop) -> bool:
        """Whether each iteration of `loop` has the memory for itself."""
        if loop in self.homes.get(buffer.data, ()):
            return True
        return any([key is loop.var or key == loop.thread_tag for key in self.owners(buffer)])


def _just_variable(form: Form) -> list[Var]:
    """The variable that the form is."""
    return [term for term, k in form.terms.items() if k == 1 and isinstance(term, Var) and len(form.terms) == 1]


@deep
def accesses_of(function: PrimFunc) -> Program:
    """Every access of `function`, the inits of its reductions written down first."""
    return Program(function)


def _is_address(expr: Expr) -> TypeGuard[Call]:
    """Whether it is the address of an element of a buffer."""
    return isinstance(expr, Call) and expr.op.name == "tir.address_of" and isinstance(expr.args[0], BufferLoad)


class _AccessWalk(InstanceWalk):
    def __init__(self) -> None:
        super().__init__()
        self.accesses: list[Access] = []
        self.unknown: set[Var] = set()  # memory that calls may touch, or that goes by several names
        self.effects: list[Call] = []
        self.calls: list[Access] = []
        self.unordered: list[Call] = []
        self.outside: list[tuple[Call, Instance]] = []
        self._names: dict[Var, Buffer] = {}
        self._indexing = 0  # inside how many indices we are

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.begin(store)
        self.visit(store.value)
        self._visit_indices(store)
        self._record(store)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._visit_indices(load)
        self._record(load)

    def _visit_indices(self, node: BufferLoad | BufferStore) -> None:
        self._indexing += 1
        for index in node.indices:
            self.visit(index)
        self._indexing -= 1

    def _record(self, node: BufferLoad | BufferStore) -> None:
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
        access = Access(self.instance, node, given, cell, loops, self.guards, self.exact, self.assumptions)
        if None in cell[1] and cell[0] is node.buffer:
            loose = [form or self.affine.loose_form(index) for form, index in zip(given, node.indices, strict=True)]
            access.loose = tuple(loose)
        self.accesses.append(access)

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
            self.unknown.add(self._resolve(load.buffer, (None,) * len(load.indices))[0].data)
        else:
            for argument in call.args:
                self.visit(argument)
            if not getattr(call.op, "is_pure", False) and name not in _HARMLESS:
                self.effects.append(call)
                if reaches_outside(call):
                    self.outside.append((call, self.instance))
                    self._reach_outside(call)

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
            self.unknown.add(var)
        elif self.binders.get(var, self.place) is not self.place:
            (self.place.indexed if self._indexing else self.place.outer)[var] = None
