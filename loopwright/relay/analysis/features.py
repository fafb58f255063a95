"""detect_feature: which parts of the language of graphs an expression uses."""

from __future__ import annotations

from enum import IntEnum

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.adt import Constructor, Match
from loopwright.relay.blocks import is_leaf
from loopwright.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from loopwright.relay.graph_functions import graph_functions
from loopwright.relay.op.registry import Op
from loopwright.relay.visitor import parts, post_order


class Feature(IntEnum):
    """A part of the language of graphs."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15  # a value is used twice
    fLetRec = 16  # a function calls itself


_OF_CLASS = {
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}


def detect_feature(a: Expr | IRModule | None, b: Expr | IRModule | None = None) -> set[Feature]:
    """The features of an expression, or of all graph functions of a module; the other argument may add some."""
    if isinstance(a, IRModule):
        a, b = b, a
    result = set() if a is None or isinstance(a, IRModule) else _features(a)
    if isinstance(b, IRModule):
        for function in graph_functions(b).values():
            result |= _features(function)
    return result


def _features(root: Expr) -> set[Feature]:
    result: set[Feature] = set()
    used: set[Expr] = set()
    for expression in post_order(root):
        result.add(_OF_CLASS[type(expression)])
        if isinstance(expression, Call) and isinstance(expression.op, Op):
            result.add(Feature.fOp)
        if isinstance(expression, Let) and isinstance(expression.value, Function):
            if any(inner is expression.var for inner in post_order(expression.value)):
                result.add(Feature.fLetRec)
        for part in parts(expression):
            if part in used and not is_leaf(part):
                result.add(Feature.fGraph)
            used.add(part)
    return result
