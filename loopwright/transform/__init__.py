"""transform: lowering, from scheduled programs with blocks to what code generation reads off.

Open `pipeline.py` first: the list of passes, in order, with the reason for each place. `passes/` holds them, one file
each, shown before → after in its docstring; `on_request/` holds those that only a caller asks for. All run alone, on a
PrimFunc or an IRModule. `parts/` is what passes share, and parts of large ones. `errors.py` is what lowering refuses,
`tensor_intrinsics/` what machines have instructions for. The pass manager itself is `ir/passes.py` and
`ir/instrument.py`.
"""

import warnings
from typing import Any

from loopwright.ir.instrument import PassInstrument, PassTimingInstrument, ShowAfterEach, pass_instrument
from loopwright.ir.pass_combinators import Apply, Filter, PrintIR
from loopwright.ir.pass_config import BadConfigValue, UnknownConfig, register_config
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.pass_decorators import module_pass, prim_func_pass
from loopwright.ir.passes import Pass, Sequential, function_pass
from loopwright.transform.errors import (
    BadAnnotation,
    BadIndexWidth,
    BlockNotLowered,
    BlockStateLeft,
    IndexTooWide,
    LoweringError,
    NotAPipeline,
    NotForThisTarget,
    PipelineBreaksDependence,
    PipelineMismatch,
    RegionDoesNotMatch,
    ThreadLoopOnCpu,
    UndefinedValueUsed,
    UnknownStage,
    UnrollExtentUnknown,
    VectorExtentUnknown,
)
from loopwright.transform.explain_loops import LoopNote, explain_loops
from loopwright.transform.on_request.allreduce_threads import allreduce_threads
from loopwright.transform.on_request.annotate_entry import annotate_entry
from loopwright.transform.on_request.bind_target import bind_target
from loopwright.transform.on_request.common_subexpressions import common_subexpressions
from loopwright.transform.on_request.compact_thread_memory import compact_thread_memory
from loopwright.transform.on_request.convert_for_loops_to_serial import convert_for_loops_to_serial
from loopwright.transform.on_request.convert_ssa import convert_ssa
from loopwright.transform.on_request.extract_constants import extract_constants
from loopwright.transform.on_request.force_narrow_index_to_int32 import force_narrow_index_to_int32
from loopwright.transform.on_request.hoist_expressions import hoist_expressions
from loopwright.transform.on_request.hoist_shared_memory import hoist_shared_memory
from loopwright.transform.on_request.infer_storage_scopes import infer_storage_scopes
from loopwright.transform.on_request.insert_barriers import insert_barriers
from loopwright.transform.on_request.launch_threads import launch_threads
from loopwright.transform.on_request.make_blocks_opaque import make_blocks_opaque
from loopwright.transform.on_request.narrow_data_type import narrow_data_type
from loopwright.transform.on_request.reduce_over_threads import reduce_over_threads
from loopwright.transform.on_request.remove_assume import remove_assume
from loopwright.transform.on_request.remove_store_undef import remove_store_undef
from loopwright.transform.on_request.renormalize_splits import renormalize_splits
from loopwright.transform.on_request.resolve_matches import resolve_matches
from loopwright.transform.on_request.rewrite_unsafe_select import rewrite_unsafe_select
from loopwright.transform.on_request.serialize_thread_reduction import serialize_thread_reduction
from loopwright.transform.on_request.specialize_warps import specialize_warps
from loopwright.transform.on_request.split_host_device import split_host_device
from loopwright.transform.on_request.write_prefetches import write_prefetches
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.passes.auto_unroll import auto_unroll
from loopwright.transform.passes.canonicalize_loops import canonicalize_loops
from loopwright.transform.passes.check_accesses import check_accesses
from loopwright.transform.passes.check_bounds import check_bounds
from loopwright.transform.passes.choose_index_width import choose_index_width
from loopwright.transform.passes.compact_buffers import compact_buffers
from loopwright.transform.passes.double_buffer import double_buffer
from loopwright.transform.passes.expand_powers import expand_powers
from loopwright.transform.passes.flatten_buffers import flatten_buffers
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
from loopwright.transform.passes.unroll_loops import unroll_loops, unroll_small_loops
from loopwright.transform.passes.vectorize_loops import vectorize_loops
from loopwright.transform.passes.vectorize_outer_loops import vectorize_outer_loops
from loopwright.transform.passes.widen_accesses import widen_accesses
from loopwright.transform.passes.widen_truths import widen_truths
from loopwright.transform.passes.write_allocations import write_allocations
from loopwright.transform.passes.write_inits import write_inits
from loopwright.transform.pipeline import CPU_PIPELINE, lower, pipeline, precompute_constants, stages

