"""access_checks: what a statement must ask before it runs, so that its accesses stay inside their buffers.

    B[i] = A[idx[i]] + if_then_else(j < n, C[k[j]], 0)
        in_bounds(idx[i], 10)                      else  A[idx[i]] is outside its shape
        not j < n or in_bounds(k[j], 8)            else  C[k[j]] is outside its shape

An access under a condition is asked about under that condition. Checks come in groups, those of a group in the order in
which they must be asked: the index of an access may itself be an access.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from loopwright.ir import (
    And,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    IntImm,
    Let,
    Or,
    Ramp,
    Shuffle,
    StringImm,
    Visitor,
    cast,
    const,
    logical_and,
    logical_not,
    logical_or,
)
from loopwright.ir.intrinsics import in_bounds
from loopwright.ir.machine_intrinsics import call_error
from loopwright.runtime.dtype import INT64
from loopwright.transform.errors import IndexCallsFunction
from loopwright.transform.parts.known_ops import ADDRESS_OF, IF_THEN_ELSE
from loopwright.transform.parts.purity import is_pure

Wrap = Callable[[Expr], Expr]


class Wanted:
    """The axes of loads and stores that are not proved, by the node.

    `broadcasts` are the buffers whose axes of one element take any index.
    """

    def __init__(
        self, axes: Mapping[BufferLoad | BufferStore, Iterable[int]], broadcasts: Collection[Buffer] = ()
    ) -> None:
        self.broadcasts = broadcasts
        self._axes = {node: sorted(result) for node, result in axes.items()}
        self._found: set[BufferLoad | BufferStore] = set()

    def axes(self, node: BufferLoad | BufferStore) -> Sequence[int]:
        """The axes of an access that is to be checked."""
        axes = self._axes.get(node, ())
        if axes:
            self._found.add(node)
        return axes

    def missed(self) -> bool:
        """Whether some access was not asked about."""
        return len(self._found) < len(self._axes)


class Check(NamedTuple):
    """A condition that must hold before a statement, and what the error says where it does not."""

    condition: Expr
    message: Expr


class _Collect(Visitor):
    def __init__(self, function: str, wanted: Wanted) -> None:
        self.function = function
        self.wanted = wanted
        self.groups: list[list[Check]] = []
        self.around: list[Wrap] = []  # what makes a condition one that holds before the statement
        self.has_lets = False
        self._joined = 0  # inside how many accesses, or conditions with checks of their own

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        with_new_group = not self._joined
        if with_new_group:
            self.groups.append([])
        self._joined += 1
        for index in load.indices:
            self.visit(index)
        self._joined -= 1
        self.access(load)
        if with_new_group and not self.groups[-1]:
            self.groups.pop()

    def store(self, store: BufferStore) -> None:
        """The checks of a store: of what it loads, then of where it stores."""
        self.visit(store.value)
        self.groups.append([])
        self._joined += 1
        for index in store.indices:
            self.visit(index)
        self._joined -= 1
        self.access(store)
        if not self.groups[-1]:
            self.groups.pop()

    def access(self, node: BufferLoad | BufferStore) -> None:
        axes = self.wanted.axes(node)
        if not axes:
            return
        for axis in axes:
            if not is_pure(node.indices[axis]):
                raise IndexCallsFunction(self.function, node, axis)
        broadcasts = node.buffer in self.wanted.broadcasts
        parts = [part for axis in axes for part in _inside(node.buffer, node.indices[axis], axis, broadcasts)]
        condition = logical_and(*parts)
        for wrap in reversed(self.around):
            condition = wrap(condition)
        self.groups[-1].append(Check(condition, self._message(node)))

    def _message(self, node: BufferLoad | BufferStore) -> Expr:
        buffer, deed = node.buffer, "writes" if isinstance(node, BufferStore) else "reads"
        name, shape = _plain(f"{self.function}: {deed} {buffer.name}"), buffer.shape
        if self.has_lets or any(index.dtype.lanes > 1 for index in node.indices):
            indices = _plain(", ".join(map(str, node.indices)))
            return call_error("IndexOutOfRange", StringImm(f"{name}[{indices}], which is outside its shape"))
        values: list[Expr] = []

        def shown(expr: Expr) -> str:
            if isinstance(expr, IntImm):
                return str(expr.value)
            values.append(expr if expr.dtype is INT64 else cast(expr, INT64))
            return "%lld"

        at, bounds = ", ".join(map(shown, node.indices)), ", ".join(map(shown, shape))
        text = f"{name}[{at}], which is outside its shape ({bounds}{',' * (len(shape) == 1)})"
        return call_error("IndexOutOfRange", StringImm(text), *values)

    # --- what is computed only sometimes --------------------------------------------------------------------------

    def visit_Call(self, call: Call) -> None:
        if call.op.name == "tir.prefetch" and isinstance(call.args[0], Call) and call.args[0].op is ADDRESS_OF:
            load = call.args[0].args[0]
            for index in load.indices if isinstance(load, BufferLoad) else ():  # a hint, wherever that is
                self.visit(index)
        elif call.op is IF_THEN_ELSE:
            condition, chosen, other = call.args
            self._after(condition, [(_excused(logical_not(condition)), chosen), (_excused(condition), other)])
        else:
            self.visit_children(call)

    def visit_And(self, node: And) -> None:
        self._after(node.a, [(_excused(logical_not(node.a)), node.b)])

    def visit_Or(self, node: Or) -> None:
        self._after(node.a, [(_excused(node.a), node.b)])

    def visit_Let(self, let: Let) -> None:
        outer, self.has_lets = self.has_lets, True
        self._after(let.value, [(lambda c: Let(let.var, let.value, c), let.body)])
        self.has_lets = outer

    def _after(self, first: Expr, parts: Sequence[tuple[Wrap, Expr]]) -> None:
        """Visit `first`, then the parts; what is asked about a part asks for `first` again, by its wrapper."""
        before = sum(map(len, self.groups))
        opened = not self._joined
        if opened:
            self.groups.append([])
            self._joined += 1
        self.visit(first)
        asks = sum(map(len, self.groups)) > before
        if opened and not asks:  # it needs no check, so each part stands for itself
            self.groups.pop()
            self._joined -= 1
            opened = False
        for wrap, part in parts:
            self.around.append(wrap)
            self.visit(part)
            self.around.pop()
        if opened:
            self._joined -= 1


def _excused(excuse: Expr) -> Wrap:
    """A condition need not hold where `excuse` does."""
    return lambda condition: logical_or(excuse, condition)


def _inside(buffer: Buffer, index: Expr, axis: int, broadcasts: bool) -> list[Expr]:
    """That an index is inside, lane by lane."""
    extent = buffer.shape[axis]
    if isinstance(index, Ramp):  # the lanes between the first and the last are between them
        ends: list[Expr] = [index.base, index.base + index.stride * const(index.lanes - 1, index.stride.dtype)]
    elif index.dtype.lanes > 1:
        ends = [Shuffle((index,), (const(lane),)) for lane in range(index.dtype.lanes)]
    else:
        ends = [index]
    inside = [in_bounds(end, extent) for end in ends]
    if broadcasts:
        return [
            logical_or(extent.equal(const(1, extent.dtype)), part) for part in inside
        ]  # one element for all indices
    return inside


def _plain(text: str) -> str:
    """Text for a format."""
    return text.replace("%", "%%")


def checks_of_store(function: str, store: BufferStore, wanted: Wanted) -> list[list[Check]]:
    """The groups of checks that a store needs."""
    collect = _Collect(function, wanted)
    collect.store(store)
    return [group for group in collect.groups if group]


def checks_of(function: str, exprs: Sequence[Expr], wanted: Wanted) -> list[list[Check]]:
    """The groups of checks that expressions need."""
    collect = _Collect(function, wanted)
    for expr in exprs:
        collect.visit(expr)
    return [group for group in collect.groups if group]
