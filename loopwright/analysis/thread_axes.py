"""Thread axes: who runs a bound loop, whose memory a scope is, and what is a barrier.

Threads come in blocks. A loop bound to `blockIdx.*` runs its iterations as blocks, one bound to `threadIdx.*` as the
threads of a block, `vthread` as virtual threads, which are threads of a block as well. Memory is one for all (global),
one a block (shared), one for the threads along x (warp, and the fragments of matrices that the lanes of a warp hold
together: wmma, m16n8k8), or one a thread (local and every other scope). What the threads of a block do together,
`thread_work.py` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from loopwright.ir import (
    AttrStmt,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IterVar,
    Node,
    PointerType,
    Stmt,
    StringImm,
    Var,
    any_node,
    any_statement,
    uses_var,
)
from loopwright.ir.annotations import TENSORIZED
from loopwright.ir.machine_intrinsics import tvm_storage_sync
from loopwright.ir.matrix_intrinsics import MATRIX_OPERANDS

LAUNCHES = ("thread_extent", "virtual_thread")
_BARRIER = "tir.tvm_storage_sync"
_ALLREDUCE = "tir.tvm_thread_allreduce"
_SHUFFLE = "tir.tvm_warp_shuffle"
_OF_WARPS = ("warp", "wmma", "m16n8k8")


class Axis(NamedTuple):
    """A running thread axis: its tag, the variable that tells the threads apart, and what launched it."""

    tag: str
    var: Var
    node: For | AttrStmt

    @property
    def is_launched(self) -> bool:
        """By an attribute rather than a loop."""
        return isinstance(self.node, AttrStmt)

    @property
    def extent(self) -> Expr:
        return self.node.value if isinstance(self.node, AttrStmt) else self.node.extent


def tag_of(node: Stmt) -> str:
    """The thread axis that a loop is bound to, or that an attribute launches; "" for every other statement."""
    if isinstance(node, For):
        return node.thread_binding.thread_tag if node.thread_binding is not None else ""
    if isinstance(node, AttrStmt) and node.attr_key in LAUNCHES and isinstance(node.node, IterVar):
        return node.node.thread_tag or "vthread"
    return ""


def takes_turns(node: Node) -> bool:
    """Whether a loop runs threads one after the other, as `thread_regions.py` writes a reduction over them."""
    return isinstance(node, For) and node.kind is ForKind.SERIAL and node.thread_binding is not None


def axis_of(node: For | AttrStmt) -> Axis:
    """The axis that a bound loop or a launch runs."""
    if isinstance(node, For):
        return Axis(tag_of(node), node.loop_var, node)
    assert isinstance(node.node, IterVar)
    return Axis(tag_of(node), node.node.var, node)


def is_block_tag(tag: str) -> bool:
    """Whether the iterations are blocks of threads."""
    return tag.startswith("blockIdx")


def is_thread_tag(tag: str) -> bool:
    """Whether the iterations are threads of a block, virtual ones included."""
    return tag.startswith("threadIdx") or is_virtual_tag(tag)


def is_virtual_tag(tag: str) -> bool:
    """Whether the iterations are virtual threads: each such loop is an axis of its own, whatever its tag."""
    return tag.startswith(("vthread", "cthread"))


# --- memory -------------------------------------------------------------------------------------------------------


def scope_of(data: Var) -> str:
    """The kind of memory behind a pointer: "global", "shared", "local", …"""
    annotation = data.type_annotation
    return (annotation.storage_scope if isinstance(annotation, PointerType) else "") or "global"


def is_per(scope: str, tag: str) -> bool:
    """Whether memory of `scope` is one for each index of the axis `tag`."""
    kind = scope.split(".")[0]
    if kind in ("global", "texture") or is_virtual_tag(tag):
        return False
    if is_block_tag(tag):
        return True
    return kind != "shared" and not (kind in _OF_WARPS and tag == "threadIdx.x")


def is_shared_along(scope: str, tag: str) -> bool:
    """Whether the threads along the axis `tag` share memory of `scope`, also when it is allocated under their loop."""
    kind = scope.split(".")[0]
    return tag.startswith("threadIdx") and (kind == "shared" or (kind in _OF_WARPS and tag == "threadIdx.x"))


def is_of_block(scope: str) -> bool:
    """Whether the threads of a block share memory of `scope`, and other blocks do not see it."""
    return scope.split(".")[0] == "shared"


def is_of_warp(scope: str) -> bool:
    """Whether the lanes of a warp hold memory of `scope` together."""
    return scope.split(".")[0] in _OF_WARPS


# --- statements ---------------------------------------------------------------------------------------------------


def barrier() -> Stmt:
    """A barrier of the threads of a block."""
    return Evaluate(tvm_storage_sync(StringImm("shared")))


def is_barrier(statement: Stmt) -> bool:
    """Whether the statement is a barrier of the threads of a block."""
    return isinstance(statement, Evaluate) and _calls(statement.value, _BARRIER)


def is_allreduce(statement: Stmt) -> bool:
    """Whether the statement reduces a value over threads."""
    return isinstance(statement, Evaluate) and _calls(statement.value, _ALLREDUCE)


def is_shuffle_call(node: Node) -> bool:
    """Whether it is the value of another lane of the warp."""
    return isinstance(node, Call) and node.op.name.startswith(_SHUFFLE)


def is_shuffle(statement: Stmt) -> bool:
    """Whether the statement stores what the lanes of a warp exchange."""
    return isinstance(statement, BufferStore) and any_node(statement.value, is_shuffle_call)


def is_warp_call(statement: Node) -> bool:
    """Whether the statement is an instruction of all 32 lanes of a warp, on matrices, or loops that will be one."""
    if isinstance(statement, AttrStmt) and statement.attr_key == TENSORIZED:
        return True
    value = statement.value if isinstance(statement, Evaluate) else None
    return isinstance(value, Call) and value.op.name in MATRIX_OPERANDS


def has_warp_call(statement: Stmt) -> bool:
    """Whether such an instruction is among the statements."""
    return any_statement(statement, is_warp_call)


def _calls(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and expr.op.name == name


def same_axis(loop: Stmt, axes: Sequence[Axis]) -> Axis | None:
    """The running axis that a loop is bound to once more."""
    tag = tag_of(loop)
    if not isinstance(loop, For) or not tag.startswith("threadIdx"):
        return None
    return next((axis for axis in axes if axis.tag == tag), None)


def uses(node: Node, variables: set[Var]) -> bool:
    """Whether one of the variables is used."""
    return uses_var(node, variables.__contains__)


def is_thread_loop(node: Node) -> bool:
    """Whether it runs blocks or threads."""
    return isinstance(node, Stmt) and (
        (isinstance(node, For) and node.kind is ForKind.THREAD_BINDING) or bool(tag_of(node))
    )


@lru_cache(maxsize=64)  # a version of a function that is scheduled is looked at in several ways
def has_threads(root: Stmt) -> bool:
    """Whether loops are bound to threads, or threads launched."""
    return any_statement(root, is_thread_loop)
