"""FuseAttention: which graphs are attention, what their parts become, and that the numbers stay."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import FoldConstant, FuseAttention, SimplifyExpr
from tests.relay.pass_check import Constants, check, check_unchanged, program, run_passes

FUSE = [FuseAttention(), SimplifyExpr(), FoldConstant()]
B, H, S, K, D = 2, 3, 5, 7, 4
TRIANGLE = np.triu(np.full((S, S), -1e9, "float32"), 1)


def _params(keys: int, more: str) -> str:
    tensors = "%q: Tensor[(2, 5, 12), float32], %k: Tensor[(2, {0}, 12), float32], %v: Tensor[(2, {0}, 12), float32]"
    return tensors.format(keys) + more


def attended(weights: str, keys: int = K, more: str = "") -> str:
    """A graph that mixes values by `weights` of `%scores`; heads lie side by side, as projections leave them."""
    return f"""
    fn ({_params(keys, more)}) {{
      %0 = transpose(reshape(%q, newshape=[2, 5, 3, 4]), axes=[0, 2, 1, 3]);
      %1 = transpose(reshape(%k, newshape=[2, {keys}, 3, 4]), axes=[0, 2, 1, 3]);
      %2 = nn.batch_matmul(reshape(%0, newshape=[6, 5, 4]), reshape(%1, newshape=[6, {keys}, 4]));
      %3 = reshape(%2, newshape=[2, 3, 5, {keys}]);
      %4 = reshape({weights.replace("%scores", "%3")}, newshape=[6, 5, {keys}]);
      %5 = transpose(reshape(%v, newshape=[2, {keys}, 3, 4]), axes=[0, 2, 1, 3]);
      %6 = transpose(reshape(%5, newshape=[6, {keys}, 4]), axes=[0, 2, 1]);
      %7 = reshape(nn.batch_matmul(%4, %6), newshape=[2, 3, 5, 4]);
      reshape(transpose(%7, axes=[0, 2, 1, 3]), newshape=[2, 5, 12])
    }}
    """


def attention(rest: str, keys: int = K, more: str = "") -> str:
    """One operator that reads heads where they lie; `rest` is its mask and its attributes, but for the layouts."""
    return f"""
    fn ({_params(keys, more)}) {{
      %0 = reshape(%q, newshape=[2, 5, 3, 4]);
      %1 = reshape(%k, newshape=[2, {keys}, 3, 4]);
      %2 = reshape(%v, newshape=[2, {keys}, 3, 4]);
      %3 = nn.attention(%0, %1, %2, {rest}, layouts="BSHD BSHD BSHD BSHD", mask_layout="BHKQ");
      reshape(%3, newshape=[2, 5, 12])
    }}
    """


def rounding(params: Any, arrays: Any) -> float:
    """How far off a result may be. Scores are sums of D products, a factor and a mask, each rounded; a weight is off by
    that much relative to itself, and by an exponential and its share of the sum; weights sum up to 1.
    """
    largest = {param.name_hint: float(np.abs(array).max()) for param, array in zip(params, arrays, strict=True)}
    score = D * largest["q"] * largest["k"] + largest.get("mask", 0.0)
    return (2 * (D + 3) * score + 2 * K + 6) * np.finfo("float32").eps * largest["v"]


def near(before: IRModule, after: IRModule) -> None:
    """Results are those of the graph before, but for rounding."""
    random = np.random.default_rng(0)
    params = before["main"].params
    arrays = [random.standard_normal(of.shape).astype(str(of.dtype)) for of in (p.checked_type for p in params)]
    arrays = [array > 0 if array.dtype == bool else array for array in arrays]
    one, other = (np.asarray(evaluate(mod["main"], arrays, mod)) for mod in (before, after))
    assert one.shape == other.shape
    np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    assert np.nanmax(np.abs(one - other)) <= 2 * rounding(params, arrays)


def _check(weights: str, rest: str, keys: int = K, more: str = "", constants: Constants | None = None) -> None:
    check(FUSE, attended(weights, keys, more), attention(rest, keys, more), constants, near)


def test_heads_are_read_where_they_lie():
    _check("nn.softmax(multiply(%scores, 0.25f))", "scale=0.25f")


def test_a_constant_triangle_is_causal():
    weights = "nn.softmax(add(multiply(%scores, 0.25f), $triangle))"
    _check(weights, "scale=0.25f, causal=True", keys=S, constants={"triangle": TRIANGLE})


def test_another_mask_is_added_with_queries_last():
    _check(
        "nn.softmax(divide(add(%mask, %scores), 2f))",
        "reshape(multiply(%mask, 0.5f), newshape=[2, 1, 7, 1]), scale=0.5f",
        more=", %mask: Tensor[(2, 1, 1, 7), float32]",
    )
    table = np.where(TRIANGLE < 0, -1e4, 0).astype("float32")  # scores might be as large as that
    constants = {"table": table, "transposed": table.T.reshape(1, 1, S, S)}
    _check("nn.softmax(add(%scores, $table))", "$transposed, scale=1.0f", keys=S, constants=constants)


@pytest.mark.parametrize("shape", [(1, 1, 1, K), (1, K), (S, 1), (1, 1)])
def test_what_is_the_same_for_all_queries_or_keys_is_no_triangle(shape: tuple[int, ...]):
    low = np.where(np.arange(shape[-1]) < 3, 0, -1e9).astype("float32") + np.zeros(shape, "float32")
    last = (1, 1, shape[-1], shape[-2])
    constants = {"low": low, "mask": low.reshape(last)}
    _check("nn.softmax(add(%scores, $low))", "$mask, scale=1.0f", constants=constants)
    constants = {"seen": low == 0, "mask": np.where(low == 0, 0, -np.inf).astype("float32").reshape(last)}
    rest = "$mask, scale=1.0f, mask_selects=True"
    _check("nn.softmax(where($seen, %scores, -inff))", rest, constants=constants)


def test_a_mask_for_each_head_is_that_of_all_batches():
    _check(
        "nn.softmax(add(%scores, %mask))",
        "transpose(reshape(%mask, newshape=[1, 3, 5, 7], allowzero=True), axes=[0, 1, 3, 2]), scale=1.0f",
        more=", %mask: Tensor[(3, 5, 7), float32]",
    )
    check(
        FUSE,
        """
        fn (%q: Tensor[(2, 5, 12), float32], %k: Tensor[(2, 7, 12), float32], %mask: Tensor[(6, 5, 7), float32],
            %v: Tensor[(2, 7, 12), float32]) {
          %0 = transpose(reshape(%q, newshape=[2, 5, 3, 4]), axes=[0, 2, 1, 3]);
          %1 = transpose(reshape(%k, newshape=[2, 7, 3, 4]), axes=[0, 2, 1, 3]);
          %2 = nn.batch_matmul(reshape(%0, newshape=[6, 5, 4]), reshape(%1, newshape=[6, 7, 4]));
          %3 = nn.softmax(add(%2, %mask));
          %4 = transpose(reshape(%v, newshape=[2, 7, 3, 4]), axes=[0, 2, 1, 3]);
          %5 = transpose(reshape(%4, newshape=[6, 7, 4]), axes=[0, 2, 1]);
          nn.batch_matmul(%3, %5)
        }
        """,
        """
        fn (%q: Tensor[(2, 5, 12), float32], %k: Tensor[(2, 7, 12), float32], %mask: Tensor[(6, 5, 7), float32],
            %v: Tensor[(2, 7, 12), float32]) {
          %0 = reshape(%q, newshape=[2, 5, 3, 4]);
          %1 = reshape(%k, newshape=[2, 7, 3, 4]);
          %2 = reshape(%v, newshape=[2, 7, 3, 4]);
          %3 = transpose(reshape(%mask, newshape=[2, 3, 5, 7], allowzero=True), axes=[0, 1, 3, 2]);
          %4 = nn.attention(%0, %1, %2, %3, scale=1.0f, layouts="BSHD BSHD BSHD BSHD", mask_layout="BHKQ");
          reshape(transpose(%4, axes=[0, 2, 1, 3]), newshape=[6, 5, 4], allowzero=True)
        }
        """,
        compare=near,
    )


def test_what_is_not_to_be_seen_is_hidden_and_rows_without_anything_are_zero():
    more = ", %seen: Tensor[(5, 7), bool]"
    mask = "transpose(reshape(where(%seen, 0f, -inff), newshape=[1, 1, 5, 7], allowzero=True), axes=[0, 1, 3, 2])"
    weights = "nn.softmax(where(%seen, %scores, -inff))"
    _check(weights, f"{mask}, scale=1.0f, mask_selects=True", more=more)
    _check(
        f"where(logical_not(any(%seen, axis=[-1], keepdims=True)), 0f, {weights})",
        f"{mask}, scale=1.0f, mask_selects=True, hidden_is_zero=True",
        more=more,
    )


def test_factors_before_the_product_join_the_scale():
    check(
        FUSE,
        """
        fn (%q: Tensor[(2, 5, 4), float32], %k: Tensor[(2, 7, 4), float32], %v: Tensor[(2, 7, 4), float32]) {
          %0 = nn.softmax(nn.batch_matmul(multiply(%q, 0.5f), %k));
          nn.batch_matmul(%0, %v, transpose_b=False)
        }
        """,
        """
        fn (%q: Tensor[(2, 5, 4), float32], %k: Tensor[(2, 7, 4), float32], %v: Tensor[(2, 7, 4), float32]) {
          %0 = reshape(%q, newshape=[2, 1, 5, 4], allowzero=True);
          %1 = reshape(%k, newshape=[2, 1, 7, 4], allowzero=True);
          %2 = reshape(%v, newshape=[2, 1, 7, 4], allowzero=True);
          %3 = nn.attention(%0, %1, %2, scale=0.5f, layouts="BHSD BHSD BHSD BHSD", mask_layout="BHKQ");
          reshape(%3, newshape=[2, 5, 4], allowzero=True)
        }
        """,
        compare=near,
    )


def test_repeated_heads_are_read_several_times():
    check(
        FUSE,
        """
        fn (%q: Tensor[(2, 4, 5, 4), float32], %k: Tensor[(2, 2, 7, 4), float32], %v: Tensor[(2, 2, 7, 4), float32]) {
          %0 = reshape(repeat(%k, repeats=2, axis=1), newshape=[8, 7, 4]);
          %1 = reshape(repeat(%v, repeats=2, axis=1), newshape=[8, 7, 4]);
          %2 = nn.softmax(nn.batch_matmul(reshape(%q, newshape=[8, 5, 4]), %0));
          nn.batch_matmul(%2, %1, transpose_b=False)
        }
        """,
        """
        fn (%q: Tensor[(2, 4, 5, 4), float32], %k: Tensor[(2, 2, 7, 4), float32], %v: Tensor[(2, 2, 7, 4), float32]) {
          reshape(nn.attention(%q, %k, %v, scale=1.0f, mask_layout="BHKQ"), newshape=[8, 5, 4], allowzero=True)
        }
        """,
        compare=near,
    )


UNLIKE = {
    "a softmax along queries": attended("nn.softmax(%scores, axis=2)"),
    "scores that are used elsewhere": """
    fn (%q: Tensor[(6, 5, 4), float32], %k: Tensor[(6, 7, 4), float32], %v: Tensor[(6, 7, 4), float32]) {
      %0 = nn.batch_matmul(%q, %k);
      (%0, nn.batch_matmul(nn.softmax(%0), %v, transpose_b=False))
    }
    """,
    "a finite number where all may be hidden": attended(
        "nn.softmax(where(%seen, %scores, -1e+09f))", more=", %seen: Tensor[(5, 7), bool]"
    ),
    "rows without anything by another axis": attended(
        "where(logical_not(any(%seen, axis=[-2], keepdims=True)), 0f, nn.softmax(where(%seen, %scores, -inff)))",
        keys=S,
        more=", %seen: Tensor[(5, 5), bool]",
    ),
    "weights that are read as others": """
    fn (%q: Tensor[(6, 5, 4), float32], %k: Tensor[(6, 7, 4), float32], %v: Tensor[(6, 5, 4), float32]) {
      %0 = reshape(nn.softmax(nn.batch_matmul(%q, %k)), newshape=[6, 7, 5]);
      nn.batch_matmul(%0, %v, transpose_b=False)
    }
    """,
    "a mask for matrices that are counted in another way": """
    fn (%q: Tensor[(6, 5, 4), float32], %k: Tensor[(6, 7, 4), float32], %v: Tensor[(6, 4, 7), float32],
        %mask: Tensor[(3, 5, 7), float32]) {
      %0 = nn.softmax(add(reshape(nn.batch_matmul(%q, %k), newshape=[2, 3, 5, 7]), %mask));
      nn.batch_matmul(reshape(%0, newshape=[6, 5, 7]), %v)
    }
    """,
    "a factor below zero": attended("nn.softmax(multiply(%scores, -1f))"),
    "an activation": attended("nn.softmax(tanh(%scores))"),
    "masks that are added and chosen": attended(
        "nn.softmax(where(%seen, add(%scores, %mask), -inff))",
        more=", %seen: Tensor[(5, 7), bool], %mask: Tensor[(5, 7), float32]",
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_other_graphs_stay(name: str):
    check_unchanged(FuseAttention(), UNLIKE[name])


MASK, SEEN = ", %mask: Tensor[(2, 1, 5, 5), float32]", ", %seen: Tensor[(5, 5), bool]"
HIDDEN = "reshape(where(%seen, 0f, -inff), newshape=[1, 1, 5, 5], allowzero=True)"
CONSTANTS: Constants = {
    "later": TRIANGLE,
    "earlier": TRIANGLE == 0,
    "eye": np.eye(S, dtype="float32"),
    "eyes": np.eye(S, dtype="float32").reshape(1, 1, S, S),
}
# How scores are masked: the weights, the rest of the operator, and the parameter of the mask.
WAYS = {
    "a triangle that is added": ("nn.softmax(add(%scores, $later))", "scale=1.0f, causal=True", ""),
    "a triangle that is chosen": (
        "nn.softmax(where($earlier, %scores, -inff))",
        'scale=1.0f, causal=True, causal_by="select"',
        "",
    ),
    "chosen after a mask": (
        "nn.softmax(where($earlier, add(%scores, %mask), -inff))",
        'transpose(%mask, axes=[0, 1, 3, 2]), scale=1.0f, causal=True, causal_by="select"',
        MASK,
    ),
    "chosen before a mask": (
        "nn.softmax(add(where($earlier, %scores, -inff), %mask))",
        'transpose(%mask, axes=[0, 1, 3, 2]), scale=1.0f, causal=True, causal_by="select_first"',
        MASK,
    ),
    "a mask that is chosen": (
        "nn.softmax(where(%seen, %scores, -inff))",
        f"transpose({HIDDEN}, axes=[0, 1, 3, 2]), scale=1.0f, mask_selects=True",
        SEEN,
    ),
    "chosen after a constant": (
        "nn.softmax(where(%seen, add(%scores, $eye), -inff))",
        f"transpose(add({HIDDEN}, $eyes), axes=[0, 1, 3, 2]), scale=1.0f, mask_selects=True",
        SEEN,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_mask(way: str):
    weights, rest, more = WAYS[way]
    _check(weights, rest, S, more, CONSTANTS)


@functools.cache
def _three(way: str) -> tuple[IRModule, IRModule, Any]:
    """The graph, the fused one, and the graph built."""
    weights, _, more = WAYS[way]
    before = program(attended(weights, S, more), CONSTANTS)
    return before, run_passes(FUSE, before), relay.build(before, "llvm")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("spoiled", ["k", "v", "mask"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_hidden_and_no_number_counts_as_it_did(way: str, number: float, spoiled: str):
    before, after, built = _three(way)
    random = np.random.default_rng(1)
    params = before["main"].params
    arrays = [random.standard_normal(of.shape).astype("float32") for of in (p.checked_type for p in params)]
    for index, param in enumerate(params):
        if param.name_hint == spoiled:
            arrays[index][(0, 0, 0, S - 1) if spoiled == "mask" else (0, S - 1, 2)] = number
        if param.name_hint == "seen":
            arrays[index] = np.tri(S, dtype=bool)
    with np.errstate(all="ignore"):
        wanted, meant = (np.asarray(evaluate(mod["main"], arrays, mod)) for mod in (before, after))
        native = built(*arrays)
    np.testing.assert_array_equal(np.isnan(meant), np.isnan(wanted))
    np.testing.assert_array_equal(np.isnan(native), np.isnan(wanted))
