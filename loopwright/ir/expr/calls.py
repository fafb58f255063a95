"""Calls, and the expressions that only te has before a function is made from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir.expr.base import Expr
from loopwright.ir.expr.iteration import IterVar
from loopwright.ir.expr.literals import Var, as_exprs
from loopwright.ir.node import CONVERSIONS, Node, derived, node
from loopwright.runtime.dtype import INT32, VOID, DataType  # noqa: F401 (INT32 is read in the text of `derived`)


class Callee(Node):
    """What a Call may call: a registered operator (`Op`) or a function of the module (`GlobalVar`)."""

    __slots__ = ("name",)

    name: str


# Constructors take the name of an operator, "tir.exp", for the operator; the registry comes later and puts itself here.
op_named: Final[list[Callable[[str], Callee]]] = []
CONVERSIONS["Callee"] = ("type({x}) is str", "op_named[0]({x})")


@node
class GlobalVar(Callee):
    """The name of a function in an IRModule."""

    name: str

    @property
    def name_hint(self) -> str:
        return self.name

    def __call__(self, *args: object) -> Expr:
        """A call of the function; given values of a graph, it is a value of that graph."""
        for arg in args:
            if hasattr(arg, "call_with"):
                called: Expr = arg.call_with(self, args)
                return called
        return Call(VOID, self, as_exprs(args))


@node
class Call(Expr):
    """A call of `op`: an intrinsic, an external function or a function of the module."""

    dtype: DataType
    op: Callee
    args: tuple[Expr, ...]


class Producer(Node):
    """Something whose elements an expression can read before lowering (a te tensor)."""

    __slots__ = ()

    name: str
    dtype: DataType
    shape: tuple[Expr, ...]


@node
class ProducerLoad(Expr):
    """An element of a te tensor; absent once a function is made."""

    producer: Producer
    indices: tuple[Expr, ...]
    dtype: DataType = derived("producer.dtype")


@node(binds=("lhs", "rhs"))
class CommReducer(Node):
    """A commutative, associative combination: `result` in terms of `lhs` and `rhs`, with its identity."""

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity_element: tuple[Expr, ...]


@node
class Reduce(Expr):
    """Field `value_index` of `source` combined over `axis` where `condition` holds; te only."""

    combiner: CommReducer
    source: tuple[Expr, ...]
    axis: tuple[IterVar, ...]
    condition: Expr
    value_index: int
    init: tuple[Expr, ...] = ()
    dtype: DataType = derived("source[value_index].dtype")


@node
class Any_(Expr):
    """An unknown dimension in a shape."""

    dtype: DataType = derived("INT32")
