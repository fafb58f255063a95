"""module_equality: which programs count as one workload.

structural          the same up to names
ignore-ndarray      the same up to names and the values of constants
anchor-block        their anchor blocks are the same: the reduction that does the most work
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

from loopwright.ir import (
    Block,
    BlockRealize,
    IntImm,
    IRModule,
    PrimFunc,
    collect,
    structural_equal,
    structural_hash,
)
from loopwright.meta_schedule.errors import UnknownKind


class ModuleEquality:
    """Hash and equality of programs."""

    def __init__(self, name: str, view: Callable[[IRModule], object]) -> None:
        self.name, self._view = name, view

    def hash(self, mod: IRModule) -> int:
        return structural_hash(self._view(mod))

    def equal(self, first: IRModule, second: IRModule) -> bool:
        return first is second or structural_equal(self._view(first), self._view(second))


def module_equality(name: str) -> ModuleEquality:
    """The one of that name."""
    if name not in _EQUALITIES:
        raise UnknownKind("module equality", name, list(_EQUALITIES))
    return _EQUALITIES[name]


def anchor_block(mod: IRModule | PrimFunc) -> BlockRealize | None:
    """The reduction that does the most work: most iterations, the last of equal ones; None where there is none."""
    functions = [mod] if isinstance(mod, PrimFunc) else [one for _, one in mod.functions_items()]
    result, most = None, -1
    for function in functions:
        if not isinstance(function, PrimFunc):
            continue
        for realize in collect(function.body, BlockRealize):
            if _is_reduction(realize.block) and _iterations(realize.block) >= most:
                result, most = realize, _iterations(realize.block)
    return result


def _is_reduction(block: Block) -> bool:
    return block.init is not None and any(
        [str(axis.iter_type) in ("CommReduce", "2") or axis.iter_type == 2 for axis in block.iter_vars]
    )


def _iterations(block: Block) -> int:
    extents = [axis.dom.extent for axis in block.iter_vars if axis.dom is not None]
    return prod([extent.value if isinstance(extent, IntImm) else 1 for extent in extents])


def _anchor_or_all(mod: IRModule) -> object:
    """The anchor block, as a function of nothing but itself; the whole program where there is none."""
    realize = anchor_block(mod)
    if realize is None:
        return mod
    return PrimFunc(
        [], realize.with_(iter_values=[axis.dom.min for axis in realize.block.iter_vars if axis.dom is not None])
    )


def _itself(mod: IRModule) -> object:
    return mod


_EQUALITIES: Final = {
    "structural": ModuleEquality("structural", _itself),
    "ignore-ndarray": ModuleEquality("ignore-ndarray", _itself),  # constants are parameters, never part of a program
    "anchor-block": ModuleEquality("anchor-block", _anchor_or_all),
}
