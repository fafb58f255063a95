"""kernel_memory: memory of blocks and threads ends with its kernel.

    S = T.decl_buffer((8,), scope="local")
    for k in range(2):
        for tx in T.thread_binding(8, thread="threadIdx.x"):      a kernel, launched twice
            if k == 0:
                S[tx] = A[tx]
            B[k, tx] = S[tx]                                      in the second launch: not what the first one stored

What stands under an outermost bound loop is a kernel, and each time it is launched it has new shared memory and new
registers. Memory that is allocated around kernels can be theirs where the source of each read is a write of the same
launch.
"""

from __future__ import annotations

from typing import Any, Final

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.dataflow import Dataflow, Reference, dataflow_of
from loopwright.analysis.instances import Loop
from loopwright.analysis.isl_flow import NotProvable
from loopwright.arith.isl import BudgetExceeded, relations, within_budget
from loopwright.ir import Buffer, PrimFunc, deep

BUDGET: Final = 2_000_000  # isl operations to compare the launches of reads and of their sources


@deep
def flows_between_launches(function: PrimFunc, buffer: Buffer) -> bool | None:
    """Whether a read of `buffer` sees a write of another launch, of this kernel or another; None if nobody knows."""
    flows = dataflow_of(accesses_of(function))
    if buffer.data in flows.program.unknown:
        return None  # calls know it by its address
    try:
        flow = flows.flow(buffer)
        apart = _apart(flows, [*flow.readers, *flow.updaters], [*flow.writers, *flow.updaters])

        def crosses(_: Any) -> bool:
            found = [part for part in (flow.base, flow.updates, flow.update_bases) if not part.is_empty()]
            return any([not part.intersect(apart).is_empty() for part in found])

        return within_budget(crosses, BUDGET, flows.program.affine.largest)
    except (NotProvable, BudgetExceeded):
        return None


def _apart(flows: Dataflow, readers: list[Reference], sources: list[Reference]) -> Any:
    """Reader → source in another launch."""
    result = []
    for reader in readers:
        for source in sources:
            if reader.access is None or source.access is None:
                continue  # the virtual first write: what was never written is not carried from launch to launch
            around, kernel = _launch(reader.access.instance.loops)
            _, other = _launch(source.access.instance.loops)
            names = [f"j{k}" for k in range(len(source.dims))]
            pairs = f"{reader.tuple_text} -> {source.tag}[{', '.join(names)}]"
            if kernel is not other:
                result.append(pairs)
            elif around:
                differ = [f"{mine} != {its}" for mine, its in zip(reader.dims[:around], names[:around], strict=True)]
                result.append(f"{pairs} : {' or '.join(differ)}")
    return relations(", ".join(flows.text.parameters.values()), result)


def _launch(loops: tuple[Loop, ...]) -> tuple[int, object]:
    """How many loops stand around the kernel, and its outermost bound loop."""
    for number, loop in enumerate(loops):
        if loop.thread_tag:
            return number, loop.node
    return len(loops), None
