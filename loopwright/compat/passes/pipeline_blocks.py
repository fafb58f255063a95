"""pipeline_blocks: loops whose iterations overlap by stages, also where blocks are still there.

Our `software_pipeline` overlaps the statements of a loop, and checks that this keeps every value; blocks are lowered
before it. Called by hand on a function with blocks, it still checks, and the result is written with blocks
(`pipeline_in_blocks`), where the loops have the form for that. Else, and where copies are asynchronous, the result has
no blocks, and what then follows for blocks finds none.
"""

from __future__ import annotations

from loopwright.compat.passes.pipeline_in_blocks import OtherForm, pipeline_in_blocks
from loopwright.ir import Block, For, IRModule, PrimFunc, any_node
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass, PrimFuncPass
from loopwright.transform.passes.compact_buffers import compact_buffers
from loopwright.transform.passes.lower_blocks import lower_blocks
from loopwright.transform.passes.mark_pipelines import mark_pipelines
from loopwright.transform.passes.software_pipeline import software_pipeline
from loopwright.transform.passes.write_allocations import write_allocations
from loopwright.transform.passes.write_inits import write_inits

_BEFORE: tuple[PrimFuncPass, ...] = (mark_pipelines, write_inits, write_allocations, lower_blocks, compact_buffers)


def _pipelined(mod: IRModule, context: PassContext) -> IRModule:
    """Loops overlap their iterations by stages."""

    def change(func: PrimFunc) -> PrimFunc:
        if not isinstance(func, PrimFunc) or not any_node(
            func.body, lambda node: isinstance(node, For) and "software_pipeline_stage" in node.annotations
        ):
            return func
        has_blocks = any_node(func.body, lambda node: isinstance(node, Block))
        is_async = any_node(
            func.body, lambda node: isinstance(node, For) and "software_pipeline_async_stages" in node.annotations
        )
        if has_blocks and not is_async:
            try:
                return pipeline_in_blocks(func, without_blocks)
            except OtherForm:
                pass
        return without_blocks(func)

    def without_blocks(func: PrimFunc) -> PrimFunc:
        has_blocks = any_node(func.body, lambda node: isinstance(node, Block))
        for step in (*(_BEFORE if has_blocks else ()), software_pipeline):
            func = step.change(func, mod, context)
        return func

    return mod.map_functions(change)


pipeline_blocks = ModulePass(_pipelined, PassInfo(0, "tir.InjectSoftwarePipeline"))
