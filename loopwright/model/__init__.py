"""model: a model as a program of kernel launches becomes one native function.

    compiled = compile_program(Program(name, inputs, outputs, constants, steps))
    compiled(x, y)                                  inputs, then outputs; no Python between kernels
    compiled.export_library("model.so")             also .o, .tar, .h, and a C program that calls it

`program.py` is what comes in: open it first. `check.py` refuses programs that do not fit together. `kernels.py` has
each kernel compiled once (`kernel.py`), in parallel (`workers.py`); `prepack_constants.py` lays out the weights as
kernels want them, and `weight_budget.py` says how much larger they may become. `plan.py` decides where values are:
`liveness.py` says from when to when, `overwrite.py` what may replace what, `arena_packing.py` finds places.
`main_function.py` writes the function that calls the kernels (`main_code.py` compiles it), `constants.py` has the
weights, `compile.py` puts all of it together and `model.py` is the result. `profile.py` runs it with a clock,
`c_source.py` writes it as C.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loopwright.model.errors import (
    BadConstantsPlace,
    BadProgram,
    ConstantsTooLarge,
    KernelMismatch,
    SizeNotKnown,
)
from loopwright.model.plan import Plan, plan_memory
from loopwright.model.program import (
    Bind,
    Body,
    Branch,
    Carried,
    Copy,
    Launch,
    Program,
    Repeat,
    Slice,
    Step,
    Value,
    View,
)

if TYPE_CHECKING:
    from loopwright.model.c_source import c_module
    from loopwright.model.compile import compile_program
    from loopwright.model.model import NativeModel
    from loopwright.model.profile import Profile

__all__ = [
    "BadConstantsPlace",
    "BadProgram",
    "Bind",
    "Body",
    "Branch",
    "Carried",
    "ConstantsTooLarge",
    "Copy",
    "KernelMismatch",
    "Launch",
    "NativeModel",
    "Plan",
    "Profile",
    "Program",
    "Repeat",
    "SizeNotKnown",
    "Slice",
    "Step",
    "Value",
    "View",
    "c_module",
    "compile_program",
    "plan_memory",
]

# They bring code generation along.
_LATER = {"c_module": "c_source", "compile_program": "compile", "NativeModel": "model", "Profile": "profile"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
