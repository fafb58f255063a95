"""default_binding: loops that nobody bound become blocks and threads, so that every program runs on a GPU.

    for i, j in T.grid(100, 70):         →    for b in T.thread_binding(28, thread="blockIdx.x"):
        with T.block("B"):                        for t in T.thread_binding(256, thread="threadIdx.x"):
            …                                         with T.block("B"): …   # where b * 256 + t < 7000

Of a nest, the outer loops along which iterations are independent are fused, split by 256 and bound; each step is proved
as any other (`gpu/rules/default.py`). A nest without such loops runs in one thread. Nests in which a loop is bound stay
as they are.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import has_threads
from loopwright.autosched.decision import Decision
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.default import DEFAULT_RULES
from loopwright.autosched.program import Program
from loopwright.autosched.rule import schedule_all
from loopwright.ir import (
    BlockRealize,
    For,
    ForKind,
    GlobalVar,
    IRModule,
    IterType,
    IterVar,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    collect_statements,
    const,
)
from loopwright.ir.deep import deep
from loopwright.schedule import Schedule
from loopwright.target import Target


@deep
def bind_unbound_loops(module: IRModule, target: Target | str = "cuda -model=emulated") -> IRModule:
    """The module with every nest of loops bound to blocks and threads; a function without blocks runs in one thread."""
    plain: dict[str | GlobalVar, PrimFunc] = {
        module.get_global_var(name): function.with_(body=_in_one_thread(function.body))
        for name, function in module.functions_items()
        if not _has_nests(function) and not has_threads(function.body)
    }
    if plain:
        module = module.copy()
        module.update(plain)
    names = [name for name, function in module.functions_items() if _has_nests(function) and not _are_bound(function)]
    if not names:
        return module
    sch, machine = Schedule(module), GpuMachine.of(target)
    decisions: list[Decision] = []
    for name in names:
        sch.work_on(name)
        schedule_all(DEFAULT_RULES, sch, Program(sch, name), machine, decisions)
    return sch.mod


def _has_nests(function: PrimFunc) -> bool:
    """Whether the function is a root block with others inside: loops that schedules reach."""
    body = function.body
    return (
        isinstance(body, BlockRealize) and not body.block.iter_vars and len(collect_statements(body, BlockRealize)) > 1
    )


def _are_bound(function: PrimFunc) -> bool:
    """Whether every nest has threads: there is nothing to do then, and nothing to prove."""
    body = function.body
    assert isinstance(body, BlockRealize)
    inside = body.block.body
    return all(has_threads(part) for part in (inside.seq if isinstance(inside, SeqStmt) else (inside,)))


def _in_one_thread(body: Stmt) -> Stmt:
    var = Var("tx", "int32")
    axis = IterVar(None, var, IterType.ThreadIndex, "threadIdx.x")
    return For(var, const(0), const(1), ForKind.THREAD_BINDING, body, thread_binding=axis)
