"""check_async_order: what asynchronous kernels need, happens in the order that they need it.

The events of a block are followed for its first and its last block, and for small values of the sizes and scalars that
decide how often something happens; every error is one of a kernel that is called with these values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from time import perf_counter
from typing import Final, NamedTuple

from loopwright.analysis.async_order.events import NotKnown
from loopwright.analysis.async_order.footprints import TooLarge
from loopwright.analysis.async_order.kernels import (
    BARRIER_ARGUMENTS,
    SYNCHRONISES,
    AsyncKernel,
    async_kernels,
    block_axes,
    memory_of,
    variable_of,
)
from loopwright.analysis.async_order.order import Order
from loopwright.analysis.async_order.values import Env
from loopwright.analysis.async_order.walk import Walk
from loopwright.ir import (
    AttrStmt,
    Call,
    Expr,
    FloorDiv,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    PrimFunc,
    Stmt,
    Var,
    any_node,
    collect,
    pre_order_visit,
)

_SMALL: Final = (13, 0, 1, 2, 3, 6)  # iterations that are tried where a call says how many there are
_SECONDS: Final = 0.25  # after which no further values are tried


class AsyncOrder(NamedTuple):
    """What is known of a function's kernels."""

    kernels: int  # that have asynchronous operations
    doubts: tuple[str, ...]  # what is not known, kernel by kernel

    @property
    def is_proved(self) -> bool:
        """Whether all that happens has been followed, to the end."""
        return not self.doubts


def check_async_order(func: PrimFunc) -> AsyncOrder:
    """What is known of the kernels of a function; raises an AsyncOrderError where something certainly goes wrong."""
    kernels = async_kernels(func)
    doubts: dict[str, None] = {}
    for kernel in kernels:
        doubts |= dict.fromkeys(_check(kernel))
    return AsyncOrder(len(kernels), tuple(doubts))


def _check(kernel: AsyncKernel) -> list[str]:
    memory = memory_of(kernel.body)
    begin = perf_counter()
    doubts: dict[str, None] = {}
    free = _deciding(kernel)
    walk: Walk | None = None
    if free:
        names = ", ".join([var.name for var in free])
        doubts[f"small values of {names} were tried, and the kernel may be called with others"] = None
    for values in _values(free, kernel):
        for block in _blocks(kernel, values):
            if perf_counter() - begin > _SECONDS:
                doubts["there was no time for all blocks and values"] = None
                return list(doubts)
            try:
                walk = Walk(kernel, memory, values, block, walk)
                trace = walk.trace()
            except (NotKnown, TooLarge) as error:
                doubts[str(error)] = None
                continue
            order = Order(trace, memory)
            order.run()
            doubts |= dict.fromkeys([*trace.doubts, *order.accesses.doubts])
            if trace.cut.any():
                doubts["the first iterations were followed, in which all stages are filled several times"] = None
    return list(doubts)


# --- what is tried -------------------------------------------------------------------------------------------------


def _blocks(kernel: AsyncKernel, values: dict[Var, int]) -> list[dict[Var, int]]:
    """The first block, and the last one."""
    env = Env()
    env.vars.update(values)
    for let in kernel.lets:
        env.vars[let.var] = env.value(let.value)
    first = {variable_of(axis): 0 for axis in block_axes(kernel)}
    extents = {variable_of(axis): env.value(axis.value) for axis in block_axes(kernel)}
    last = {var: max(0, extent - 1) if isinstance(extent, int) else 0 for var, extent in extents.items()}
    return [first] if last == first or not _uses_blocks(kernel) else [first, last]


def _uses_blocks(kernel: AsyncKernel) -> bool:
    """Whether blocks may differ in what happens."""
    of_blocks = {variable_of(axis) for axis in block_axes(kernel)}
    return any([any_node(expr, of_blocks.__contains__) for expr in _decisions(kernel)])


def _decisions(kernel: AsyncKernel) -> list[Expr]:
    """The expressions that decide which events there are."""
    result: list[Expr] = [axis.value for axis in kernel.axes if axis not in block_axes(kernel)]
    lets: dict[Var, Expr] = {let.var: let.value for let in kernel.lets}

    def has_events(statement: Stmt) -> bool:
        return any_node(statement, lambda node: isinstance(node, Call) and node.op.name in SYNCHRONISES)

    def look(node: Node) -> bool:
        if isinstance(node, LetStmt):
            lets[node.var] = node.value
        elif isinstance(node, For) and has_events(node):
            result.extend([node.min, node.extent])
        elif isinstance(node, IfThenElse) and has_events(node):
            result.append(node.condition)
        elif isinstance(node, Call) and node.op.name in SYNCHRONISES:
            position = BARRIER_ARGUMENTS.get(node.op.name)
            result.extend([node.args[position]] if position is not None else [])
            result.extend([node.args[1]] if node.op.name in ("tir.mbarrier_init", "tir.mbarrier_wait") else [])
        return True

    pre_order_visit(kernel.body, look)
    seen: set[Var] = set()
    for expr in result:  # and those that lets stand for
        for var in collect(expr, Var):
            if var in lets and var not in seen:
                seen.add(var)
                result.append(lets[var])
    return result


def _deciding(kernel: AsyncKernel) -> list[Var]:
    """The sizes and scalars of a call that decide what happens."""
    bound = {variable_of(axis) for axis in kernel.axes} | {let.var for let in kernel.lets}

    def look(node: Node) -> bool:
        if isinstance(node, For):
            bound.add(node.loop_var)
        elif isinstance(node, LetStmt):
            bound.add(node.var)
        return True

    pre_order_visit(kernel.body, look)
    found: dict[Var, None] = {}
    for expr in _decisions(kernel):
        for var in collect(expr, Var):
            if var not in bound and var.dtype.kind in ("int", "uint"):
                found[var] = None
    return list(found)


def _values(free: list[Var], kernel: AsyncKernel) -> Iterator[dict[Var, int]]:
    """Values of sizes and scalars, so that there are a few iterations of everything."""
    if not free:
        yield {}
        return
    divisors = {1}
    for expr in [*_decisions(kernel), *[axis.value for axis in kernel.axes if isinstance(axis, AttrStmt)]]:
        for quotient in collect(expr, FloorDiv):
            if isinstance(quotient.b, IntImm) and quotient.b.value > 1:
                divisors.add(quotient.b.value)
    for number, step in product(_SMALL, sorted(divisors, reverse=True)):
        values = dict.fromkeys(free, number * step)
        env = Env()
        env.vars.update(values)
        if all([env.value(condition) is not False for condition in kernel.conditions]):
            yield values


__all__ = ["AsyncOrder", "check_async_order"]
