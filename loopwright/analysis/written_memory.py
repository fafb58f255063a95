"""Written memory: the pointers that a function stores through, or may store through by way of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from loopwright import ir
from loopwright.analysis.effects import WRITE, EffectsWalk

_NONE: Final[Mapping[str, ir.PrimFunc]] = {}


@ir.deep
def written_pointers(
    function: ir.PrimFunc, functions: Mapping[str, ir.PrimFunc] = _NONE, by_others: bool = True
) -> set[ir.Var]:
    """The memory that the function stores to, or may store to through a call; a window of it counts as all of it.

    A call of one of `functions` writes what that function may write; any other call, all that it has a pointer to, or
    nothing unless `by_others`.
    """
    result: dict[ir.PrimFunc, set[ir.Var]] = {}
    while True:  # functions that call each other tell more in a second round
        before = sum(map(len, result.values()))
        written = _written(function, functions, result, set(), by_others)
        if not functions or sum(map(len, result.values())) == before:
            return written


def _written(
    function: ir.PrimFunc,
    functions: Mapping[str, ir.PrimFunc],
    result: dict[ir.PrimFunc, set[ir.Var]],
    seen: set[ir.PrimFunc],
    by_others: bool,
) -> set[ir.Var]:
    written = result.setdefault(function, set())
    if function in seen:
        return written
    seen.add(function)
    walk = _Written(functions, lambda called: _written(called, functions, result, seen, by_others), by_others)
    walk.visit(function.body)
    done = walk.found
    written.update(done.stored, [store.buffer.data for store in done.stores])
    written.update([pointer for pointer, mask in done.pointers.items() if mask & WRITE])
    return written


class _Written(EffectsWalk):
    """What blocks declare is not asked: in the compiled program there are none."""

    def __init__(
        self,
        functions: Mapping[str, ir.PrimFunc],
        written_by: Callable[[ir.PrimFunc], set[ir.Var]],
        by_others: bool,
    ) -> None:
        super().__init__()
        self.functions, self.written_by, self.by_others = functions, written_by, by_others
        self.is_counted = False  # whether memory that is pointed to here may be written: the pointer goes to a call

    def visit_arguments(self, call: ir.Call) -> None:
        called = self.functions.get(call.op.name) if isinstance(call.op, ir.GlobalVar) else None
        outer, self.is_counted = self.is_counted, self.by_others
        if called is None:
            super().visit_arguments(call)
        else:
            inside = self.written_by(called)
            buffers = called.buffer_map
            memory = [buffers[param].data if param in buffers else param for param in called.params]
            for position, argument in enumerate(call.args):
                self.is_counted = position < len(memory) and memory[position] in inside
                self.visit(argument)
        self.is_counted = outer

    def point(self, data: ir.Var, mask: int | None = None) -> None:
        if self.is_counted:
            self.declared = {}
            super().point(data)
        elif self.sources is not None:
            self.sources.update(dict.fromkeys(self.roots(data)))


def written_arguments(function: ir.PrimFunc, functions: Mapping[str, ir.PrimFunc] = _NONE) -> list[int]:
    """The positions of the arguments that the function writes, by way of `functions` too."""
    written = written_pointers(function, functions)
    return [
        position
        for position, param in enumerate(function.params)
        if param in function.buffer_map and function.buffer_map[param].data in written
    ]
