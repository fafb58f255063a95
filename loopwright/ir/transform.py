"""`ir.transform`: passes and their context, under the names users know; `passes.py` and `instrument.py` hold them."""

from loopwright.ir.instrument import PassInstrument, PassTimingInstrument, ShowAfterEach, pass_instrument
from loopwright.ir.passes import (
    Apply,
    ApplyPassToFunction,
    Filter,
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrimFuncPass,
    PrintIR,
    Sequential,
    UnknownPassWarning,
    function_pass,
    module_pass,
    prim_func_pass,
    register_config,
)

__all__ = [
    "Apply",
    "ApplyPassToFunction",
    "Filter",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassTimingInstrument",
    "PrimFuncPass",
    "PrintIR",
    "Sequential",
    "ShowAfterEach",
    "UnknownPassWarning",
    "function_pass",
    "module_pass",
    "pass_instrument",
    "prim_func_pass",
    "register_config",
]