__all__ = [
    "CPU_PIPELINE",
    "Apply",
    "BadAnnotation",
    "BadConfigValue",
    "BadIndexWidth",
    "BlockNotLowered",
    "BlockStateLeft",
    "Filter",
    "IndexTooWide",
    "LoopNote",
    "LoweringError",
    "NotAPipeline",
    "NotForThisTarget",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassTimingInstrument",
    "PipelineBreaksDependence",
    "PipelineMismatch",
    "PrintIR",
    "RegionDoesNotMatch",
    "Sequential",
    "ShowAfterEach",
    "ThreadLoopOnCpu",
    "UndefinedValueUsed",
    "UnknownConfig",
    "UnknownStage",
    "UnrollExtentUnknown",
    "VectorExtentUnknown",
    "allreduce_threads",
    "annotate_entry",
    "auto_unroll",
    "bind_target",
    "canonicalize_loops",
    "check_accesses",
    "check_bounds",
    "choose_index_width",
    "clone_definitions",
    "common_subexpressions",
    "compact_buffers",
    "compact_thread_memory",
    "convert_for_loops_to_serial",
    "convert_ssa",
    "double_buffer",
    "expand_powers",
    "explain_loops",
    "extract_constants",
    "flatten_buffers",
    "force_narrow_index_to_int32",
    "form_fma",
    "function_pass",
    "hoist_expressions",
    "hoist_if_then_else",
    "hoist_shared_memory",
    "infer_storage_scopes",
    "inject_virtual_thread",
    "insert_barriers",
    "interchange_loops",
    "launch_threads",
    "legalize_low_precision",
    "lower",
    "lower_blocks",
    "lower_custom_datatypes",
    "lower_intrinsics",
    "make_blocks_opaque",
    "mark_pipelines",
    "module_pass",
    "narrow_data_type",
    "partition_loops",
    "pass_instrument",
    "pipeline",
    "plan_storage",
    "precompute_constants",
    "prim_func_pass",
    "privatise_buffers",
    "reduce_over_threads",
    "register_config",
    "remove_assume",
    "remove_no_op",
    "remove_store_undef",
    "renormalize_splits",
    "resolve_matches",
    "rewrite_unsafe_select",
    "scalarize_long_vectors",
    "scalarize_vectors",
    "separate_full_tiles",
    "serialize_thread_reduction",
    "simplify",
    "skip_asserts",
    "software_pipeline",
    "specialize_full_vectors",
    "specialize_warps",
    "split_host_device",
    "stages",
    "trim_grid",
    "unify_lanes",
    "unroll_loops",
    "unroll_small_loops",
    "vectorize_loops",
    "vectorize_outer_loops",
    "widen_accesses",
    "widen_truths",
    "write_allocations",
    "write_inits",
    "write_prefetches",
]

# Names that scripts may hold, and what they are called now.
_RENAMED = {"renew_definitions": "clone_definitions", "write_turns": "serialize_thread_reduction"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        now = _RENAMED[name]
        warnings.warn(f"transform.{name} is called {now}", DeprecationWarning, stacklevel=2)
        return globals()[now]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
