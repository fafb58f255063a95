"""Attention in graphs: one operator for softmax(query · keyᵀ · scale + mask) · value, and one kernel.

`relay.nn.attention(query, key, value)` or, with what is added to the scores, `(query, key, value, mask)`. Imported
graphs get it from the pass FuseAttention, which finds the products around a softmax.
"""

from __future__ import annotations

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Expr
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, calls, make, register
from loopwright.relay.types import TensorType
from loopwright.topi.nn.attention import PLAIN


@register("nn.attention", Kind.OPAQUE)
class Attention(FromTopi):
    """softmax(query · keyᵀ · scale + mask) · value; the scale is 1 / √depth unless given.

    `layouts` are the orders of the dimensions of query, key, value and result: B the batch, H the head, S the place in
    the sequence, D the number in a head. With `causal`, query q sees keys up to q + diagonal. `causal_by` and
    `mask_selects` say whether a score that is no number counts though it is hidden (topi/nn/attention.py).
    """

    scale: float | None = None
    causal: bool = False
    diagonal: int = 0
    layouts: str = PLAIN
    mask_layout: str = "BHQK"
    hidden_is_zero: bool = False
    causal_by: str = "add"
    mask_selects: bool = False

    def infer(self, *inputs: TensorType) -> Type:
        if len(inputs) not in (3, 4):
            raise TypeMismatch(
                f"nn.attention takes a query, a key, a value and perhaps a mask: not {len(inputs)} tensors"
            )
        return self.type_of_compute(*inputs)

    def arguments(self, query: object, key: object, value: object, *mask: object) -> list[object]:
        return [query, key, value, mask[0] if mask else None, *self.values()]


@calls("nn.attention")
def attention(
    query: Expr,
    key: Expr,
    value: Expr,
    mask: Expr | None = None,
    scale: float | None = None,
    causal: bool = False,
    diagonal: int = 0,
    layouts: str = PLAIN,
    mask_layout: str = "BHQK",
    hidden_is_zero: bool = False,
    causal_by: str = "add",
    mask_selects: bool = False,
) -> Expr:
    """softmax(query · keyᵀ · scale + mask) · value, of (batch, heads, sequence, size) unless `layouts` says."""
    result: Expr = make(
        "nn.attention",
        *([query, key, value] if mask is None else [query, key, value, mask]),
        scale=scale,
        causal=causal,
        diagonal=diagonal,
        layouts=layouts,
        mask_layout=mask_layout,
        hidden_is_zero=hidden_is_zero,
        causal_by=causal_by,
        mask_selects=mask_selects,
    )
    return result
