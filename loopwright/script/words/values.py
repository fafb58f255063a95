"""Words for expressions: vectors, calls, lets, ranges, reducers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopwright.arith.index_map import IndexMap
from loopwright.ir import (
    Broadcast,
    CommReducer,
    Expr,
    IterType,
    IterVar,
    Ramp,
    Var,
    as_expr,
    as_exprs,
)
from loopwright.ir import Call as CallNode
from loopwright.ir import Let as LetNode
from loopwright.ir import Op as OpNode
from loopwright.ir import Range as RangeNode
from loopwright.ir import cast as cast_expr
from loopwright.ir.expr import Callee
from loopwright.runtime.dtype import DataType
from loopwright.script.parser.differences import extent_between
from loopwright.script.parser.directives import LetSpec
from loopwright.target import Target

if TYPE_CHECKING:
    from loopwright.target.target import TargetLike

__all__ = [
    "Call",
    "Let",
    "Op",
    "Range",
    "broadcast",
    "cast",
    "comm_reducer",
    "index_map",
    "iter_var",
    "let",
    "ramp",
    "target",
]


def cast(value: object, dtype: str) -> Expr:
    """`value` converted to `dtype`."""
    return cast_expr(as_expr(value), DataType(dtype))


def ramp(base: Any, stride: Any, lanes: int) -> Expr:
    """The vector base, base + stride, …"""
    return Ramp(base, stride, lanes)


def broadcast(value: Any, lanes: int) -> Expr:
    """`lanes` copies of `value`."""
    return Broadcast(value, lanes)


def Call(dtype: str, op: str | Callee, args: Sequence[object]) -> Expr:
    """A call of an operator (or of a function of the module) with that result type."""
    return CallNode(DataType(dtype), OpNode.get(op) if isinstance(op, str) else op, as_exprs(args))


def Op(name: str) -> OpNode:
    """The registered operator of that name."""
    return OpNode.get(name)


def Let(expr: object, where: Mapping[Var, object]) -> Expr:
    """`expr` with each variable of `where` standing for its value."""
    result = as_expr(expr)
    for name, value in reversed(list(where.items())):
        result = LetNode(name, as_expr(value), result)
    return result


def let(v: Var, value: object, body: object = None) -> Any:
    """With `body`: that expression with `v` standing for `value`; without: the same for the rest of the scope."""
    if body is not None:
        return LetNode(v, as_expr(value), as_expr(body))
    return LetSpec(as_expr(value), None, v)


def Range(begin: object, end: object = None) -> RangeNode:
    """The integers from `begin` up to, not including, `end`; from 0 when only one number is given."""
    return RangeNode(begin) if end is None else RangeNode.from_min_extent(*extent_between(begin, end))


def iter_var(v: Var | str, dom: object, iter_type: str | int, thread_tag: str = "") -> IterVar:
    """An iteration variable; the kind by name, e.g. "DataPar" or "CommReduce"."""
    kind = IterType[iter_type] if isinstance(iter_type, str) else IterType(iter_type)
    return IterVar(dom, v, kind, thread_tag)


def comm_reducer(combiner: Callable[..., object], identity: Sequence[object]) -> CommReducer:
    """A commutative combination: `combiner` of twice as many arguments as there are identities."""
    identities = as_exprs(identity if isinstance(identity, (tuple, list)) else (identity,))
    names = list(inspect.signature(combiner).parameters)
    half = len(identities)
    if len(names) != 2 * half:
        raise ValueError(f"comm_reducer: {half} identities need a combiner of {2 * half} arguments, not {len(names)}")
    lhs = [Var(name, one.dtype) for name, one in zip(names[:half], identities, strict=True)]
    rhs = [Var(name, one.dtype) for name, one in zip(names[half:], identities, strict=True)]
    result = combiner(*lhs, *rhs)
    results = as_exprs(tuple(result) if isinstance(result, (tuple, list)) else (result,))
    if len(results) != half:
        raise ValueError(f"comm_reducer: the combiner gives {len(results)} values for {half} identities")
    return CommReducer(tuple(lhs), tuple(rhs), results, identities)


def index_map(
    mapping: Callable[..., object],
    inverse_index_map: Callable[..., object] | IndexMap | None = None,
    index_dtype: str = "int64",
) -> IndexMap:
    """A layout as a function from indices to indices, for attributes: `T.index_map(lambda i, j: (j, i))`."""
    return IndexMap.from_func(mapping, inverse_index_map=inverse_index_map, index_dtype=index_dtype)


def target(config: TargetLike, host: TargetLike | None = None) -> Target:
    """A compilation target, from text or a dictionary."""
    if host is not None and isinstance(config, Mapping) and "host" in config:
        raise ValueError('target: the host is given twice, as host= and under "host"')
    return Target(config) if host is None else Target(config, host)
