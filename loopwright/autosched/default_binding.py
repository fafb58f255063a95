"""default_binding: loops that nobody bound become blocks and threads, so that every program runs on a GPU.

    for i, j in T.grid(100, 70):         →    for b in T.thread_binding(28, thread="blockIdx.x"):
        with T.block("B"):                        for t in T.thread_binding(256, thread="threadIdx.x"):
            …                                         with T.block("B"): …   # where b * 256 + t < 7000

Of a nest, the outer loops along which iterations are independent are fused, split by 256 and bound; each step is proved
as any other. A nest without such loops runs in one thread. Nests in which a loop is bound stay as they are.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.thread_axes import has_threads, uses
from loopwright.ir import (
    Block,
    BlockRealize,
    For,
    ForKind,
    GlobalVar,
    IRModule,
    IterType,
    IterVar,
    PrimFunc,
    Stmt,
    Var,
    collect_statements,
    const,
)
from loopwright.schedule import BlockRV, LoopRV, Schedule, ScheduleError

THREADS: Final = 256  # a block: enough to hide latency, few enough that a multiprocessor holds several blocks


def bind_unbound_loops(module: IRModule) -> IRModule:
    """The module with every nest of loops bound to blocks and threads; a function without blocks runs in one thread."""
    plain: dict[str | GlobalVar, PrimFunc] = {
        module.get_global_var(name): function.with_(body=_in_one_thread(function.body))
        for name, function in module.functions_items()
        if not _has_nests(function) and not has_threads(function.body)
    }
    if plain:
        module = module.copy()
        module.update(plain)
    sch: Schedule | None = None
    for name, function in module.functions_items():
        if _has_nests(function):
            sch = Schedule(module) if sch is None else sch
            sch.work_on(name)
            sch = _bind_function(sch)
    return module if sch is None else sch.mod


def _has_nests(function: PrimFunc) -> bool:
    """Whether the function is a root block with others inside: loops that schedules reach."""
    body = function.body
    return (
        isinstance(body, BlockRealize) and not body.block.iter_vars and len(collect_statements(body, BlockRealize)) > 1
    )


def _in_one_thread(body: Stmt) -> Stmt:
    var = Var("tx", "int32")
    axis = IterVar(None, var, IterType.ThreadIndex, "threadIdx.x")
    return For(var, const(0), const(1), ForKind.THREAD_BINDING, body, thread_binding=axis)


def _bind_function(sch: Schedule) -> Schedule:
    for block in sch.get_child_blocks(sch.get_block("root")):
        loops = sch.get_loops(block)
        outermost: Block | For = sch.get(loops[0]) if loops else sch.get(block)
        if isinstance(outermost, Block) or not has_threads(outermost):
            sch = _bind_nest(sch, block, loops)
    return sch


def _bind_nest(sch: Schedule, block: BlockRV, loops: list[LoopRV]) -> Schedule:
    """The schedule with as many outer loops of the nest bound as is proved to be right."""
    for count in range(_independent(sch, loops), 0, -1):
        trial = sch.copy()
        try:
            whole = trial.fuse(*loops[:count]) if count > 1 else loops[0]
            outer, inner = trial.split(whole, [None, THREADS])
            trial.bind(outer, "blockIdx.x")
            trial.bind(inner, "threadIdx.x")
        except ScheduleError:
            continue
        return trial
    sch.bind(sch.add_unit_loop(loops[0] if loops else block), "threadIdx.x")
    return sch


def _independent(sch: Schedule, loops: list[LoopRV]) -> int:
    """How many outer loops stand right inside each other, none of them that of a reduction."""
    nodes = [sch.get(loop) for loop in loops]
    if not nodes:
        return 0
    reduced = {
        value
        for realize in collect_statements(nodes[0], BlockRealize)
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type is IterType.CommReduce
    }
    count = 0
    while count < len(nodes):
        node = nodes[count]
        if node.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or any(
            [uses(value, {node.loop_var}) for value in reduced]
        ):
            return count
        count += 1
        if count < len(nodes) and node.body is not nodes[count]:
            return count
    return count
