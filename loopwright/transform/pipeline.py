"""pipeline: the passes that turn a scheduled function into one code generation can read off, in order.

    lower(func, "llvm")                         the lowered module
    for name, stage in stages(func, "llvm"):    the function after each pass
        ...

What is left then: loops from 0 that are serial, parallel or unrolled; while, let, if, assert, attributes, calls;
allocations; loads and stores of flat buffers with one int64 index (a scalar, a Ramp or a vector).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import Pass, Sequential
from loopwright.ir.rare_collections import rare_collections
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target
from loopwright.transform.errors import NotForThisTarget, UnknownStage
from loopwright.transform.on_request.allreduce_threads import allreduce_threads
from loopwright.transform.on_request.compact_thread_memory import compact_thread_memory
from loopwright.transform.on_request.drop_declarations import drop_declarations
from loopwright.transform.on_request.infer_storage_scopes import infer_storage_scopes
from loopwright.transform.on_request.insert_barriers import insert_barriers
from loopwright.transform.on_request.launch_threads import launch_threads, launch_threads_where_possible
from loopwright.transform.on_request.lower_warp_memory import lower_warp_memory
from loopwright.transform.on_request.mark_roles import mark_roles
from loopwright.transform.on_request.reduce_over_threads import reduce_over_threads
from loopwright.transform.on_request.serialize_thread_reduction import serialize_thread_reduction
from loopwright.transform.on_request.sink_allocations import sink_allocations
from loopwright.transform.on_request.specialize_warps import specialize_warps
from loopwright.transform.on_request.use_warpgroups import use_warpgroups
from loopwright.transform.passes.auto_unroll import auto_unroll
from loopwright.transform.passes.canonicalize_loops import canonicalize_loops, canonicalize_loops_but_threads
from loopwright.transform.passes.check_accesses import check_accesses
from loopwright.transform.passes.check_bounds import check_bounds
from loopwright.transform.passes.check_run_once import check_run_once
from loopwright.transform.passes.choose_index_width import choose_index_width
from loopwright.transform.passes.collect_imports import collect_imports
from loopwright.transform.passes.compact_buffers import compact_buffers
from loopwright.transform.passes.double_buffer import double_buffer
from loopwright.transform.passes.expand_powers import expand_powers
from loopwright.transform.passes.flatten_buffers import flatten_buffers, flatten_buffers_by_separators
from loopwright.transform.passes.form_fma import form_fma
from loopwright.transform.passes.hoist_if_then_else import hoist_if_then_else
from loopwright.transform.passes.inject_virtual_thread import inject_virtual_thread
from loopwright.transform.passes.interchange_loops import interchange_loops
from loopwright.transform.passes.legalize_low_precision import legalize_low_precision
from loopwright.transform.passes.lower_blocks import lower_blocks
from loopwright.transform.passes.lower_custom_datatypes import lower_custom_datatypes
from loopwright.transform.passes.lower_intrinsics import lower_intrinsics
from loopwright.transform.passes.mark_pipelines import mark_pipelines
from loopwright.transform.passes.partition_loops import partition_loops
from loopwright.transform.passes.plan_storage import plan_storage
from loopwright.transform.passes.precompute_constants import precompute_constants_with
from loopwright.transform.passes.privatise_buffers import privatise_buffers
from loopwright.transform.passes.remove_no_op import remove_no_op
from loopwright.transform.passes.scalarize_vectors import scalarize_long_vectors, scalarize_vectors
from loopwright.transform.passes.separate_full_tiles import separate_full_tiles
from loopwright.transform.passes.simplify import simplify
from loopwright.transform.passes.skip_asserts import skip_asserts
from loopwright.transform.passes.software_pipeline import software_pipeline
from loopwright.transform.passes.specialize_full_vectors import specialize_full_vectors
from loopwright.transform.passes.trim_grid import trim_grid
from loopwright.transform.passes.unify_lanes import unify_lanes
from loopwright.transform.passes.unroll_loops import unroll_small_loops
from loopwright.transform.passes.use_tensor_intrinsics import use_tensor_intrinsics
from loopwright.transform.passes.use_warp_intrinsics import use_warp_intrinsics
from loopwright.transform.passes.vectorize_loops import vectorize_loops
from loopwright.transform.passes.vectorize_outer_loops import vectorize_outer_loops
from loopwright.transform.passes.widen_accesses import widen_accesses
from loopwright.transform.passes.widen_truths import widen_truths
from loopwright.transform.passes.write_allocations import write_allocations
from loopwright.transform.passes.write_inits import write_inits


class Step(NamedTuple):
    """A pass of the pipeline."""

    run: Pass
    phase: int  # user passes (`tir.add_lower_pass`) run before the first step of a later phase
    setting: str = ""  # runs only when this setting is on


def _lowered(program: IRModule, target: Target) -> IRModule:
    return lower(program, target)


# The one pass that runs the others: the pipeline is given to it, as it cannot import what imports it.
precompute_constants = precompute_constants_with(_lowered)

CPU_PIPELINE: list[Step] = [
    Step(privatise_buffers, 1),  # first: the program is still the one whose parallel loops were proved
    Step(check_run_once, 1),  # before loops go or are copied
    Step(collect_imports, 1),  # before loops go: what one imports stays
    Step(skip_asserts, 1, "tir.disable_assert"),  # early: what is not there costs no later pass anything
    Step(precompute_constants, 1),  # before the others: they need not lower what is done now, nor see its constants
    Step(use_tensor_intrinsics, 1),  # before loops and inits change: blocks are matched as the schedule left them
    Step(mark_pipelines, 1),  # before write_inits: annotations count the statements that the user wrote
    Step(write_inits, 1),  # before any folding: it may drop a loop of no iterations from what a reduction runs over
    Step(canonicalize_loops, 1),  # before everything that reasons about loops: they start at 0 from here on
    Step(write_allocations, 1),  # after write_inits: an init stands inside the allocation it writes to
    Step(lower_blocks, 1),  # after both: a block is nothing but its body and predicate now
    Step(compact_buffers, 1),  # after lower_blocks: indices are in terms of loops; first of those that change buffers
    Step(inject_virtual_thread, 1),  # before the overlapping of loops: threads share the loops inside them
    Step(software_pipeline, 1),  # after compact_buffers: a version is as large as one iteration needs
    Step(double_buffer, 1),  # after software_pipeline: what is asked for by stages is not asked for by marks
    Step(use_warp_intrinsics, 1),  # after them: parts of buffers and versions of tiles are what instructions work on
    Step(auto_unroll, 1),  # after both: prologues and bodies count with the statements they have now
    Step(lower_custom_datatypes, 2),  # before all that looks at types: afterwards there are only those we know
    Step(lower_intrinsics, 2),  # before legalize_low_precision, form_fma: what a rule makes is program like any other
    Step(legalize_low_precision, 2),  # before form_fma: the sums and products it makes are in float32
    Step(widen_truths, 2),  # after lower_blocks: allocations are statements; before vectorize_loops: vectors of bytes
    Step(expand_powers, 2),  # after it, when they are in float32; before form_fma: products of powers are fused too
    Step(form_fma, 2),  # before partition_loops and vectorize_loops: every copy of a statement computes the same bits
    Step(check_bounds, 2, "tir.instrument_bound_checkers"),  # before flatten_buffers: shapes say what the bounds are
    Step(
        check_accesses, 2
    ),  # before flatten_buffers too; before plan_storage: what is checked early is still there then
    Step(plan_storage, 2),  # before partition_loops: a nest is one statement still, and is seen to work in place
    Step(partition_loops, 2),  # before vectorize_loops: a vector loop without guards needs no lane-by-lane form
    Step(hoist_if_then_else, 2),  # after it: what it cannot decide is asked once; before vectorize_loops: not by lanes
    Step(interchange_loops, 2),  # after both: guards are gone; before vectorize_outer_loops: it looks at the order
    Step(vectorize_outer_loops, 2),  # before flatten_buffers: dimensions tell cells apart
    Step(flatten_buffers, 2),  # before vectorize_loops: a lane is a stride of the flat index
    Step(vectorize_loops, 2),  # before simplify: it makes the last new index arithmetic
    Step(scalarize_long_vectors, 2),  # after it: loops of many lanes are cut there, where their lanes allow it
    Step(remove_no_op, 3),  # before simplify: what is not there need not be simplified
    Step(simplify, 3),  # before choose_index_width: it compares and folds the program's own types
    Step(choose_index_width, 3),  # last: until here all passes see one index type
]

# C-like sources: vectors have no place in C99, and a reader sees unrolled loops written out while they are short.
SOURCE_STEPS: dict[Pass, list[Step]] = {
    interchange_loops: [],  # the C compiler does both itself
    vectorize_outer_loops: [],
    scalarize_long_vectors: [],
    vectorize_loops: [
        Step(unroll_small_loops, 2),  # before vectorize_loops: what that one unrolls itself stays loops over lanes
        Step(vectorize_loops, 2),  # vector statements say which loads come before which stores
        Step(scalarize_vectors, 2),  # after it, and before simplify: it makes new index arithmetic
    ],
}

# No target: the program as every machine has it. Threads stay, and what one machine or another does without stays too.
_ANY_TARGET: Final[dict[Pass, tuple[Step, ...]]] = {
    **dict.fromkeys(
        [
            *(precompute_constants, interchange_loops, vectorize_outer_loops),
            *(lower_custom_datatypes, lower_intrinsics, legalize_low_precision, widen_truths),
            *(expand_powers, form_fma),
            *(check_accesses, hoist_if_then_else, scalarize_long_vectors, choose_index_width),
        ],
        (),
    ),
    write_inits: (
        Step(allreduce_threads, 1),  # before write_inits: the parts of each thread start at the init
        Step(write_inits, 1),
        Step(serialize_thread_reduction, 1),  # after it: an init is none of the turns
    ),
    canonicalize_loops: (Step(canonicalize_loops_but_threads, 1),),
    compact_buffers: (
        Step(compact_buffers, 1),
        Step(launch_threads_where_possible, 1),  # before vectorize_loops: a launch is around all that a kernel does
    ),
    flatten_buffers: (Step(flatten_buffers_by_separators, 2),),
    vectorize_loops: (Step(vectorize_loops, 2), Step(unroll_small_loops, 2)),
    simplify: (Step(simplify, 3), Step(drop_declarations, 3)),
}
# GPUs: threads are launched, and wait for each other. A thread is scalar code.
_GPU: Final[dict[Pass, tuple[Step, ...]]] = {
    **dict.fromkeys(
        [
            precompute_constants,  # what runs at build time runs on this machine, which need not round as a GPU does
            *(hoist_if_then_else, interchange_loops, vectorize_outer_loops, scalarize_long_vectors),
        ],
        (),
    ),
    privatise_buffers: (
        Step(privatise_buffers, 1),
        Step(sink_allocations, 1),  # as early: the program is still the one whose flows were proved
        Step(mark_roles, 1),  # before write_inits and others, which drop annotations with the loops they rewrite
    ),
    write_inits: (
        Step(allreduce_threads, 1),  # before write_inits: the parts of each thread start at the init
        Step(reduce_over_threads, 1),  # before launch_threads, which knows barriers and no reductions
        Step(write_inits, 1),
        Step(serialize_thread_reduction, 1),  # after it: an init is none of the turns
    ),
    canonicalize_loops: _ANY_TARGET[canonicalize_loops],
    compact_buffers: (
        Step(infer_storage_scopes, 1),  # before compact_buffers, which asks whose memory it is
        Step(launch_threads, 1),  # before what overlaps loops: these passes see what one thread runs
        Step(compact_thread_memory, 1),  # after it, when all parts of a kernel call a thread by one name
        Step(compact_buffers, 1),  # after both: memory of a block or thread is allocated inside the launch
        Step(specialize_warps, 1),  # after them: an address does not say how much is used; before what overlaps loops
        Step(use_warpgroups, 1),  # after it, which fills the tiles; before form_fma: sums of tensor cores are their own
    ),
    plan_storage: (
        Step(plan_storage, 2),
        Step(insert_barriers, 2),  # after it: buffers that share memory need barriers too; before flatten_buffers
    ),
    flatten_buffers: (
        Step(flatten_buffers, 2),
        Step(lower_warp_memory, 2),  # after it: the lane is a part of the flat index
    ),
    # A guard costs a thread little, and code twice as long costs the instruction cache much: but vectors have none.
    partition_loops: (
        Step(unify_lanes, 2),  # before vectorize_loops: vectors of values that one condition chooses between
        Step(separate_full_tiles, 2),
    ),
    vectorize_loops: (
        Step(specialize_full_vectors, 2),  # before vectorize_loops: a guard that differs between lanes ends a vector
        Step(vectorize_loops, 2),
        Step(widen_accesses, 2),  # after it: what is a vector now may be one load
        Step(scalarize_vectors, 2),
    ),
    simplify: (
        Step(simplify, 3),
        Step(trim_grid, 3),  # after it: conditions are sums again; before choose_index_width: extents are indices
    ),
}
GPU_PIPELINE: list[Step] = [part for step in CPU_PIPELINE for part in _GPU.get(step.run, (step,))]

ANY_TARGET_PIPELINE: list[Step] = [part for step in CPU_PIPELINE for part in _ANY_TARGET.get(step.run, (step,))]


def lower_for_any_target(program: PrimFunc | IRModule, *, without: Sequence[str] = ()) -> IRModule:
    """The module lowered as far as no target is needed for: flat buffers, vectors, launches of threads."""
    context = PassContext.current()
    chosen = [step for step in ANY_TARGET_PIPELINE if not step.setting or context.setting(step.setting)]
    steps = _with_user_passes(chosen, context.setting("tir.add_lower_pass"))
    mod = IRModule.from_expr(program) if isinstance(program, PrimFunc) else program
    return Sequential([step.run for step in steps if step.run.info.name not in without], name="lower")(mod)


def pipeline(target: Target | str) -> list[Step]:
    """The passes for a target, in order, as the current PassContext's settings choose them."""
    kind = str(Target(target).kind)
    if kind not in ("llvm", "c", "cuda", "hybrid", "stackvm"):
        raise NotForThisTarget(kind)
    context = PassContext.current()
    steps = GPU_PIPELINE if kind == "cuda" else CPU_PIPELINE
    if kind == "c":
        steps = [part for step in CPU_PIPELINE for part in SOURCE_STEPS.get(step.run, [step])]
    chosen = [step for step in steps if not step.setting or context.setting(step.setting)]
    return _with_user_passes(chosen, context.setting("tir.add_lower_pass"))


