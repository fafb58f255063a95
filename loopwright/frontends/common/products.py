"""Products of matrices as frameworks mean them: vectors have an axis of 1 for as long as it takes, batches spread.

product(node, a, b)                      numpy's matmul
dense(node, x, weight)                   rows of x, over all its leading axes, with one weight
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import relay
from loopwright.frontends.common.tensors import Tensors
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import broadcast, times
from loopwright.relay.types import Dim, is_any, same_dim


def product(node: Tensors, a: Expr, b: Expr, out_dtype: str = "", transpose_b: bool = False, turn: bool = True) -> Expr:
    """`a @ b`; with `transpose_b`, of `b` with its last two axes exchanged.

    turn: a batch of second operands is turned, so that both are read along their rows.
    """
    left, right = node.rank(a), node.rank(b)
    if left == 0 or right == 0:
        raise node.bad("a single number has no product of matrices")
    if left == 1 and right == 1:
        row, column = relay.expand_dims(a, axis=0), relay.expand_dims(b, axis=0)
        return relay.squeeze(relay.nn.dense(row, column, out_dtype=out_dtype), axis=[0, 1])
    if left == 1:
        whole = product(node, relay.expand_dims(a, axis=0), b, out_dtype, transpose_b, turn)
        return relay.squeeze(whole, axis=[right - 2])
    if right == 1:
        # A vector is the one row of a weight.
        return relay.squeeze(dense(node, a, relay.expand_dims(b, axis=0), out_dtype), axis=[left - 1])
    if right == 2:
        return dense(node, a, b if transpose_b else relay.transpose(b, axes=[1, 0]), out_dtype)
    return _batched(node, a, b, out_dtype, transpose_b, turn)


def dense(node: Tensors, a: Expr, weight: Expr, out_dtype: str = "") -> Expr:
    """Rows of `a`, over all its leading axes, with one weight."""
    shape = node.shape(a)
    if len(shape) == 1:
        return relay.squeeze(relay.nn.dense(relay.expand_dims(a, axis=0), weight, out_dtype=out_dtype), axis=[0])
    if len(shape) == 2:
        return relay.nn.dense(a, weight, out_dtype=out_dtype)
    if any(map(is_any, (*shape, node.shape(weight)[0]))):
        return _dense_dynamic(node, a, weight, out_dtype)
    rows = relay.reshape(a, (times(*shape[:-1]), shape[-1]), allowzero=True)
    result = relay.nn.dense(rows, weight, out_dtype=out_dtype)
    return relay.reshape(result, (*shape[:-1], node.shape(weight)[0]), allowzero=True)


def _batched(node: Tensors, a: Expr, b: Expr, out_dtype: str, transpose_b: bool, turn: bool) -> Expr:
    one, other = node.shape(a), node.shape(b)
    if any(map(is_any, (*one, *other))) and not len(one) == len(other) == 3:
        return _batched_dynamic(node, a, b, out_dtype, transpose_b)
    batch = broadcast("matmul", one[:-2], other[:-2])
    left, right = as_batch(node, a, batch), as_batch(node, b, batch)
    if turn and not transpose_b:
        right, transpose_b = relay.transpose(right, axes=[0, 2, 1]), True
        other = (*other[:-2], other[-1], other[-2])
    result = relay.nn.batch_matmul(left, right, out_dtype=out_dtype, transpose_b=transpose_b)
    columns = other[-2] if transpose_b else other[-1]
    return result if len(batch) == 1 else relay.reshape(result, (*batch, one[-2], columns), allowzero=True)


def _dense_dynamic(node: Tensors, a: Expr, weight: Expr, out_dtype: str) -> Expr:
    """`dense` of a tensor with sizes that only a call has."""
    lead, last = _lead_and_last(node, a, 1)
    rows = relay.reshape(a, relay.concatenate([node.const([-1]), last], axis=0), allowzero=True)
    result = relay.nn.dense(rows, weight, out_dtype=out_dtype)
    columns = relay.strided_slice(relay.shape_of(weight, dtype="int64"), begin=[0], end=[1])
    return relay.reshape(result, relay.concatenate([lead, columns], axis=0), allowzero=True)


def _batched_dynamic(node: Tensors, a: Expr, b: Expr, out_dtype: str, transpose_b: bool) -> Expr:
    """A product of batches with sizes that only a call has: it spreads them to one another there."""
    count = max(node.rank(a), node.rank(b)) - 2
    parts = [_lead_and_last(node, x, 2) for x in (a, b)]
    wide = [
        lead if node.rank(x) == count + 2 else relay.concatenate([node.const([1] * (count + 2 - node.rank(x))), lead])
        for x, (lead, _) in zip((a, b), parts)
    ]
    batch = relay.where(relay.equal(wide[0], node.const(1)), wide[1], wide[0])
    flat = [
        relay.reshape(
            relay.broadcast_to(x, relay.concatenate([batch, last], axis=0)),
            relay.concatenate([node.const([-1]), last], axis=0),
            allowzero=True,
        )
        for x, (_, last) in zip((a, b), parts)
    ]
    result = relay.nn.batch_matmul(*flat, out_dtype=out_dtype, transpose_b=transpose_b)
    sizes = relay.strided_slice(relay.shape_of(result, dtype="int64"), begin=[1], end=[3])
    return relay.reshape(result, relay.concatenate([batch, sizes], axis=0), allowzero=True)


def _lead_and_last(node: Tensors, x: Expr, count: int) -> tuple[Expr, Expr]:
    """The shape of `x` as two vectors: all but the last `count` sizes, and those."""
    sizes, rank = relay.shape_of(x, dtype="int64"), node.rank(x)
    lead = relay.strided_slice(sizes, begin=[0], end=[rank - count])
    return lead, relay.strided_slice(sizes, begin=[rank - count], end=[rank])


def as_batch(node: Tensors, x: Expr, batch: Sequence[Dim]) -> Expr:
    """Matrices as one batch: spread to the sizes of `batch`, which become one axis; a single one stays single."""
    shape = node.shape(x)
    lead = shape[:-2]
    if all(isinstance(size, int) and size == 1 for size in lead):
        return x if len(lead) == 1 else relay.reshape(x, (1, *shape[-2:]), allowzero=True)
    wide = (*batch, *shape[-2:])
    same = len(lead) == len(batch) and all(map(same_dim, lead, batch))
    spread = x if same else relay.broadcast_to(x, wide)
    return spread if len(wide) == 3 else relay.reshape(spread, (times(*batch), *shape[-2:]), allowzero=True)
