"""memory_copies: which loop nests copy one contiguous piece of memory to another, as `memcpy` would.

    for i, j in T.grid(32, 32):          the outer loop copies A[0:1024] to B[0:32, 0:32],
        B[i, j] = A[i * 32 + j]          the inner one A[i * 32 : i * 32 + 32] to B[i, 0:32]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer, interval_of
from loopwright.arith.loop_bounds import detect_linear_equation
from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    IntImm,
    Range,
    Stmt,
    StringImm,
    Var,
    collect_statements,
    const,
    deep,
)

Copy = tuple[BufferRegion, BufferRegion]  # from, to


@deep
def identify_memcpy(root: Stmt) -> list[Copy | StringImm]:
    """For every loop, outermost first: the region it copies and the one it copies to, or why it is no copy."""
    result: list[Copy | StringImm] = []
    facts = Analyzer()
    for loop in collect_statements(root, For):
        found = _copied(loop, facts)
        result.append(StringImm(found) if isinstance(found, str) else found)
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), allow_override=True)
    return result


class _Nest(NamedTuple):
    loops: Mapping[Var, Range]
    store: BufferStore
    load: BufferLoad


def _copied(loop: For, facts: Analyzer) -> Copy | str:
    nest = _nest(loop)
    if isinstance(nest, str):
        return nest
    extents = []
    for var, domain in nest.loops.items():
        if not isinstance(domain.extent, IntImm):
            return f"Expected loop over {var.name} to have a constant extent, but it has {domain.extent}"
        extents.append(domain.extent.value)
    loops, (store, load) = list(nest.loops), (nest.store, nest.load)
    inner = Analyzer()
    for var, domain in nest.loops.items():
        inner.bind(var, domain)
    offsets = []
    for buffer, indices in ((load.buffer, load.indices), (store.buffer, store.indices)):
        flat = _flat(buffer, indices, inner)
        steps = _steps(flat, loops)
        if steps is None or not _is_injective(steps, extents):
            return f"Access {buffer.name}{list(indices)} does not form a bijective transform from the loops"
        offsets.append((flat, steps))
    count = 1
    for extent in extents:
        count *= extent
    for what, (_, steps) in zip(("src", "dst"), offsets, strict=True):
        touched = 1 + sum([abs(step) * (extent - 1) for step, extent in zip(steps, extents, strict=True)])
        if touched != count:
            return f"Mismatch between loop iterations ({count}) and number of {what} indices touched ({touched})"
    if offsets[0][1] != offsets[1][1]:
        return "Mapping of loop iterations to the destination has a different source order"
    return _region(load.buffer, load.indices, nest.loops, facts), _region(
        store.buffer, store.indices, nest.loops, facts
    )


def _nest(loop: For) -> _Nest | str:
    loops: dict[Var, Range] = {}
    body: Stmt = loop
    while isinstance(body, For):
        loops[body.loop_var] = Range.from_min_extent(body.min, body.extent)
        body = body.body
    if not isinstance(body, BufferStore):
        return f"Expected innermost loop to have BufferStore body, but it is {type(body).__name__}"
    if not isinstance(body.value, BufferLoad):
        return f"Expected BufferStore's value to be BufferLoad, but it is {type(body.value).__name__}"
    return _Nest(loops, body, body.value)


def _flat(buffer: Buffer, indices: Sequence[Expr], facts: Analyzer) -> Expr:
    flat: Expr = const(0)
    for stride, index in zip(buffer.effective_strides(), indices, strict=True):
        flat = flat + index * stride
    return facts.simplify(flat)


def _steps(flat: Expr, loops: Sequence[Var]) -> list[int] | None:
    """By how much each loop moves the offset; None where that is no number."""
    found = detect_linear_equation(flat, loops)
    steps = [item.value for item in found[:-1] if isinstance(item, IntImm)]
    return steps if found and len(steps) == len(loops) else None


def _is_injective(steps: Sequence[int], extents: Sequence[int]) -> bool:
    reach = 0
    for step, extent in sorted((abs(step), extent) for step, extent in zip(steps, extents, strict=True) if extent > 1):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def _region(buffer: Buffer, indices: Sequence[Expr], loops: Mapping[Var, Range], facts: Analyzer) -> BufferRegion:
    parts = []
    for index in indices:
        span = interval_of(index, dict(loops), facts)
        assert span is not None
        low = facts.simplify(span.min_value)
        parts.append(Range.from_min_extent(low, facts.simplify(span.max_value - span.min_value + 1)))
    return BufferRegion(buffer, tuple(parts))