@rare_collections
def lower(
    program: PrimFunc | IRModule,
    target: Target | str | None = None,
    *,
    stop_after: str | None = None,
    without: Sequence[str] = (),
) -> IRModule:
    """The module lowered for `target` (this machine's by default), or as it is after the pass `stop_after`."""
    chosen = _chosen_target(target)
    steps = [step for step in pipeline(chosen) if step.run.info.name not in without]
    if stop_after is not None:
        names = [step.run.info.name for step in steps]
        if stop_after not in names:
            raise UnknownStage(stop_after, names)
        steps = steps[: names.index(stop_after) + 1]
    mod = IRModule.from_expr(program) if isinstance(program, PrimFunc) else program
    with chosen:
        return Sequential([step.run for step in steps], name="lower")(mod)


def stages(func: PrimFunc, target: Target | str | None = None) -> Iterator[tuple[str, PrimFunc]]:
    """The function as given (named "start"), then after each pass of the pipeline, with the pass's name."""
    chosen = _chosen_target(target)
    yield "start", func
    for step in pipeline(chosen):
        with chosen:
            func = step.run(func)
        yield step.run.info.name, func


def _chosen_target(target: Target | str | Mapping[str, object] | None) -> Target:
    return Target(target) if target is not None else Target.current() or Target("llvm")


def _with_user_passes(steps: Sequence[Step], added: Sequence[Any]) -> list[Step]:
    """`tir.add_lower_pass`: phase 0 before everything, 1 and 2 after those phases, 3 and above at the end."""
    users: list[Step] = []
    for item in added:
        is_pair = isinstance(item, (tuple, list)) and len(item) == 2
        if not (is_pair and isinstance(item[0], int) and isinstance(item[1], Pass)):
            raise LoopwrightError(
                f"tir.add_lower_pass: {item!r} is not a (phase, pass) pair",
                hint="write [(1, my_pass)] with my_pass made by prim_func_pass or module_pass",
            )
        users.append(Step(item[1], min(item[0], 3)))
    placed: list[Step] = [step for step in users if step.phase <= 0]
    for phase in (1, 2, 3):
        placed += [step for step in steps if step.phase == phase]
        placed += [step for step in users if step.phase == phase]
    return placed
