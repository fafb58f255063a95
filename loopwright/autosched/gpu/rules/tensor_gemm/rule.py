"""tensor gemm: which blocks are products for tensor cores of sm_90a, and how they are scheduled.

C[b, i, j] += float32(A[b, i, k]) * float32(B[b, j, k])    any transposition of 2-byte operands, batched
E[b, i, j] = float16(max(C[b, i, j] + bias[j], 0))         the epilogue, computed in registers
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.gemm import is_epilogue
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import matmul_of
from loopwright.autosched.gpu.rules.tensor_gemm.operands import schedule_first_copies
from loopwright.autosched.gpu.rules.tensor_gemm.planning import note_plan, plan_of
from loopwright.autosched.gpu.rules.tensor_gemm.split_sum import split_sum
from loopwright.autosched.gpu.rules.tensor_gemm.steps import Steps
from loopwright.autosched.program import Entry, Program
from loopwright.schedule import Schedule


class TensorGemm:
    """Takes a product of matrices of few bytes an element, and the element-wise block after it."""

    name = "tensor gemm"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        matmul = None if facts is None else matmul_of(facts)
        if facts is None or matmul is None:
            return 0
        return 2 if len(pending) > 1 and is_epilogue(pending[1], facts, program) else 1

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        if not machine.has_wgmma:
            raise NotWorthIt("there are no warpgroups")
        facts = entries[0].facts
        matmul = None if facts is None else matmul_of(facts)
        assert matmul is not None
        last = entries[-1].facts
        assert last is not None
        plan = plan_of(matmul, machine, last.write.buffer)
        chosen, epilogue = plan, sch.get_block(entries[1].name) if len(entries) > 1 else None
        if plan.splits > 1:
            plan, epilogue = split_sum(sch, plan, entries[1:], program, machine), None
        first_copies = Steps(sch, plan).run(epilogue)
        note_plan(decision, chosen, machine)
        schedule_first_copies(sch, first_copies, program, machine, decision)
