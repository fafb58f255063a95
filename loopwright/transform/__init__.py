"""transform: lowering, from scheduled programs with blocks to what code generation reads off.

Open `pipeline.py` first: the list of passes, in order, with the reason for each place. Every other file is one pass,
and shows what it does before → after in its docstring; all run alone, on a PrimFunc or an IRModule. The pass manager
itself is `ir/passes.py` and `ir/instrument.py`.
"""

from loopwright.ir.instrument import PassInstrument, PassTimingInstrument, ShowAfterEach, pass_instrument
from loopwright.ir.pass_config import BadConfigValue, UnknownConfig, register_config
from loopwright.ir.passes import (
    Apply,
    Filter,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    function_pass,
    module_pass,
    prim_func_pass,
)
from loopwright.transform.canonicalize_loops import canonicalize_loops
from loopwright.transform.check_bounds import check_bounds
from loopwright.transform.choose_index_width import choose_index_width
from loopwright.transform.errors import (
    BlockNotLowered,
    BlockStateLeft,
    LoweringError,
    NotForThisTarget,
    RegionDoesNotMatch,
    ThreadLoopOnCpu,
    UnknownStage,
    UnrollExtentUnknown,
    VectorExtentUnknown,
)
from loopwright.transform.flatten_buffers import flatten_buffers
from loopwright.transform.form_fma import form_fma
from loopwright.transform.legalize_low_precision import legalize_low_precision
from loopwright.transform.lower_blocks import lower_blocks
from loopwright.transform.partition_loops import partition_loops
from loopwright.transform.pipeline import CPU_PIPELINE, lower, pipeline, stages
from loopwright.transform.renew_definitions import renew_definitions
from loopwright.transform.simplify import simplify
from loopwright.transform.skip_asserts import skip_asserts
from loopwright.transform.unroll_loops import unroll_loops
from loopwright.transform.vectorize_loops import vectorize_loops
from loopwright.transform.write_allocations import write_allocations
from loopwright.transform.write_inits import write_inits

__all__ = [
    "CPU_PIPELINE",
    "Apply",
    "BadConfigValue",
    "BlockNotLowered",
    "BlockStateLeft",
    "Filter",
    "LoweringError",
    "NotForThisTarget",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassTimingInstrument",
    "PrintIR",
    "RegionDoesNotMatch",
    "Sequential",
    "ShowAfterEach",
    "ThreadLoopOnCpu",
    "UnknownConfig",
    "UnknownStage",
    "UnrollExtentUnknown",
    "VectorExtentUnknown",
    "canonicalize_loops",
    "check_bounds",
    "choose_index_width",
    "flatten_buffers",
    "form_fma",
    "function_pass",
    "legalize_low_precision",
    "lower",
    "lower_blocks",
    "module_pass",
    "partition_loops",
    "pass_instrument",
    "pipeline",
    "prim_func_pass",
    "register_config",
    "renew_definitions",
    "simplify",
    "skip_asserts",
    "stages",
    "unroll_loops",
    "vectorize_loops",
    "write_allocations",
    "write_inits",
]
