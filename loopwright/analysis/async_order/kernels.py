"""Kernels that synchronise by other means than barriers of the block: what is launched, and what the host gives it."""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.analysis.thread_axes import axis_of, is_block_tag, is_virtual_tag, tag_of
from loopwright.ir import (
    AssertStmt,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    LetStmt,
    Node,
    PrimFunc,
    Stmt,
    Var,
    pre_order_visit,
)
from loopwright.ir.async_intrinsics import ASYNC_INTRINSICS
from loopwright.ir.tensor_copy_intrinsics import (
    TENSOR_COPY_INTRINSICS,
    TensorMapFields,
    is_tensor_map,
    tensor_map_fields,
)
from loopwright.ir.warpgroup_intrinsics import WARPGROUP_INTRINSICS

GROUP_COPIES: Final = frozenset({"tir.ptx_cp_async", "tir.ptx_commit_group", "tir.ptx_wait_group"})
COPIES: Final = frozenset({"tir.bulk_copy_async", "tir.tensor_copy_async"})  # that an mbarrier waits for
_OF_WARPGROUPS: Final = WARPGROUP_INTRINSICS - {"tir.compute_now"}  # which waits for nobody
ASYNCHRONOUS: Final = ASYNC_INTRINSICS | TENSOR_COPY_INTRINSICS | _OF_WARPGROUPS | GROUP_COPIES
SYNCHRONISES: Final = ASYNCHRONOUS | {"tir.tvm_storage_sync"}
# Where the address of an mbarrier stands among the arguments.
BARRIER_ARGUMENTS: Final = {
    "tir.mbarrier_init": 0,
    "tir.mbarrier_arrive": 0,
    "tir.mbarrier_wait": 0,
    "tir.bulk_copy_async": 3,
    "tir.tensor_copy_async": 2,
}


class AsyncKernel(NamedTuple):
    """A kernel that has asynchronous operations, or mbarriers."""

    axes: tuple[AttrStmt, ...]
    body: Stmt
    lets: tuple[LetStmt, ...]  # around the launch
    conditions: tuple[Expr, ...]  # that the host has asserted
    maps: dict[Var, TensorMapFields]


def async_kernels(func: PrimFunc) -> list[AsyncKernel]:
    """The kernels of a function to which `async_order` speaks."""
    result: list[AsyncKernel] = []

    def visit(statement: Stmt, lets: tuple[LetStmt, ...], conditions: tuple[Expr, ...]) -> None:
        tag = tag_of(statement)
        if isinstance(statement, AttrStmt) and tag and not is_virtual_tag(tag):
            axes: list[AttrStmt] = []
            body: Stmt = statement
            while isinstance(body, (AttrStmt, DeclBuffer, LetStmt)):
                if isinstance(body, AttrStmt) and tag_of(body):
                    axes.append(body)
                elif not (isinstance(body, AttrStmt) or _launches_below(body)):
                    break
                elif isinstance(body, LetStmt):
                    lets = (*lets, body)
                body = body.body
            if asynchronous_calls(body):
                maps = {
                    let.var: tensor_map_fields(let.value)
                    for let in lets
                    if isinstance(let.value, Call) and is_tensor_map(let.value)
                }
                result.append(AsyncKernel(tuple(axes), body, lets, conditions, maps))
            return
        if isinstance(statement, LetStmt):
            lets = (*lets, statement)
        elif isinstance(statement, AssertStmt):
            conditions = (*conditions, statement.condition)
        for child in statement.children():
            if isinstance(child, Stmt):
                visit(child, lets, conditions)

    visit(func.body, (), ())
    return result


def _launches_below(statement: Stmt) -> bool:
    below: Node = statement
    while isinstance(below, (DeclBuffer, LetStmt, AttrStmt)):
        if isinstance(below, AttrStmt) and tag_of(below):
            return True
        below = below.body
    return False


def asynchronous_calls(body: Stmt) -> list[Call]:
    """The calls in a kernel for which it is looked at."""
    result: list[Call] = []

    def look(node: Node) -> bool:
        if isinstance(node, Call) and node.op.name in ASYNCHRONOUS:
            result.append(node)
        return True

    pre_order_visit(body, look)
    return result


def is_asynchronous(func: PrimFunc) -> bool:
    """Whether a function has calls for which its kernels are looked at."""
    return bool(asynchronous_calls(func.body))


def block_axes(kernel: AsyncKernel) -> list[AttrStmt]:
    """The launches over blocks."""
    return [axis for axis in kernel.axes if is_block_tag(tag_of(axis))]


def thread_axes(kernel: AsyncKernel) -> list[AttrStmt]:
    """The launches over threads; those along x count fastest."""
    axes = [axis for axis in kernel.axes if tag_of(axis).startswith("threadIdx")]
    return sorted(axes, key=lambda axis: tag_of(axis))


def variable_of(axis: AttrStmt) -> Var:
    """What counts the threads or blocks of a launch."""
    return axis_of(axis).var


class Memory(NamedTuple):
    """The memory of a kernel that is looked at."""

    shared: frozenset[Var]
    registers: frozenset[Var]  # accumulators, and A of `wgmma` in registers
    barriers: frozenset[Var]
    buffers: dict[Var, Buffer]  # the largest one that each is seen as
    unit_bytes: dict[Var, int]


def memory_of(body: Stmt) -> Memory:
    """The shared memory of a kernel, its mbarriers, and the registers that `wgmma` works on."""
    shared: dict[Var, None] = {}
    registers: dict[Var, None] = {}
    barriers: dict[Var, None] = {}
    seen: dict[Var, dict[Buffer, None]] = {}

    def look(node: Node) -> bool:
        if isinstance(node, (BufferLoad, BufferStore)):
            seen.setdefault(node.buffer.data, {})[node.buffer] = None
            if node.buffer.scope().startswith("shared"):
                shared[node.buffer.data] = None
        elif isinstance(node, DeclBuffer):
            seen.setdefault(node.buffer.data, {})[node.buffer] = None
        elif isinstance(node, Call):
            position = BARRIER_ARGUMENTS.get(node.op.name)
            if position is not None:
                load = addressed_load(node.args[position])
                if load is not None:
                    barriers[load.buffer.data] = None
            if node.op.name == "tir.wgmma":
                for argument in (node.args[0], node.args[3]):
                    load = addressed_load(argument)
                    if load is not None and load.buffer.scope() == "local":
                        registers[load.buffer.data] = None
            if node.op.name == "tir.ptx_cp_async" and isinstance(node.args[1], Var):
                shared[node.args[1]] = None
        return True

    pre_order_visit(body, look)
    buffers: dict[Var, Buffer] = {}
    unit_bytes: dict[Var, int] = {}
    for data in (*shared, *registers):
        many = list(seen.get(data, ()))
        if many:
            buffers[data] = many[0]
            unit_bytes[data] = min([buffer.dtype.nbytes for buffer in many])
    known, other = frozenset(buffers), frozenset(barriers)
    return Memory(frozenset(shared) & known - other, frozenset(registers) & known, other, buffers, unit_bytes)


def addressed_load(pointer: Expr) -> BufferLoad | None:
    """The element that a pointer is the address of."""
    load = pointer.args[0] if isinstance(pointer, Call) and pointer.op.name == "tir.address_of" else None
    return load if isinstance(load, BufferLoad) else None
