"""Witnesses in words: which iteration, which cell, whose doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loopwright.ir import Buffer, Var

if TYPE_CHECKING:
    from loopwright.analysis.accesses import Access
    from loopwright.analysis.instances import Loop
    from loopwright.analysis.polyhedral import Polyhedra


def values_of(point: Mapping[str, int], names: Mapping[Var, str], polyhedra: Polyhedra) -> dict[Var, int]:
    """The values of the parameters and of the variables called `names` at a point of isl."""
    values = {var: point[name] for var, name in polyhedra.parameters.items()}
    return values | {var: point[name] for var, name in names.items()}


def actor(access: Access) -> str:
    """`block "C"`, or `the statement` outside all named blocks."""
    block = access.instance.block
    return f'block "{block.name_hint}"' if block is not None and block.name_hint else "the statement"


def deed(access: Access) -> str:
    """`reads`, or `writes`."""
    return "writes" if access.writes else "reads"


def element(buffer: Buffer, indices: Sequence[int | None]) -> str:
    """`A[7, 3]`; an index that depends on data shows as `…`."""
    return f"{buffer.name}[{', '.join(['…' if index is None else str(index) for index in indices]) or '()'}]"


def tuple_text(values: Sequence[int | None]) -> str:
    """`(4, 8)`."""
    texts = ["…" if value is None else str(value) for value in values]
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def assignment(values: Mapping[Var, int], loops: Sequence[Loop]) -> str:
    """`n = 1, i = 0`: the parameters, then the loops, outermost first."""
    own = {loop.var for loop in loops}
    parameters = sorted([(var.name, value) for var, value in values.items() if var not in own])
    running = [loop for loop in loops if loop.product is None]
    chosen = parameters + [(loop.var.name, values[loop.var]) for loop in running if loop.var in values]
    return ", ".join([f"{name} = {value}" for name, value in chosen])


def at_iteration(values: Mapping[Var, int], loops: Sequence[Loop]) -> str:
    """` at n = 1, i = 0`, or nothing outside all loops."""
    where = assignment(values, loops)
    return f" at {where}" if where else ""


def named_values(values: Mapping[Var, int], loops: Sequence[Loop]) -> dict[str, int]:
    """The same for programs; of loops with one name the innermost counts."""
    own = {loop.var for loop in loops}
    result = {var.name: value for var, value in values.items() if var not in own}
    running = [loop for loop in loops if loop.product is None]
    return result | {loop.var.name: values[loop.var] for loop in running if loop.var in values}
