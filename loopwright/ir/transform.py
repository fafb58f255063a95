"""`ir.transform`: passes and their context, under the names users know; `passes.py` and `instrument.py` hold them."""

from loopwright.ir.instrument import PassInstrument, PassTimingInstrument, ShowAfterEach, pass_instrument
from loopwright.ir.pass_combinators import Apply, ApplyPassToFunction, Filter, PrintIR
from loopwright.ir.pass_config import register_config
from loopwright.ir.pass_context import PassContext, PassInfo, UnknownPassWarning
from loopwright.ir.pass_decorators import module_pass, prim_func_pass
from loopwright.ir.passes import ModulePass, Pass, PrimFuncPass, Sequential, function_pass

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
