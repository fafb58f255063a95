"""Attention: what is computed, in terms of the shapes of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopwright.arith import simplified_size
from loopwright.ir import Dim, Expr, IntImm, cast, const
from loopwright.runtime.dtype import DataType


@dataclass(frozen=True)
class Attention:
    """What is computed: sizes, which are numbers or expressions, and how the tensors lie."""

    batch: Expr
    heads: Expr
    group: Expr  # heads of queries for each head of keys and values
    queries: Expr
    keys: Expr
    depth: int  # numbers of a query and a key
    width: int  # numbers of a value
    orders: tuple[str, str, str, str]  # of the query, the keys, the values and the result: "BSHD" or such
    mask_order: str  # "BHQK" or "BHKQ"
    scale: float
    causal: bool
    diagonal: int  # with `causal`, query q sees keys up to q + diagonal
    hidden_is_zero: bool  # a query that sees no key has the result 0; else it is not a number
    causal_by: str  # with `causal`, -inf is added to later scores ("add"), or chosen in their place
    mask_selects: bool  # where the mask is -inf, that is chosen in place of the score
    dtype: DataType  # of sums


def attention_of(
    shapes: Sequence[Sequence[Expr]], orders: tuple[str, str, str, str], options: Mapping[str, object], dtype: DataType
) -> Attention:
    """What is computed of a query, a key and a value of these shapes; `options` are the fields that no shape says."""
    q, k, v = (dict(zip(order, shape, strict=True)) for order, shape in zip(orders, shapes, strict=False))
    index = shapes[0][0].dtype
    all_heads, own_heads = known(q["H"]), known(k["H"])
    group = all_heads // own_heads if all_heads is not None and own_heads else 1
    return Attention(
        _as_index(q["B"], index),
        _as_index(q["H"], index),
        _as_index(const(group, q["H"].dtype), index),
        _as_index(q["S"], index),
        _as_index(k["S"], index),
        known(q["D"]) or 0,
        known(v["D"]) or 0,
        orders,
        dtype=dtype,
        **options,  # type: ignore[arg-type]
    )


def known(value: Dim) -> int | None:
    """The number that a size is; None where only the program's run says."""
    simple = simplified_size(value)
    return int(simple.value) if isinstance(simple, IntImm) else None


def _as_index(size: Expr, dtype: DataType) -> Expr:
    return simplified_size(cast(size, dtype))
