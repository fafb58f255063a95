"""FuseAttention: two products around a softmax become one operator, whose kernel keeps the scores near.

    %0 = nn.batch_matmul(%q, %k);                 →    nn.attention(%q, %k, %v, %mask, scale=0.125f,
    %1 = add(multiply(%0, 0.125f), %mask);               layouts="BSHD BSHD BSHD BSHD")
    %2 = nn.softmax(%1);
    nn.batch_matmul(%2, transpose(%v))

Heads are read where they lie: transposes and reshapes before the products vanish into `layouts`, and the one behind
them meets its inverse, which SimplifyExpr drops. Factors before and after the first product are one scale. A mask that
is a constant triangle of very negative numbers becomes `causal`; others are added, turned once so that queries lie side
by side. What is hidden by a finite number (-1e9) has a weight of exactly 0 for scores of ordinary size; a triangle is
taken only from -1e8 down, so scores may be as large as that.

A score that is no number stays none under a mask that is added, and is gone where a condition chooses -inf in its
place; the operator is told which (`causal_by`, `mask_selects`). Masks of both kinds become one only where those that
are added are constants without -inf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, const
from loopwright.relay.op.registry import make
from loopwright.relay.op.sizes import times
from loopwright.relay.transform.fusion.attention_masks import HIDDEN, as_mask, low_triangle, tells_dead, triangle
from loopwright.relay.transform.fusion.uses import same_shape
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.simplify.rules.rule import splat
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, use_counts
from loopwright.relay.types import Dim, TensorType, is_any, same_dim, same_dims

_LARGEST_HEAD: Final = 512  # beyond, it is no head, and its queries would not stay near
_RESHAPES: Final = ("reshape", "expand_dims", "squeeze")
_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


@dataclass
class _Operand:
    """A matrix for each head: a tensor of three or four dimensions, and what they are (N: batches of heads)."""

    tensor: Expr
    order: str
    factor: float = 1.0
    repeats: int = 1  # each head stands for so many


@dataclass
class _Mask:
    """What is added to scores of that shape; with `selects`, what is -inf there is chosen in place of the score."""

    mask: Expr
    added_to: Sequence[Dim]
    selects: bool


@dataclass
class _Scores:
    """What stands between the first product and the softmax."""

    product: Call
    factor: float
    masks: list[_Mask] = field(default_factory=list)
    diagonal: int | None = None
    causal_by: str = "add"


class _FuseAttention(TypedRewrite):
    def __init__(self, mod: IRModule, root: Expr) -> None:
        super().__init__(mod)
        self.uses = use_counts(root)

    def visit_call(self, call: Call) -> Expr:
        result = self._fused(call) if is_call(call, "nn.batch_matmul") else None
        return super().visit_call(call) if result is None else result

    def _fused(self, call: Call) -> Expr | None:
        """The operator in place of the second product, its inputs rewritten; None where it is something else."""
        if call.attrs.transpose_a:
            return None
        weights, hidden_is_zero, dead = self._weights(call.args[0])
        if weights is None:
            return None
        scores = self._scores(weights.args[0], dead)
        if scores is None or not self._same_types(call, scores.product):
            return None
        query = self._operand(scores.product.args[0], "NSD")
        key = self._operand(scores.product.args[1], "NSD" if scores.product.attrs.transpose_b else "NDS")
        value = self._operand(call.args[1], "NDS" if call.attrs.transpose_b else "NSD")
        of = self._type(scores.product)
        sizes = self._heads([query, key, value])
        if of is None or sizes is None:
            return None
        orders, tensors, batch, heads = sizes
        if not self._fits(orders, tensors):
            return None
        mask = self._mask(scores, batch, heads, of.shape[1], of.shape[2])
        if scores.masks and mask is None:
            return None
        # The result lies as the query does, so that the transpose that put heads first is undone by the one behind.
        order = orders[0] if orders[0] in ("BHSD", "BSHD") else "BHSD"
        built = make(
            "nn.attention",
            *[self.visit(tensor) for tensor in tensors],
            *([] if mask is None else [mask]),
            scale=scores.factor * query.factor * key.factor,
            causal=scores.diagonal is not None,
            diagonal=scores.diagonal or 0,
            layouts=" ".join([*orders, order]),
            mask_layout="BHKQ",
            hidden_is_zero=hidden_is_zero,
            causal_by=scores.causal_by,
            mask_selects=any(one.selects for one in scores.masks),
        )
        if order != "BHSD":
            built = make("transpose", built, axes=tuple(order.index(letter) for letter in "BHSD"))
        result = self._type(call)
        assert result is not None
        built = make("reshape", built, newshape=tuple(result.shape), allowzero=True)
        return built if value.factor == 1.0 else make("multiply", built, const(value.factor, str(result.dtype)))

    def _type(self, expression: Expr) -> TensorType | None:
        result = self.tensor_type(expression)
        return None if result is None or any(is_any(size) for size in result.shape) else result

    def _same_types(self, call: Call, product: Call) -> bool:
        """One floating type all the way, and as many matrices on both sides of each product."""
        parts = [call, product, *call.args, *product.args]
        types = [self._type(part) for part in parts]
        kinds = {None if of is None else str(of.dtype) for of in types}
        if len(kinds) != 1 or kinds.isdisjoint(_FLOATS):
            return False
        counts = [of.shape[0] for of in types if of is not None]
        return all(same_dim(count, counts[0]) for count in counts[1:])

    # --- from the second product back to the first ------------------------------------------------------------------

    def _only_use(self, expression: Expr) -> bool:
        return self.uses.get(expression, 0) == 1

    def _weights(self, expression: Expr) -> tuple[Call | None, bool, object]:
        """The softmax along the last axis; whether rows that see nothing are set to 0, and what tells them."""
        dead: Expr | None = None
        while self._only_use(expression) and (is_call(expression, *_RESHAPES) or is_call(expression, "where")):
            if is_call(expression, "where"):
                inner = expression.args[2]
                if dead is not None or splat(expression.args[1]) != 0 or not self._is_same_shape(inner, expression):
                    return None, False, None
                dead = expression.args[0]
            else:
                inner = expression.args[0]
                if not self._keeps_matrices(inner, expression):
                    return None, False, None
            expression = inner
        if not is_call(expression, "nn.softmax") or not self._only_use(expression):
            return None, False, None
        of = self._type(expression)
        if of is None or expression.attrs.axis % len(of.shape) != len(of.shape) - 1:
            return None, False, None
        if isinstance(dead, Constant):
            return (None, False, None) if dead.data.any() else (expression, False, None)
        return expression, dead is not None, dead

    def _scores(self, expression: Expr, dead: object) -> _Scores | None:
        """Factors and masks down to the first product."""
        factor, masks, diagonal, causal_by = 1.0, list[_Mask](), None, "add"
        explained = dead is None
        while self._only_use(expression) and isinstance(expression, Call):
            of = self._type(expression)
            if of is None:
                return None
            if is_call(expression, "nn.batch_matmul"):
                is_plain = explained and not expression.attrs.transpose_a
                # A row that is dead is so by its one mask.
                is_plain = is_plain and (dead is None or (len(masks) == 1 and diagonal is None)) and _can_be_one(masks)
                return _Scores(expression, factor, masks, diagonal, causal_by) if is_plain else None
            if is_call(expression, *_RESHAPES):
                if not self._keeps_matrices(expression.args[0], expression):
                    return None
                expression = expression.args[0]
            elif is_call(expression, "multiply", "divide"):
                number = self._scaled(expression)
                if number is None or not number[1] > 0:
                    return None
                expression, factor = number[0], factor * number[1]
            elif is_call(expression, "where"):
                cond, one, other = expression.args
                if splat(one) is not None:  # hidden where the condition holds
                    cond, one, other = make("logical_not", cond), other, one
                    if isinstance(cond.args[0], Constant):
                        cond = Constant(np.logical_not(cond.args[0].data))
                low = splat(other)
                if low is None or not self._is_hidden(cond, float(low)) or not self._is_same_shape(one, expression):
                    return None
                result = triangle(cond, of.shape[-2:], self)
                if result is not None and diagonal is None:
                    diagonal, causal_by = result, "select_first" if masks else "select"
                else:
                    explained = explained or tells_dead(dead, cond, self)
                    masks.append(_Mask(as_mask(cond, str(of.dtype)), of.shape, selects=True))
                expression = one
            elif is_call(expression, "add"):
                split = self._added(expression)
                if split is None:
                    return None
                expression, mask = split
                result = low_triangle(mask, of.shape[-2:], self)
                if result is not None and diagonal is None:
                    diagonal = result
                else:
                    explained = explained or tells_dead(dead, mask, self)
                    scaled = mask if factor == 1.0 else make("multiply", mask, const(factor, str(of.dtype)))
                    masks.append(_Mask(scaled, of.shape, selects=False))
            else:
                return None
        return None

    def _is_same_shape(self, one: Expr, other: Expr) -> bool:
        return same_shape(self._type(one), self._type(other))

    def _keeps_matrices(self, one: Expr, other: Expr) -> bool:
        """Whether a reshape only counts the matrices in another way."""
        shapes = [() if of is None else of.shape[-2:] for of in (self._type(one), self._type(other))]
        return len(shapes[0]) == 2 and same_dims(shapes[0], shapes[1])

    def _is_hidden(self, cond: Expr, low: float) -> bool:
        """Whether putting `low` where the condition fails hides it: surely, or where some key of each row is seen."""
        if low == -np.inf:
            return True
        return low <= HIDDEN and isinstance(cond, Constant) and bool(cond.data.any(axis=-1).all())

    def _scaled(self, call: Call) -> tuple[Expr, float] | None:
        """What is multiplied or divided by a number, and the factor."""
        for value, number in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            result = splat(number)
            if result is None or not self._is_same_shape(value, call):
                continue
            if is_call(call, "multiply"):
                return value, float(result)
            if value is call.args[0] and float(result) != 0:
                return value, 1 / float(result)
        return None

    def _added(self, call: Call) -> tuple[Expr, Expr] | None:
        """The scores, which have the shape of the sum and lead to a product, and what is added to them."""
        for scores, mask in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            if self._is_same_shape(scores, call) and self._leads_to_product(scores):
                return scores, mask
        return None

    def _leads_to_product(self, expression: Expr) -> bool:
        while isinstance(expression, Call) and self._only_use(expression):
            if is_call(expression, "nn.batch_matmul"):
                return True
            if is_call(expression, *_RESHAPES, "multiply", "divide", "add"):
                expression = expression.args[0]
            elif is_call(expression, "where"):
                expression = expression.args[1] if splat(expression.args[1]) is None else expression.args[2]
            else:
                return False
        return False

    # --- where heads lie --------------------------------------------------------------------------------------------

    def _operand(self, expression: Expr, order: str) -> _Operand:
        """The tensor before reshapes and transposes that only bring heads and places into order."""
        factor, repeats = 1.0, 1
        best = _Operand(expression, order)
        while isinstance(expression, Call):
            of = self._type(expression)
            inner = self._type(expression.args[0]) if expression.args else None
            if of is None or inner is None:
                break
            if is_call(expression, "transpose"):
                axes = expression.attrs.axes or tuple(range(len(of.shape)))[::-1]
                order = "".join(order[[axis % len(axes) for axis in axes].index(k)] for k in range(len(axes)))
            elif is_call(expression, *_RESHAPES):
                same = same_dims(inner.shape, of.shape)
                splits = len(inner.shape) == 4 and order[0] == "N" and same_dims(inner.shape[2:], of.shape[1:])
                if not same and not splits:
                    break
                order = order if same else "BH" + order[1:]
            elif is_call(expression, "multiply", "divide") and self._only_use(expression):
                result = self._scaled(expression)
                if result is None or result[0] is not expression.args[0]:
                    break
                factor *= result[1]
            elif is_call(expression, "repeat") and repeats == 1 and len(order) == 4:
                if order[expression.attrs.axis % 4] != "H":
                    break
                repeats = int(expression.attrs.repeats)
            else:
                break
            expression = expression.args[0]
            best = _Operand(expression, order, factor, repeats)
        return best

    def _heads(self, operands: list[_Operand]) -> tuple[list[str], list[Expr], Dim, Dim] | None:
        """Orders and tensors of four dimensions, with one number of batches and of heads for all."""
        batch: Dim | None = None
        heads: Dim = 1
        if operands[0].repeats != 1 or operands[1].repeats != operands[2].repeats:
            return None
        for one in operands:
            of = self._type(one.tensor)
            if of is None:
                return None
            if len(one.order) == 4:
                own = dict(zip(one.order, of.shape))
                all_heads = times(own["H"], one.repeats)
                if batch is not None and not (same_dim(batch, own["B"]) and same_dim(heads, all_heads)):
                    return None
                batch, heads = own["B"], all_heads
        orders, tensors = [], []
        for one in operands:
            of = self._type(one.tensor)
            assert of is not None
            order, tensor = one.order, one.tensor
            if len(order) == 3:
                at = order.index("N")
                if batch is None:
                    batch, heads = of.shape[at], 1
                shape = (*of.shape[:at], batch, heads, *of.shape[at + 1 :])
                order, tensor = order.replace("N", "BH"), make("reshape", tensor, newshape=shape, allowzero=True)
            if order[-1] != "D":
                last = order.replace("D", "") + "D"
                tensor = make("transpose", tensor, axes=tuple(order.index(letter) for letter in last))
                order = last
            orders.append(order)
            tensors.append(tensor)
        assert batch is not None
        return orders, tensors, batch, heads

    def _fits(self, orders: list[str], tensors: list[Expr]) -> bool:
        """Whether heads are of a known and reasonable size."""
        for tensor in tensors:
            of = self._type(tensor)
            if of is None or not isinstance(of.shape[3], int) or not 0 < of.shape[3] <= _LARGEST_HEAD:
                return False
        return True

    # --- masks ------------------------------------------------------------------------------------------------------

    def _mask(self, scores: _Scores, batch: Dim, heads: Dim, queries: Dim, keys: Dim) -> Expr | None:
        """All that is added, as one tensor of four dimensions, queries last; None where its shape is not as it must."""
        total: Expr | None = None
        full = (batch, heads, queries, keys)
        for one in scores.masks:
            mask, added_to = one.mask, one.added_to
            of = self._type(self.visit(mask))
            if of is None:
                return None
            shape: list[Dim] = [*[1] * (max(4, len(added_to)) - len(of.shape)), *of.shape]
            matrices: list[Dim] = shape[:-2]
            if all(map(_is_one, matrices)):
                matrices = [1, 1]
            elif len(added_to) == 3:
                matrices = [batch, heads]
            elif not same_dims(added_to[:-2], (batch, heads)):
                return None
            shape = [*matrices, *shape[-2:]]
            if not all(_is_one(own) or same_dim(own, whole) for own, whole in zip(shape, full, strict=True)):
                return None
            result = make("reshape", self.visit(mask), newshape=tuple(shape), allowzero=True)
            total = result if total is None else make("add", total, result)
        return None if total is None else make("transpose", total, axes=(0, 1, 3, 2))


def _can_be_one(masks: Sequence[_Mask]) -> bool:
    """Whether the sum of the masks says what is hidden as they do one by one."""
    if len({one.selects for one in masks}) < 2:
        return True
    return all(one.selects or _is_finite(one.mask) for one in masks)


def _is_finite(mask: object) -> bool:
    return isinstance(mask, Constant) and bool(np.isfinite(mask.data).all())


def _is_one(size: object) -> bool:
    return isinstance(size, int) and size == 1


def FuseAttention() -> GraphPass:
    """Write products around a softmax as nn.attention."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _FuseAttention(mod, function.body).apply(function)

    return GraphPass(change, PassInfo(2, "FuseAttention"))
