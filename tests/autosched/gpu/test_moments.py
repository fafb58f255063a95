"""moments: a mean and the squares of distances from it in one pass, what is taken for them, and when it pays."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.gpu import GpuMachine, idiom_kernels
from loopwright.autosched.gpu.moments import is_worth_it, lanes_of, moments_of
from loopwright.ir import BlockRealize, collect_statements

EMULATED = "cuda -model=emulated"
H200 = GpuMachine.of("nvidia/nvidia-h200")


def statistics(shape, axes=(0, 2, 3), dtype="float32", divisor=None, other=0):
    """The sum, the mean and the squares of distances of some data, as a list of tensors with the data first."""
    data = te.placeholder(shape, dtype, name="data")
    kept = [k for k in range(len(shape)) if k not in axes]

    def over(name, value):
        reduced = [te.reduce_axis((0, shape[k]), name=f"k{k}") for k in axes]

        def at(*place):
            index = dict(zip(kept, place, strict=True)) | dict(zip(axes, [k.var for k in reduced], strict=True))
            return te.sum(value([index[k] for k in range(len(shape))], place), axis=reduced)

        return te.compute([shape[k] for k in kept], at, name=name)

    count = divisor or int(np.prod([shape[k] for k in axes]))
    total = over("total", lambda index, _: data(*index))
    mean = te.compute(total.shape, lambda *at: total(*at) / te.const(float(count), dtype), name="mean")

    def squared(index, place):
        away = data(*index) - mean(*place)
        return away * away if not other else away * (data(*index) - te.const(float(other), dtype))

    return [data, mean, over("squares", squared)]


def found(tensors):
    function = te.create_prim_func(tensors)
    parts = [part for part in collect_statements(function.body, BlockRealize) if part.block.iter_vars]
    return moments_of(parts)


def take_all(patch):
    """However small they are."""
    patch.setattr(idiom_kernels, "is_worth_it", lambda *_: True)
    patch.setattr("loopwright.autosched.gpu.rules.moments.LONGEST_KEPT", 0)


def run(tensors, given):
    plan = autosched.apply(tensors, EMULATED)
    assert [decision.rule for decision in plan.decisions] == ["moments"], plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    first = None
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        results = [np.zeros([int(size) for size in out.shape], given.dtype) for out in tensors[1:]]
        module(given, *results)
        first = first or results
        for one, other in zip(results, first, strict=True):
            np.testing.assert_array_equal(one, other)
    return first


@pytest.mark.parametrize(
    ("shape", "axes", "dtype"),
    [
        ((3, 2, 70, 80), (0, 2, 3), "float32"),  # the last part of three is short
        ((6, 5, 7, 7), (0, 2, 3), "float32"),  # no vectors
        ((32, 8, 32), (0, 2), "float32"),
        ((4, 1, 1 << 11), (0, 2), "float64"),  # one whole part
        ((3, 2, 2731), (0, 2), "float32"),  # and one more
    ],
)
def test_what_is_computed(monkeypatch, shape, axes, dtype):
    take_all(monkeypatch)
    given = np.random.default_rng(0).standard_normal(shape).astype(dtype) + 1000
    mean, squares = run(statistics(shape, axes, dtype), given)
    wide = given.astype("float64")
    np.testing.assert_allclose(mean, wide.mean(axes), rtol=1e-6)
    np.testing.assert_allclose(squares, wide.var(axes) * np.prod([shape[k] for k in axes]), rtol=1e-5)


def test_what_is_not_a_number_shows():
    given = np.ones((2, 4, 1500), "float32")
    given[1, 0, 1499], given[0, 1, 5], given[1, 2, 7] = np.nan, np.inf, 3e38
    tensors = statistics((2, 4, 1500), (0, 2))
    with pytest.MonkeyPatch.context() as patch:
        take_all(patch)
        mean, squares = run(tensors, given)
    assert np.isnan(mean[0]) and np.isnan(squares[:2]).all() and np.isinf(mean[1]) and np.isinf(squares[2])
    np.testing.assert_array_equal([mean[3], squares[3]], [1, 0])


def test_batch_norm_uses_them(monkeypatch):
    take_all(monkeypatch)
    data = te.placeholder((6, 5, 9, 8), name="data")
    given = [te.placeholder((5,), name=name) for name in ("gamma", "beta", "mean", "var")]
    out = topi.nn.batch_norm(data, *given, training=True)[0]
    plan = autosched.apply([data, *given, out], EMULATED)
    assert "moments" in [decision.rule for decision in plan.decisions]
    x = np.random.default_rng(0).standard_normal((6, 5, 9, 8)).astype("float32")
    result, one = np.zeros_like(x), np.ones(5, "float32")
    lw.build(plan.mod, target=EMULATED)(x, one, 0 * one, 0 * one, one, result)
    wide = x.astype("float64")
    mean, var = wide.mean((0, 2, 3), keepdims=True), wide.var((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(result, (wide - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5)


def test_what_is_taken_for_moments():
    assert found(statistics((6, 5, 9, 8))) is not None
    assert found(statistics((6, 5, 9, 8), divisor=431)) is None  # an unbiased mean is no mean
    assert found(statistics((6, 5, 9, 8), other=2)) is None


def test_when_it_pays():
    large, small = found(statistics((64, 256, 56, 56))), found(statistics((32, 512, 7, 7)))
    assert is_worth_it(large, H200) and lanes_of(large, H200) == 4
    assert not is_worth_it(small, H200) and lanes_of(small, H200) == 1
    assert not is_worth_it(found(statistics((64, 56, 56, 256), (0, 1, 2))), H200)  # across memory
    assert not is_worth_it(found(statistics((8, 999, 64, 64), dtype="float16")), H200)
    plan = autosched.apply(statistics((32, 512, 7, 7)), "nvidia/nvidia-h200")
    assert "moments" not in [decision.rule for decision in plan.decisions]


def test_rows_stay_with_the_rule_of_rows():
    """A block has a row in registers for its mean, its squares and what is computed of them."""
    x = te.placeholder((8192, 4096), name="x")
    g, b = te.placeholder((4096,), name="g"), te.placeholder((4096,), name="b")
    plan = autosched.apply([x, g, b, topi.nn.layer_norm(x, g, b, [1])], "nvidia/nvidia-h200")
    assert [decision.rule for decision in plan.decisions][-1] == "rows"
    assert "moments" not in plan.explain()
