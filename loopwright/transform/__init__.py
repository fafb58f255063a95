"""transform: lowering, from scheduled programs with blocks to what code generation reads off.

Open `pipeline.py` first: the list of passes, in order, with the reason for each place. A file with the name of a pass
is that pass, and shows what it does before → after in its docstring; all run alone, on a PrimFunc or an IRModule. The
other files are what passes share: `statements.py` and `index_rewriter.py` (bases of rewriters), `purity.py`,
`folding.py`, `flat_index.py`, `renew_definitions.py`, `known_ops.py`; and parts of one large pass, which names them.
`errors.py` is what lowering refuses, `tensor_intrinsics/` what machines have instructions for. The pass manager itself
is `ir/passes.py` and `ir/instrument.py`.
"""

from loopwright.ir.instrument import PassInstrument, PassTimingInstrument, ShowAfterEach, pass_instrument
from loopwright.ir.pass_combinators import Apply, Filter, PrintIR
from loopwright.ir.pass_config import BadConfigValue, UnknownConfig, register_config
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.pass_decorators import module_pass, prim_func_pass
from loopwright.ir.passes import Pass, Sequential, function_pass
from loopwright.transform.annotate_entry import annotate_entry
from loopwright.transform.auto_unroll import auto_unroll
from loopwright.transform.bind_target import bind_target
from loopwright.transform.canonicalize_loops import canonicalize_loops
from loopwright.transform.check_accesses import check_accesses
from loopwright.transform.check_bounds import check_bounds
from loopwright.transform.choose_index_width import choose_index_width
from loopwright.transform.common_subexpressions import common_subexpressions
from loopwright.transform.compact_buffers import compact_buffers
from loopwright.transform.convert_for_loops_to_serial import convert_for_loops_to_serial
from loopwright.transform.convert_ssa import convert_ssa
from loopwright.transform.double_buffer import double_buffer
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
from loopwright.transform.extract_constants import extract_constants
from loopwright.transform.flatten_buffers import flatten_buffers
from loopwright.transform.force_narrow_index_to_int32 import force_narrow_index_to_int32
from loopwright.transform.form_fma import form_fma
from loopwright.transform.hoist_expressions import hoist_expressions
from loopwright.transform.hoist_if_then_else import hoist_if_then_else
from loopwright.transform.hoist_shared_memory import hoist_shared_memory
from loopwright.transform.inject_virtual_thread import inject_virtual_thread
from loopwright.transform.insert_barriers import insert_barriers
from loopwright.transform.interchange_loops import interchange_loops
from loopwright.transform.launch_threads import launch_threads
from loopwright.transform.legalize_low_precision import legalize_low_precision
from loopwright.transform.lower_blocks import lower_blocks
from loopwright.transform.lower_custom_datatypes import lower_custom_datatypes
from loopwright.transform.lower_intrinsics import lower_intrinsics
from loopwright.transform.make_blocks_opaque import make_blocks_opaque
from loopwright.transform.narrow_data_type import narrow_data_type
from loopwright.transform.partition_loops import partition_loops
from loopwright.transform.pipeline import CPU_PIPELINE, lower, pipeline, stages
from loopwright.transform.plan_storage import plan_storage
from loopwright.transform.precompute_constants import precompute_constants
from loopwright.transform.privatise_buffers import privatise_buffers
from loopwright.transform.remove_assume import remove_assume
from loopwright.transform.remove_no_op import remove_no_op
from loopwright.transform.remove_store_undef import remove_store_undef
from loopwright.transform.renew_definitions import renew_definitions
from loopwright.transform.renormalize_splits import renormalize_splits
from loopwright.transform.resolve_matches import resolve_matches
from loopwright.transform.rewrite_unsafe_select import rewrite_unsafe_select
from loopwright.transform.scalarize_vectors import scalarize_long_vectors, scalarize_vectors
from loopwright.transform.simplify import simplify
from loopwright.transform.skip_asserts import skip_asserts
from loopwright.transform.software_pipeline import software_pipeline
from loopwright.transform.unroll_loops import unroll_loops, unroll_small_loops
from loopwright.transform.vectorize_loops import vectorize_loops
from loopwright.transform.vectorize_outer_loops import vectorize_outer_loops
from loopwright.transform.write_allocations import write_allocations
from loopwright.transform.write_inits import write_inits
from loopwright.transform.write_prefetches import write_prefetches
from loopwright.transform.write_turns import write_turns

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
    "annotate_entry",
    "auto_unroll",
    "bind_target",
    "canonicalize_loops",
    "check_accesses",
    "check_bounds",
    "choose_index_width",
    "common_subexpressions",
    "compact_buffers",
    "convert_for_loops_to_serial",
    "convert_ssa",
    "double_buffer",
    "explain_loops",
    "extract_constants",
    "flatten_buffers",
    "force_narrow_index_to_int32",
    "form_fma",
    "function_pass",
    "hoist_expressions",
    "hoist_if_then_else",
    "hoist_shared_memory",
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
    "module_pass",
    "narrow_data_type",
    "partition_loops",
    "pass_instrument",
    "pipeline",
    "plan_storage",
    "precompute_constants",
    "prim_func_pass",
    "privatise_buffers",
    "register_config",
    "remove_assume",
    "remove_no_op",
    "remove_store_undef",
    "renew_definitions",
    "renormalize_splits",
    "resolve_matches",
    "rewrite_unsafe_select",
    "scalarize_long_vectors",
    "scalarize_vectors",
    "simplify",
    "skip_asserts",
    "software_pipeline",
    "stages",
    "unroll_loops",
    "unroll_small_loops",
    "vectorize_loops",
    "vectorize_outer_loops",
    "write_allocations",
    "write_inits",
    "write_prefetches",
    "write_turns",
]
