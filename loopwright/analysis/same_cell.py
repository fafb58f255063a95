"""When two accesses to one buffer touch one cell, as constraints in isl text.

A cell is an index, and the memory it is in: that of one iteration of the loops around its allocation (its home), or of
one block or thread (its owner). Each access comes with the names of its loops, as everywhere in `polyhedral.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.analysis.accesses import Access, Program
from loopwright.ir import Var

Names = Mapping[Var, str]


def same_indices(program: Program, one: Access, first: Names, other: Access, second: Names) -> list[str]:
    """The indices are equal; one that is not affine may be anything."""
    form = program.polyhedra.form
    return [
        f"{form(mine, first)} = {form(its, second)}"
        for mine, its in zip(one.cell[1], other.cell[1], strict=True)
        if mine is not None and its is not None
    ]


def same_home(program: Program, one: Access, first: Names, second: Names) -> list[str]:
    """The memory, allocated in the program, is that of one iteration of the loops around its allocation."""
    around = program.homes[one.cell[0].data]
    # An init may have left the loop with its memory; who checks scopes says so.
    return [f"{first[loop.var]} = {second[loop.var]}" for loop in around if loop.var in first and loop.var in second]


def same_owner(program: Program, one: Access, first: Names, other: Access, second: Names) -> list[str]:
    """The memory is that of one block or thread, where each has its own."""
    result = []
    for key in program.owners(one.cell[0]):
        mine, its = program.owner_index(key, one.loops), program.owner_index(key, other.loops)
        if mine is not None and its is not None:
            result.append(f"{first[mine.var]} = {second[its.var]}")
    return result
