"""compile_program: check, compile the kernels, prepare constants, plan the memory, write the main function, link.

    model = compile_program(program, "llvm")
    model(x, y)            inputs, then outputs

Kernels are compiled first: only as scheduled do they say whether an output may take the place of an input.
"""

from __future__ import annotations

from time import perf_counter

from loopwright.display import progress
from loopwright.model import constants
from loopwright.model.check import check_program
from loopwright.model.kernel import total_seconds
from loopwright.model.kernels import Counts, compile_kernels, overwrites
from loopwright.model.main_code import compile_main, describe_main
from loopwright.model.main_function import make_main
from loopwright.model.model import NativeModel
from loopwright.model.plan import plan_memory
from loopwright.model.prepack_constants import prepare
from loopwright.model.program import Program
from loopwright.model.weight_budget import over_budget
from loopwright.runtime.errors import NotBuilt
from loopwright.target import Target, describe, require_buildable


def compile_program(
    program: Program,
    target: Target | str | None = None,
    *,
    winograd: bool | int = False,
    processes: int | None = None,
) -> NativeModel:
    """The program as one native function, linked into this process.

    `winograd=True` allows convolutions to be rounded otherwise (see "Winograd" in the documentation). `processes`
    says how many may compile at once: by default as many as a parallel loop has threads.
    """
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    require_buildable(chosen)
    if chosen.kind == "cuda":
        raise NotBuilt("a model for CUDA", 'compile it for "llvm"; lw.build makes kernels of single programs')
    cpu = describe(chosen)
    with progress.task(f"compile {program.name}") as task:
        start = perf_counter()
        check_program(program)
        checked = perf_counter()
        counts = Counts()
        kernels = compile_kernels(
            program.launches(),
            chosen,
            constants=program.constants,
            winograd=winograd,
            processes=processes,
            counts=counts,
        )
        dear = over_budget(program, kernels) if winograd else []
        if dear:
            again = Counts()
            kernels |= compile_kernels(dear, chosen, constants=program.constants, processes=processes, counts=again)
            counts.add(again, len({kernel.symbol for kernel in kernels.values()}))
        compiled_at = perf_counter()
        task.now("prepared constants")
        prepared = prepare(program, kernels)
        prepared_at = perf_counter()
        task.now("memory plan")
        in_place = {launch: overwrites(launch, kernel) for launch, kernel in kernels.items()}
        plan = plan_memory(program, in_place, prepared=prepared)
        planned = perf_counter()
        task.now("main function")
        main = make_main(program, plan, kernels, program.name)
        distinct = {kernel.symbol: kernel for kernel in kernels.values()}
        called = tuple(dict.fromkeys(name for kernel in distinct.values() for name in kernel.packed_calls))
        description = describe_main(main, cpu, all(kernel.proved for kernel in distinct.values()), called)
        code = compile_main(main, cpu, description)
        written = perf_counter()
        task.now("constants")
        content = constants.gather(plan)
        gathered = perf_counter()
        model = NativeModel(program, plan, kernels, code, description, content, chosen, compile_program)
    model.counts = counts
    model.timings = {
        "check": checked - start,
        "kernels": compiled_at - checked,
        "prepare": prepared_at - compiled_at,
        "plan": planned - prepared_at,
        "main": written - planned,
        "constants": gathered - written,
        **model.timings,
    }
    model.kernel_seconds = total_seconds(list(distinct.values()))
    return model
