"""Split-K: other blocks compute parts of the sums, as a batch, and a second kernel adds them up.

C[i, j] = sum over k         →    parts[p, i, j] = sum over k of part p         a product for tensor cores
                                  D[i, j] = epilogue of the sum over p of parts[p, i, j]
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.gemm import add_parts
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import matmul_of
from loopwright.autosched.gpu.rules.tensor_gemm.planning import Plan
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.small_steps import loops_by_axis
from loopwright.schedule import Schedule


def split_sum(sch: Schedule, plan: Plan, after: Sequence[Entry], program: Program, machine: GpuMachine) -> Plan:
    """Cut the sums into parts, with the kernel that adds them up; the plan of the product that computes the parts."""
    facts = plan.matmul.facts
    block = sch.get_block(facts.name)
    reduced = plan.matmul.k_axis.var
    parts, _ = sch.split(loops_by_axis(sch, block, facts)[reduced], [plan.splits, None])
    partial = sch.rfactor(parts, 0)
    own = sch.get_loops(partial)
    at = [axis.var for axis in facts.axes].index(reduced)
    sch.reorder(own[at], *own[:at])
    add_parts(sch, block, [sch.get_block(entry.name) for entry in after], plan.splits, facts.dtype, machine)
    made = program.after(sch).entry(sch.get(partial).name_hint).facts
    matmul = None if made is None else matmul_of(made)
    if matmul is None:
        raise NotWorthIt("the parts of the sum are not seen to be a product for tensor cores")
    if matmul.is_transposed is not plan.matmul.is_transposed:
        matmul = matmul.transposed()
    return plan._replace(matmul=matmul, size=plan.size.split(plan.splits), splits=1)
