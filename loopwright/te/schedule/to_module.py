"""A te schedule as a module: the program after every step, with loops named as the user's axes.

The engine names loops by what it did (`i_0`, `ax1`); here each gets the name of the axis it stands for, as far as the
script can write it: `i.outer` is `i_outer`. Names are all that changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.ir import Buffer, Expr, For, IRModule, PrimFunc, Rewriter, Stmt, Var, deep
from loopwright.te.function_in_making import identifier
from loopwright.te.schedule.replay import Replayed, replay
from loopwright.te.schedule.schedule import Schedule
from loopwright.te.tensor import Tensor


def schedule_to_module(
    sch: Schedule,
    args: Sequence[object] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
) -> IRModule:
    """The program of a te schedule, before any pass."""
    function = named_function(replay(sch, args, binds))
    return sch.finish(IRModule({name: function.with_attr("global_symbol", name)}))


def named_function(done: Replayed) -> PrimFunc:
    """The function after all steps, its loops called what their axes are called."""
    names = {
        loop.var: identifier(axis.var.name)
        for nests in done.nests.values()
        for nest in nests
        for axis, loop in nest.loops.items()
    }
    function = next(iter(done.schedule.views().values())).function
    return function.with_(body=_rename(function.body, names))


@deep
def _rename(body: Stmt, names: Mapping[Var, str]) -> Stmt:
    renamed: Stmt = _Rename(names).visit(body)
    return renamed


class _Rename(Rewriter):
    def __init__(self, names: Mapping[Var, str]) -> None:
        self.names = names
        self.variables: dict[Var, Var] = {}

    def visit_For(self, loop: For) -> Stmt:
        name = self.names.get(loop.loop_var)
        if name is not None and name != loop.loop_var.name:
            self.variables[loop.loop_var] = Var(name, loop.loop_var.dtype)
        new = self.rebuild(loop)
        result: Stmt = new.with_(loop_var=self.variables.get(loop.loop_var, loop.loop_var))
        return result

    def visit_Var(self, var: Var) -> Expr:
        return self.variables.get(var, var)
