"""workload: what two tasks have in common, whatever their names: a key for equal ones, a family for similar ones.

A family is the program without its sizes; its sizes are a list of numbers. A schedule that was found for one size may
be adapted to another of the same family.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from math import log2, prod

from loopwright.ir import Block, BlockRealize, Buffer, Expr, For, IntImm, Node, PrimFunc, collect, pre_order_visit
from loopwright.ir.structural_hash import structural_hash

FARTHEST = 1.0  # factors of two between the sizes of two tasks, on average of each size


@functools.lru_cache(256)
def key_of(function: PrimFunc) -> str:
    """What equal programs share, whatever their variables, blocks and functions are called."""
    return f"{structural_hash(function.without_attr('global_symbol')):016x}"


@functools.lru_cache(256)
def sizes_of(function: PrimFunc) -> tuple[int, ...]:
    """The shapes of parameters and the extents of loops and axes, in the order of the program; 0 where not known."""
    sizes: list[int] = []
    for param in function.params:
        buffer = function.buffer_map.get(param)
        if buffer is not None:
            sizes += [_number(extent) for extent in buffer.shape]

    def look(node: Node) -> bool:
        if isinstance(node, For):
            sizes.append(_number(node.extent))
        elif isinstance(node, Block):
            sizes.extend([_number(axis.dom.extent) for axis in node.iter_vars if axis.dom is not None])
        return not isinstance(node, Expr)

    pre_order_visit(function.body, look)
    return tuple(sizes)


@functools.lru_cache(256)
def work_of(function: PrimFunc) -> float:
    """Iterations of all blocks: what is known of the time before anything is measured."""
    blocks = [realize.block for realize in collect(function.body, BlockRealize)]
    axes = [[_number(axis.dom.extent) for axis in block.iter_vars if axis.dom is not None] for block in blocks]
    return float(sum([prod(extents) for extents in axes if extents]))


@functools.lru_cache(256)
def family_of(function: PrimFunc) -> str:
    """What programs share that differ in sizes alone: their statements, operators, types and ranks."""
    parts: list[str] = []

    def look(node: Node) -> bool:
        if isinstance(node, Buffer):
            return False
        if isinstance(node, IntImm):
            return False
        parts.append(type(node).__name__)
        dtype = getattr(node, "dtype", None)
        if dtype is not None and isinstance(node, Expr):
            parts.append(str(dtype))
        return True

    pre_order_visit(function.body, look)
    for param in function.params:
        buffer = function.buffer_map.get(param)
        parts.append(f"{buffer.dtype}{len(buffer.shape)}" if buffer is not None else str(param.dtype))
    return f"{_digest(' '.join(parts)):016x}"


def apart(first: Sequence[int], second: Sequence[int]) -> float:
    """How far two lists of sizes are from each other: factors of two, on average of each; inf where they differ."""
    if len(first) != len(second):
        return float("inf")
    total = sum([abs(log2(max(one, 1)) - log2(max(other, 1))) for one, other in zip(first, second, strict=True)])
    return total / max(1, len(first))


def _number(size: Expr) -> int:
    return size.value if isinstance(size, IntImm) else 0


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
