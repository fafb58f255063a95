"""lane_of: each lane of a vector, computed alone, is what the vector holds there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loopwright import ir
from loopwright.codegen.llvm.lane_of import lane_of
from loopwright.evaluator import evaluate
from loopwright.ir import intrinsics
from tests.agreement import assert_agreement

A = ir.decl_buffer((8,), "int32", "A")
PAIRS = ir.decl_buffer((4,), "int32x2", "P")  # each element is a vector
FOURS = ir.decl_buffer((2,), "int32x4", "Q")
VALUES = [
    np.array([3, 7, 200, 5, -2, -9, 300, 6], "int32"),
    np.arange(8, dtype="int32").reshape(4, 2),
    np.arange(8, 16, dtype="int32").reshape(2, 4),
]
RAMP = ir.Ramp(ir.const(1), ir.const(2), 4)
SPREAD = ir.Broadcast(A[1], 4)
EIGHT = ir.Broadcast(ir.const(8), 4)


def let(value: ir.Expr, body: Callable[[ir.Var], ir.Expr]) -> ir.Expr:
    x = ir.Var("x", value.dtype)
    return ir.Let(x, value, body(x))


def shuffle(vectors: tuple[ir.Expr, ...], *lanes: int) -> ir.Expr:
    return ir.Shuffle(vectors, tuple([ir.const(lane) for lane in lanes]))


VECTORS = {
    "ramp": RAMP,
    "broadcast": SPREAD,
    "load": A[RAMP],
    "load of a load": A[A[RAMP] % EIGHT],
    "load of elements that are pairs": PAIRS[ir.Ramp(ir.const(0), ir.const(2), 2)],
    "load of one element that is a vector": FOURS[1],
    "sum": A[RAMP] + SPREAD,
    "cast": A[RAMP].astype("int8x4").astype("int32x4"),
    "select": ir.Select(A[RAMP] > SPREAD, RAMP, SPREAD),
    "select for all lanes": ir.Select(A[1] > 3, RAMP, SPREAD),
    "not": ir.Not(A[RAMP] > SPREAD).astype("int32x4"),
    "shuffle": shuffle((A[RAMP], SPREAD), 5, 0, 3, 2),
    "let": let(A[RAMP], lambda x: x * x + RAMP),
    "let in a let": let(A[RAMP], lambda x: let(x + x, lambda y: y * x)),
    "let of a scalar": let(A[2], lambda x: ir.Broadcast(x, 4) * A[RAMP]),
    "let of a shorter vector": let(ir.Ramp(ir.const(1), ir.const(2), 2), lambda x: PAIRS[x]),
    "load with a let": let(A[RAMP], lambda x: A[x % EIGHT] + x),
    "shuffle of a let": let(A[RAMP], lambda x: shuffle((x, RAMP), 3, 6, 0, 0) + x),
    "lane of a let for all": let(A[RAMP], lambda x: ir.Broadcast(shuffle((x,), 2), 4) + x),
    "call": intrinsics.call_intrin("int32x4", "tir.abs", A[RAMP]),
    "call of two": intrinsics.call_intrin("int32x4", "tir.bitwise_xor", A[RAMP], SPREAD),
    "call on another number of lanes": intrinsics.reinterpret("int32x4", A[ir.Ramp(0, 1, 2)].astype("int64x2")),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_lane_alone_is_that_of_the_vector(name):
    vector = VECTORS[name]
    B = ir.decl_buffer((4,), "int32", "B")
    alone = [ir.BufferStore(B, lane_of(vector, lane), [lane]) for lane in range(4)]
    assert [store.value.dtype for store in alone] == [ir.DataType("int32")] * 4
    found = []
    for body in (ir.BufferStore(B, vector, [ir.Ramp(0, 1, 4)]), ir.seq(alone)):
        out = np.zeros(4, "int32")
        evaluate(ir.PrimFunc([A, PAIRS, FOURS, B], body), *VALUES, out)
        found.append(out.tolist())
    assert found[0] == found[1]


def test_guarded_vectors_in_native_code():
    """Lanes where the guard does not hold would divide by 0."""
    vectors = [vector for vector in VECTORS.values() if not _reads_vectors(vector)]
    D, B = ir.decl_buffer((4,), "int32", "D"), ir.decl_buffer((len(vectors) * 4,), "int32", "B")
    divisor = D[ir.Ramp(0, 1, 4)]
    stores = []
    for row, vector in enumerate(vectors):
        guarded = intrinsics.call_intrin("int32x4", "tir.if_then_else", divisor != 0, ir.Div(vector, divisor), SPREAD)
        stores.append(ir.BufferStore(B, guarded, [ir.Ramp(row * 4, 1, 4)]))
    arguments = [VALUES[0], np.array([0, 2, 0, -3], "int32"), np.zeros(len(vectors) * 4, "int32")]
    assert_agreement(ir.PrimFunc([A, D, B], ir.seq(stores)), arguments)


def _reads_vectors(expr: ir.Expr) -> bool:
    """Whether it reads a buffer whose elements are vectors: an array cannot be passed for one."""
    found: list[ir.Buffer] = []
    ir.pre_order_visit(expr, lambda node: found.append(node.buffer) if isinstance(node, ir.BufferLoad) else None)
    return any([buffer.dtype.lanes > 1 for buffer in found])
