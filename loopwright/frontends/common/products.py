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
from loopwright.relay.types import Dim, same_dim


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
    rows = relay.reshape(a, (times(*shape[:-1]), shape[-1]), allowzero=True)
    result = relay.nn.dense(rows, weight, out_dtype=out_dtype)
    return relay.reshape(result, (*shape[:-1], node.shape(weight)[0]), allowzero=True)


def _batched(node: Tensors, a: Expr, b: Expr, out_dtype: str, transpose_b: bool, turn: bool) -> Expr:
    one, other = node.shape(a), node.shape(b)
    batch = broadcast("matmul", one[:-2], other[:-2])
    left, right = as_batch(node, a, batch), as_batch(node, b, batch)
    if turn and not transpose_b:
        right, transpose_b = relay.transpose(right, axes=[0, 2, 1]), True
        other = (*other[:-2], other[-1], other[-2])
    result = relay.nn.batch_matmul(left, right, out_dtype=out_dtype, transpose_b=transpose_b)
    columns = other[-2] if transpose_b else other[-1]
    return result if len(batch) == 1 else relay.reshape(result, (*batch, one[-2], columns), allowzero=True)


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
