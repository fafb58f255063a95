"""Tensor expressions: say what each element of a tensor is, get a function.

    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.exp(A[i]) + 1, name="B")
    func = te.create_prim_func([A, B])

Start with `compute.py` (what a body may be) and `create_prim_func.py` (what it becomes); `tensor.py` and `operation.py`
are the graph, `reduction.py` the reducers; `scan.py`, `extern.py` and `hybrid/` are the other ways to make tensors.
`schedule/` says how tensors are computed (`te.create_schedule`).
"""

from typing import TYPE_CHECKING

from loopwright.arith.index_map import AXIS_SEPARATOR
from loopwright.runtime.guesses import pointing as _pointing
from loopwright.te import hybrid, schedule
from loopwright.te.autodiff import NotDifferentiable, WrongGradientArgument, WrongHead, gradient
from loopwright.te.axes import BadDomain, NoThreadTag, reduce_axis, thread_axis
from loopwright.te.compute import (
    AxisOutOfPlace,
    BadComputeBody,
    BadComputeFunction,
    ReductionInside,
    ReductionsDiffer,
    TooManyAxes,
    WrongVarargsNames,
    compute,
)
from loopwright.te.create_prim_func import (
    BadFunctionArgument,
    MissingPlaceholder,
    NoOutput,
    UndefinedVariable,
    create_prim_func,
)
from loopwright.te.extern import (
    BadExternArgument,
    BadExternBody,
    BufferCountMismatch,
    ExternOp,
    UnknownExternType,
    extern,
    extern_primfunc,
)
from loopwright.te.extern_function import BadExternFunction
from loopwright.te.guessed_names import INSTEAD as _INSTEAD
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.lower_extern import ExternBufferMismatch
from loopwright.te.math import *  # noqa: F403
from loopwright.te.operation import BadShape, ComputeOp, PlaceholderOp, placeholder, size_var, var
from loopwright.te.operation import constant as const
from loopwright.te.reduction import BadReduceAxis, BadReducer, BadReducerCall, comm_reducer, max, min, sum
from loopwright.te.scan import BadScanArgument, ScanOp, StateMismatch, scan
from loopwright.te.scan_body import NotAnEarlierStep, NotAScanStage
from loopwright.te.schedule import (
    Fuse,
    Schedule,
    Singleton,
    Split,
    Stage,
    TensorIntrin,
    create_schedule,
    decl_tensor_intrin,
)
from loopwright.te.specialized_condition import BadCondition, SpecializedCondition
from loopwright.te.tags import TagConflict, TagScope, tag_scope
from loopwright.te.tensor import AmbiguousEquality, BadIndex, Operation, Tensor, TensorSlice, WholeTensor
from loopwright.te.tensor_compute import BadIntrinsicCall, TensorComputeOp
from loopwright.te.whole_tensors import ShapesDoNotMatch

if not TYPE_CHECKING:  # mypy would believe in every name
    __getattr__ = _pointing(__name__, _INSTEAD)
