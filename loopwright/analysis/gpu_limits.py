"""gpu_limits: whether the kernels of a function stay within the limits of a GPU.

A kernel is an outermost nest of bound loops or launched threads. What it needs is read off the text: its threads are
the product of the extents of its `threadIdx` axes, its memory the allocations inside it, by scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from loopwright.analysis.thread_axes import axis_of, scope_of, tag_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BufferLoad,
    BufferStore,
    Cast,
    Expr,
    For,
    ForKind,
    IntImm,
    PrimFunc,
    Ramp,
    Stmt,
    Visitor,
    collect,
    deep,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError

_PER_AXIS: Final = {"max_thread_x": "threadIdx.x", "max_thread_y": "threadIdx.y", "max_thread_z": "threadIdx.z"}
_KNOWN: Final = {
    "max_local_memory_per_block",
    "max_shared_memory_per_block",
    "max_threads_per_block",
    "max_vthread",
    "max_vector_bytes",
    "max_kernels",
    *_PER_AXIS,
}


class UnknownLimit(LoopwrightError, ValueError):
    """`verify_gpu_code` was given a limit of a name that it does not know.

    For example:

        from loopwright import tir

        tir.analysis.verify_gpu_code(tir.PrimFunc([], tir.Evaluate(0)), {"max_thread": 1024})
    """

    code = "LW0859"

    def __init__(self, name: str) -> None:
        super().__init__(f"verify_gpu_code: no limit is called {name!r}", why=f"the limits are {sorted(_KNOWN)}")


class _Needs(Visitor):
    """The greatest that any kernel needs, by the name of its limit."""

    def __init__(self) -> None:
        self.most: dict[str, float] = {}
        self.axes: dict[str, float] = {}  # of the kernel around, by tag
        self.memory: dict[str, float] = {}
        self.depth = 0

    def _raise(self, name: str, value: float) -> None:
        self.most[name] = max(self.most.get(name, 0), value)

    def _thread(self, node: For | AttrStmt) -> None:
        tag = tag_of(node)
        if not tag:
            self.visit_children(node)
            return
        extent = axis_of(node).extent
        if self.depth == 0:
            self.axes, self.memory = {}, {}
            self.most["max_kernels"] = self.most.get("max_kernels", 0) + 1
        count = float(extent.value) if isinstance(extent, IntImm) else float("inf")
        self.axes[tag] = max(self.axes.get(tag, 0), count)
        self.depth += 1
        self.visit(node.body)
        self.depth -= 1
        if self.depth == 0:
            self._kernel_ends()

    visit_AttrStmt = _thread

    def _kernel_ends(self) -> None:
        threads = virtual = 1.0
        for tag, count in self.axes.items():
            if tag.startswith("threadIdx"):
                threads *= count
            elif not tag.startswith("blockIdx"):
                virtual *= count
        self._raise("max_threads_per_block", threads)
        self._raise("max_vthread", virtual)
        for name, tag in _PER_AXIS.items():
            self._raise(name, self.axes.get(tag, 1))
        self._raise("max_shared_memory_per_block", self.memory.get("shared", 0))
        self._raise("max_local_memory_per_block", self.memory.get("local", 0))

    def visit_For(self, loop: For) -> None:
        if loop.kind is ForKind.VECTORIZED and isinstance(loop.extent, IntImm):
            for access in collect(loop.body, BufferLoad, BufferStore):
                self._raise("max_vector_bytes", access.buffer.dtype.nbytes * loop.extent.value)
        self._thread(loop)

    def _allocated(self, scope: str, dtype: DataType, extents: tuple[Expr, ...]) -> None:
        size = float(dtype.nbytes)
        for extent in extents:
            size *= extent.value if isinstance(extent, IntImm) else float("inf")
        name = scope.split(".")[0]
        self.memory[name] = self.memory.get(name, 0) + size

    def visit_Allocate(self, node: Allocate) -> None:
        self._allocated(scope_of(node.buffer_var), node.dtype, node.extents)
        self.visit_children(node)

    def visit_Block(self, block: Block) -> None:
        for buffer in block.alloc_buffers:
            self._allocated(buffer.scope(), buffer.dtype, buffer.shape)
        self.visit_children(block)

    def _vector(self, expr: Ramp | Cast | BufferLoad) -> None:
        if expr.dtype.lanes > 1:
            self._raise("max_vector_bytes", expr.dtype.nbytes)
        self.visit_children(expr)

    visit_Ramp = visit_Cast = visit_BufferLoad = _vector

    def visit_BufferStore(self, store: BufferStore) -> None:
        if store.value.dtype.lanes > 1:
            self._raise("max_vector_bytes", store.value.dtype.nbytes)
        self.visit_children(store)


@deep
def verify_gpu_code(func: PrimFunc | Stmt, constraints: Mapping[str, Any]) -> bool:
    """Whether every kernel of the function stays within the limits, by their names (`max_threads_per_block` …)."""
    for name in constraints:
        if name not in _KNOWN:
            raise UnknownLimit(name)
    needs = _Needs()
    needs.visit(func.body if isinstance(func, PrimFunc) else func)
    return all([needs.most.get(name, 0) <= int(limit) for name, limit in constraints.items()])
