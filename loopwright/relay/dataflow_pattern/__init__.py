"""relay.dataflow_pattern: shapes of graphs to look for, and what to do with what is found.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(conv, wildcard()))
    pattern.match(expr)               whether the expression itself has that shape
    pattern.partition(expr)           every place that has it becomes a call of a function
    rewrite(MyCallback(), expr)       every place that has it is replaced, until nothing changes

`patterns.py` has the classes, `matcher.py` says when they match, `groups.py` finds the places in a graph.
"""

from loopwright.relay.dataflow_pattern.matcher import match
from loopwright.relay.dataflow_pattern.partition import partition
from loopwright.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from loopwright.relay.dataflow_pattern.rewrite import DFPatternCallback, RewriteDoesNotEnd, rewrite

__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DFPatternCallback",
    "DataTypePattern",
    "DominatorPattern",
    "ExprPattern",
    "FunctionPattern",
    "IfPattern",
    "LetPattern",
    "RewriteDoesNotEnd",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "VarPattern",
    "WildcardPattern",
    "dominates",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "partition",
    "rewrite",
    "wildcard",
]
