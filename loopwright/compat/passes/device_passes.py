"""device_passes: passes for GPUs and other devices, as copied pipelines name them.

Each returns a program without work for it as it is, and refuses one with work: GPUs have a lowering of their own here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loopwright.analysis.thread_axes import scope_of, tag_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    Call,
    Evaluate,
    For,
    IterType,
    Node,
    PrimFunc,
    any_node,
    collect,
    uses_var,
)
from loopwright.ir.pass_context import PassInfo
from loopwright.ir.passes import Pass, PrimFuncPass
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.registry import get_global_func


class DeviceWorkLeft(LoopwrightError, NotImplementedError):
    """A pass met what it would have to lower, and does not.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def f():
            with T.block("copy"):
                T.block_attr({"auto_copy": 1})
                T.evaluate(0)

        tir.transform.LowerAutoCopy()(f)
    """

    code = "LW0748"

    def __init__(self, name: str, what: str, at: Node, is_built: bool = False) -> None:
        state = "does not lower this" if is_built else "is not built, and there is work for it"
        super().__init__(
            f"tir.transform.{name} {state}: {what}",
            at=at if not isinstance(at, Call) else Evaluate(at),
            hint="loopwright.build lowers by itself",
            fields={"pass": name},
        )


Test = Callable[[Node], bool]


def _annotated(*keys: str) -> Test:
    def test(node: Node) -> bool:
        if isinstance(node, AttrStmt):
            return node.attr_key in keys
        return isinstance(node, (Block, For)) and any([node.annotations.get(key) for key in keys])

    return test


def _calls(*prefixes: str) -> Test:
    return lambda node: isinstance(node, Call) and node.op.name.removeprefix("tir.").startswith(prefixes)


def _allocates(*scopes: str) -> Test:
    def test(node: Node) -> bool:
        if isinstance(node, Allocate):
            return scope_of(node.buffer_var).startswith(scopes)
        return isinstance(node, Block) and any([buffer.scope().startswith(scopes) for buffer in node.alloc_buffers])

    return test


def _is_described(node: Node) -> bool:
    """Whether memory is allocated whose scope a registered function describes."""
    if not isinstance(node, Allocate) or "." not in scope_of(node.buffer_var):
        return False
    return get_global_func(f"tvm.info.mem.{scope_of(node.buffer_var)}", allow_missing=True) is not None


def _second_dynamic(func: PrimFunc) -> Node | None:
    found = [node for node in collect(func.body, Allocate) if scope_of(node.buffer_var) == "shared.dyn"]
    return found[1] if len(found) > 1 else None


def _reduces_across_threads(func: PrimFunc) -> Node | None:
    """A block with an init, one of whose reduction axes runs over threads."""
    threads: set[Any] = set()
    found: list[Node] = []

    def look(node: Node) -> bool:
        if isinstance(node, For) and tag_of(node).startswith("threadIdx"):
            threads.add(node.loop_var)
        if isinstance(node, BlockRealize) and node.block.init is not None:
            for axis, value in zip(node.block.iter_vars, node.iter_values, strict=True):
                if axis.iter_type == IterType.CommReduce and uses_var(value, threads.__contains__):
                    found.append(node.block)
        return False

    any_node(func.body, look)
    return found[0] if found else None


# The pass: what its work is, in words, and how to tell.
_WORK: Final[dict[str, tuple[str, Test]]] = {
    "CoProcSync": ("a coprocessor scope", _annotated("coproc_scope", "coproc_uop_scope")),
    "CombineContextCall": ("a thread context", _calls("tvm_thread_context")),
    "InferFragment": ("tensor core fragments", _calls("tvm_load_matrix_sync", "tvm_mma_sync", "tvm_fill_fragment")),
    "InjectPTXAsyncCopy": ("an asynchronous copy", _annotated("async_scope", "async_commit_queue_scope")),
    "InjectPTXLDG32": ("guarded loads into registers", _annotated("ptx_ldg32")),
    "InjectPermutedLayout": ("a permuted layout", _annotated("permuted_layout")),
    "LowerAsyncDMA": ("an asynchronous copy", _annotated("async_scope", "async_wait_queue_scope")),
    "LowerAutoCopy": ("an automatic copy", _annotated("auto_copy")),
    "LowerThreadAllreduce": ("a reduction across threads", _calls("tvm_thread_allreduce")),
    "LowerVtcmAlloc": ("memory in VTCM", _allocates("global.vtcm")),
    "LowerWarpMemory": ("memory of a warp", _allocates("warp")),
    "ManifestSharedMemoryLocalStage": ("a local stage", _annotated("tir.manifest_shared_memory_local_stage")),
    "RemoveWeightLayoutRewriteBlock": (
        "a block that rewrites a weight",
        _annotated("meta_schedule.layout_rewrite_preproc"),
    ),
    "TextureFlatten": ("texture memory", _allocates("texture", "global.texture")),
    "TransformMmaBufferLayout": ("tensor core fragments", _allocates("m16n8k8")),
    "UseAssumeToReduceBranches": ("an assumption", _calls("assume")),
    "ApplyLayoutTransforms": ("a layout transform", lambda node: False),
    "InjectCopyIntrin": ("a pragma that asks for a copy", lambda node: False),
    "LegalizePackedCalls": ("a packed call from C", _calls("tvm_call_cpacked", "call_cpacked")),
    "LowerCrossThreadReduction": ("a reduction across threads", lambda node: False),
    "LowerDeviceStorageAccessInfo": ("memory that a device describes", lambda node: _is_described(node)),
    "MergeDynamicSharedMemoryAllocations": ("several pieces of dynamic shared memory", lambda node: False),
}


def _first(func: PrimFunc, test: Test) -> Node | None:
    found: list[Node] = []

    def look(node: Node) -> bool:
        if test(node):
            found.append(node)
        return bool(found)

    any_node(func.body, look)
    return found[0] if found else None


def device_pass(name: str, *args: object) -> Pass:
    """The pass of that name."""
    what, test = _WORK[name]

    def check(func: PrimFunc) -> None:
        first: Node | None = None
        if name == "LowerCrossThreadReduction":
            first = _reduces_across_threads(func)
        elif name == "MergeDynamicSharedMemoryAllocations":
            first = _second_dynamic(func)
        elif name == "InjectCopyIntrin":
            first = _first(func, _annotated(f"pragma_{args[0]}" if args else "pragma_"))
        elif name == "ApplyLayoutTransforms":
            first = func.body if func.attrs.get("layout_transform_map") else None
        else:
            first = _first(func, test)
        if first is not None:
            raise DeviceWorkLeft(name, what, first)

    def change(func: PrimFunc, *_: object) -> PrimFunc:
        check(func)
        return func

    return PrimFuncPass(change, PassInfo(0, f"tir.{name}"))

