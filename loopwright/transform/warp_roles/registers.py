"""Registers: warpgroups with tensor cores get registers that the others give up (`setmaxnreg`).

All threads of a block start with the same number of them. Before they begin their loops, warpgroups that load tiles
keep few, and those that multiply get the rest, as many as an annotation of the loop of roles asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from loopwright.analysis.warp_roles import GROUP, RoleThreads, registers_of
from loopwright.ir import Evaluate, For, Stmt
from loopwright.ir.warpgroup_intrinsics import set_max_registers
from loopwright.transform.warp_roles.errors import CannotSpecialize

_REGISTERS: Final = 1 << 16  # of a multiprocessor
_LEAST: Final = 24  # of a thread


class MovedRegisters(NamedTuple):
    """What warpgroups do first."""

    threads: int  # that multiply
    more: Stmt
    fewer: Stmt


def moved_registers(loop: For, roles: Mapping[str, RoleThreads], block_size: int) -> MovedRegisters:
    """What gives the registers to tensor cores that the loop of roles asks for."""
    wanted = registers_of(loop)
    assert wanted is not None
    multiply = sum([mine.size for mine in roles.values() if mine.in_groups])
    if multiply % GROUP or multiply in (0, block_size):
        problem = f"of {block_size} threads, {multiply} of roles with tensor cores are to get registers of the others"
        hint = "give tensor cores to whole warpgroups, and others a role as well"
        raise CannotSpecialize(problem, loop, hint)
    given, others = _REGISTERS // block_size // 8 * 8, block_size - multiply
    left = min(given, (given * block_size - wanted * multiply) // others // 8 * 8)
    if left < _LEAST or wanted < given:
        most = (given * block_size - _LEAST * others) // multiply // 8 * 8
        problem = f"{multiply} of {block_size} threads cannot have {wanted} registers"
        raise CannotSpecialize(problem, loop, f"ask for {given} to {most}")
    more, fewer = (Evaluate(set_max_registers(n, how)) for n, how in ((wanted, "inc"), (left, "dec")))
    return MovedRegisters(multiply, more, fewer)
