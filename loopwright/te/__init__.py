"""Tensor expressions: say what each element of a tensor is, get a function.

    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.exp(A[i]) + 1, name="B")
    func = te.create_prim_func([A, B])

Start with `compute.py` (what a body may be) and `create_prim_func.py` (what it becomes); `tensor.py` and `operation.py`
are the graph, `reduction.py` the reducers. What is still to come is listed in `not_built.py`.
"""

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
from loopwright.te.math import *  # noqa: F403
from loopwright.te.not_built import (
    create_schedule,
    decl_tensor_intrin,
    extern,
    extern_primfunc,
    gradient,
    hybrid,
    scan,
)
from loopwright.te.operation import BadShape, ComputeOp, Operation, PlaceholderOp, placeholder, size_var, var
from loopwright.te.operation import constant as const
from loopwright.te.reduction import BadReduceAxis, BadReducer, BadReducerCall, comm_reducer, max, min, sum
from loopwright.te.tags import TagConflict, TagScope, tag_scope
from loopwright.te.tensor import AmbiguousEquality, BadIndex, Tensor, TensorSlice, WholeTensor
