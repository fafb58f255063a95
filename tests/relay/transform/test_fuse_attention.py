"""FuseAttention: which graphs are attention, what their parts become, and that the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import FoldConstant, FuseAttention, SimplifyExpr
from loopwright.relay.visitor import post_order
from tests.relay.transform.graphs import apply, function

B, H, S, K, D = 2, 3, 5, 7, 4
TRIANGLE = np.triu(np.full((S, S), -1e9, "float32"), 1)


def heads(name, length, turned=False, axes=(0, 2, 1, 3)):
    """Heads side by side in one row, as a projection leaves them, as matrices of a batch."""
    apart = relay.reshape(relay.var(name, shape=(B, length, H * D)), (B, length, H, D))
    matrices = relay.reshape(relay.transpose(apart, axes=axes), (B * H, length, D))
    return relay.transpose(matrices, axes=(0, 2, 1)) if turned else matrices


def attended(change=lambda scores: scores, keys=K, finish=lambda weights: weights, axis=-1):
    scores = relay.nn.batch_matmul(heads("q", S), heads("k", keys))
    scores = change(relay.reshape(scores, (B, H, S, keys)))
    weights = relay.reshape(finish(relay.nn.softmax(scores, axis=axis)), (B * H, S, keys))
    mixed = relay.nn.batch_matmul(weights, heads("v", keys, turned=True))
    together = relay.transpose(relay.reshape(mixed, (B, H, S, D)), axes=(0, 2, 1, 3))
    return relay.reshape(together, (B, S, H * D))


def fused(body):
    return apply([FuseAttention(), SimplifyExpr(), FoldConstant()], body)


def calls(graph, name):
    return [each for each in post_order(graph.body) if isinstance(each, relay.Call) and each.op.name == name]


def rounding(params, arrays):
    """How far off a result may be. Scores are sums of D products, a factor and a mask, each rounded; a weight is off by
    that much relative to itself, and by an exponential and its share of the sum; weights sum up to 1.
    """
    largest = {param.name_hint: float(np.abs(array).max()) for param, array in zip(params, arrays, strict=True)}
    score = D * largest["q"] * largest["k"] + largest.get("mask", 0.0)
    return (2 * (D + 3) * score + 2 * K + 6) * np.finfo("float32").eps * largest["v"]


def require_fused(body, **attributes):
    """One attention and no transpose of heads is left; results are those of the graph before, but for rounding."""
    before, after = function(body), fused(body)
    (found,) = calls(after, "nn.attention")
    for name, value in attributes.items():
        assert found.attrs[name] == value
    assert not calls(after, "nn.batch_matmul") and not calls(after, "nn.softmax")
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(of.shape).astype(str(of.dtype)) for of in (p.checked_type for p in before.params)]
    arrays = [array > 0 if array.dtype == bool else array for array in arrays]
    one, other = np.asarray(evaluate(before, arrays)), np.asarray(evaluate(after, arrays))
    assert one.shape == other.shape
    np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    assert np.nanmax(np.abs(one - other)) <= 2 * rounding(before.params, arrays)
    return found, after


def scaled(scores):
    return relay.multiply(scores, relay.const(0.25))


def test_heads_are_read_where_they_lie():
    _, after = require_fused(attended(scaled), scale=0.25, layouts="BSHD BSHD BSHD BSHD", causal=False)
    assert not calls(after, "transpose")


def test_a_constant_triangle_is_causal():
    found, _ = require_fused(
        attended(lambda scores: relay.add(scaled(scores), relay.const(TRIANGLE)), keys=S), causal=True, diagonal=0
    )
    assert len(found.args) == 3


def test_another_mask_is_added_with_queries_last():
    mask = relay.var("mask", shape=(B, 1, 1, K))
    found, _ = require_fused(attended(lambda scores: relay.divide(relay.add(mask, scores), relay.const(2.0))))
    assert found.attrs.scale == 0.5 and tuple(found.args[3].checked_type.shape) == (B, 1, K, 1)
    table = relay.const(np.where(TRIANGLE < 0, -1e4, 0).astype("float32"))  # scores might be as large as that
    found, _ = require_fused(attended(lambda scores: relay.add(scores, table), keys=S), causal=False, scale=1.0)
    assert len(found.args) == 4


@pytest.mark.parametrize("shape", [(1, 1, 1, K), (1, K), (S, 1), (1, 1)])
def test_what_is_the_same_for_all_queries_or_keys_is_no_triangle(shape):
    low = np.where(np.arange(shape[-1]) < 3, 0, -1e9).astype("float32") + np.zeros(shape, "float32")
    require_fused(attended(lambda scores: relay.add(scores, relay.const(low))), causal=False)
    seen, hidden = relay.const(low == 0), relay.const(-np.inf, "float32")
    require_fused(attended(lambda scores: relay.where(seen, scores, hidden)), causal=False)


def test_a_mask_for_each_head_is_that_of_all_batches():
    mask = relay.var("mask", shape=(H, S, K))
    found, _ = require_fused(attended(lambda scores: relay.add(scores, mask)))
    assert tuple(found.args[3].checked_type.shape) == (1, H, K, S)
    scores = relay.add(relay.nn.batch_matmul(heads("q", S), heads("k", K)), relay.var("mask", shape=(B * H, S, K)))
    found, _ = require_fused(relay.nn.batch_matmul(relay.nn.softmax(scores), heads("v", K, turned=True)))
    assert tuple(found.args[3].checked_type.shape) == (B, H, K, S)


def test_what_is_not_to_be_seen_is_hidden_and_rows_without_anything_are_zero():
    seen = relay.var("seen", shape=(S, K), dtype="bool")
    low = relay.const(-np.inf, "float32")
    require_fused(attended(lambda scores: relay.where(seen, scores, low)), hidden_is_zero=False)
    dead = relay.logical_not(relay.any(seen, axis=[-1], keepdims=True))
    require_fused(
        attended(
            lambda scores: relay.where(seen, scores, low),
            finish=lambda weights: relay.where(dead, relay.const(0.0), weights),
        ),
        hidden_is_zero=True,
    )


def test_factors_before_the_product_join_the_scale():
    q = relay.multiply(relay.var("q", shape=(B, S, D)), relay.const(0.5))
    k = relay.var("k", shape=(B, K, D))
    weights = relay.nn.softmax(relay.nn.batch_matmul(q, k))
    body = relay.nn.batch_matmul(weights, relay.var("v", shape=(B, K, D)), transpose_b=False)
    require_fused(body, scale=0.5, layouts="BHSD BHSD BHSD BHSD")


def test_repeated_heads_are_read_several_times():
    q = relay.reshape(relay.var("q", shape=(B, 4, S, D)), (B * 4, S, D))
    k, v = (
        relay.reshape(relay.repeat(relay.var(name, shape=(B, 2, K, D)), repeats=2, axis=1), (B * 4, K, D))
        for name in ("k", "v")
    )
    weights = relay.nn.softmax(relay.nn.batch_matmul(q, k))
    _, after = require_fused(relay.nn.batch_matmul(weights, v, transpose_b=False))
    assert not calls(after, "repeat")


def hidden_by(seen, axis):
    dead = relay.logical_not(relay.any(seen, axis=[axis], keepdims=True))
    return attended(
        lambda scores: relay.where(seen, scores, relay.const(-np.inf, "float32")),
        keys=S,
        finish=lambda weights: relay.where(dead, relay.const(0.0), weights),
    )


def counted_in_another_way():
    q, k, v = (relay.var(name, shape=(B * H, *shape)) for name, shape in [("q", (S, D)), ("k", (K, D)), ("v", (D, K))])
    scores = relay.reshape(relay.nn.batch_matmul(q, k), (B, H, S, K))
    weights = relay.nn.softmax(relay.add(scores, relay.var("mask", shape=(H, S, K))))
    return relay.nn.batch_matmul(relay.reshape(weights, (B * H, S, K)), v)


UNLIKE = {
    "a softmax along queries": lambda: attended(axis=2),
    "scores that are used elsewhere": lambda: relay.Tuple(
        [
            scores := relay.nn.batch_matmul(heads("q", S), heads("k", K)),
            relay.nn.batch_matmul(relay.nn.softmax(scores), heads("v", K, turned=True)),
        ]
    ),
    "a finite number where all may be hidden": lambda: attended(
        lambda scores: relay.where(relay.var("seen", shape=(S, K), dtype="bool"), scores, relay.const(-1e9))
    ),
    "rows without anything by another axis": lambda: hidden_by(relay.var("seen", shape=(S, S), dtype="bool"), axis=-2),
    "weights that are read as others": lambda: relay.nn.batch_matmul(
        relay.reshape(relay.nn.softmax(relay.nn.batch_matmul(heads("q", S), heads("k", K))), (B * H, K, S)),
        heads("v", S, turned=True),
    ),
    "a mask for matrices that are counted in another way": counted_in_another_way,
    "a factor below zero": lambda: attended(lambda scores: relay.multiply(scores, relay.const(-1.0))),
    "an activation": lambda: attended(relay.tanh),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_other_graphs_stay(name):
    after = fused(UNLIKE[name]())
    assert not calls(after, "nn.attention") and len(calls(after, "nn.batch_matmul")) == 2


LOW = relay.const(-np.inf, "float32")
LATER = relay.const(TRIANGLE)
EARLIER = relay.const(TRIANGLE == 0)
WAYS = {
    "a triangle that is added": (lambda scores: relay.add(scores, LATER), {"causal_by": "add"}),
    "a triangle that is chosen": (lambda scores: relay.where(EARLIER, scores, LOW), {"causal_by": "select"}),
    "chosen after a mask": (
        lambda scores: relay.where(EARLIER, relay.add(scores, relay.var("mask", shape=(B, 1, S, S))), LOW),
        {"causal_by": "select", "mask_selects": False},
    ),
    "chosen before a mask": (
        lambda scores: relay.add(relay.where(EARLIER, scores, LOW), relay.var("mask", shape=(B, 1, S, S))),
        {"causal_by": "select_first", "mask_selects": False},
    ),
    "a mask that is chosen": (
        lambda scores: relay.where(relay.var("seen", shape=(S, S), dtype="bool"), scores, LOW),
        {"mask_selects": True},
    ),
    "chosen after a constant": (
        lambda scores: relay.where(
            relay.var("seen", shape=(S, S), dtype="bool"), relay.add(scores, relay.const(np.eye(S, dtype="f"))), LOW
        ),
        {"mask_selects": True},
    ),
}


@pytest.mark.parametrize("spoiled", ["k", "v", "mask"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_hidden_and_no_number_counts_as_it_did(way, number, spoiled):
    change, attributes = WAYS[way]
    body = attended(change, keys=S)
    found, _ = require_fused(body, **attributes)
    before, after = function(body), fused(body)
    random = np.random.default_rng(1)
    arrays = [random.standard_normal(of.shape).astype("float32") for of in (p.checked_type for p in before.params)]
    for place, param in enumerate(before.params):
        if param.name_hint == spoiled:
            arrays[place][(0, 0, 0, S - 1) if spoiled == "mask" else (0, S - 1, 2)] = number
        if param.name_hint == "seen":
            arrays[place] = np.tri(S, dtype=bool)
    with np.errstate(all="ignore"):
        wanted = np.asarray(evaluate(before, arrays))
        meant = np.asarray(evaluate(after, arrays))
        native = relay.build(IRModule.from_expr(function(body)), "llvm")(*arrays)
    np.testing.assert_array_equal(np.isnan(meant), np.isnan(wanted))
    np.testing.assert_array_equal(np.isnan(native), np.isnan(wanted))


def test_masks_that_are_added_and_chosen_stay_apart():
    mask, seen = relay.var("mask", shape=(S, K)), relay.var("seen", shape=(S, K), dtype="bool")
    after = fused(attended(lambda scores: relay.where(seen, relay.add(scores, mask), LOW)))
    assert not calls(after, "nn.attention")
