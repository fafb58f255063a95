"""annotate_device_regions: the outermost launch of threads says for which device its statements are.

    i = T.launch_thread("threadIdx.x", 16)    →    T.attr(T.target("cuda"), "target", 0)
    ...                                            i = T.launch_thread("threadIdx.x", 16)

Needs: the function's target, with its host.
"""

from __future__ import annotations

from typing import Final

from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import AttrStmt, PrimFunc, Stmt, const, deep
from loopwright.target import Target
from loopwright.transform.parts.statements import StmtRewriter

_DEVICE_KEYS: Final = ("thread_extent", "pipeline_exec_scope", "device_scope")


class _Annotate(StmtRewriter):
    def __init__(self, device: Target) -> None:
        self.device = device

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "target":
            return node
        if node.attr_key in _DEVICE_KEYS:
            return AttrStmt(self.device, "target", const(0), node)
        return self.rebuild(node)


def without_host(target: Target) -> Target:
    """The device alone."""
    if target.host is None:
        return target
    return Target({key: value for key, value in target.export().items() if key != "host"})


@named_pass("AnnotateDeviceRegions")
@deep
def annotate_device_regions(func: PrimFunc) -> PrimFunc:
    """The outermost launch of threads says for which device its statements are."""
    target = func.attrs.get("target")
    if not isinstance(target, Target) or target.host is None:
        return func
    return func.with_(body=_Annotate(without_host(target)).visit(func.body))
