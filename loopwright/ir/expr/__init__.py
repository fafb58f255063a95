"""Expressions: values that statements compute with.

Every expression has a `dtype` (lanes included). Constructors take operands of equal dtype; the operators of Python
(`a + b`, `a < b`, …, in `ir/operators.py`) match types first and fold constants. Start with `base.py`, then
`literals.py` and `arithmetic.py`; `vectors.py`, `iteration.py` and `calls.py` hold the rest.
"""

from loopwright.ir.expr.arithmetic import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Cast,
    CompareExpr,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
)
from loopwright.ir.expr.base import (
    Expr,
    ImmediateOutOfRange,
    NotALiteral,
    NotAnExpression,
    NoTruthValue,
    OperandMismatch,
    binary_operators,
    unary_operators,
)
from loopwright.ir.expr.calls import (
    Any_,
    Call,
    Callee,
    CommReducer,
    GlobalVar,
    Producer,
    ProducerLoad,
    Reduce,
)
from loopwright.ir.expr.iteration import (
    IterType,
    IterVar,
    Range,
)
from loopwright.ir.expr.literals import (
    Broadcast,
    Dim,
    ExprLike,
    FloatImm,
    HasExpr,
    IntImm,
    SizeVar,
    StringImm,
    Var,
    as_expr,
    as_exprs,
    const,
    is_one,
    is_zero,
    pointer,
    round_to,
)
from loopwright.ir.expr.numpy_calls import (
    NumpyFunction,
    answer_numpy,
)
from loopwright.ir.expr.vectors import (
    Ramp,
    Shuffle,
)
