"""prepare: weights are laid out once, when a model is compiled."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.model.kernels import forget
from loopwright.model.prepack_constants import kept_arguments
from tests.compile_caching import switch_on


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def convolution(channels=32, shared=None):
    x = relay.var("x", shape=(1, channels, 14, 14))
    weights = relay.const(numbers(channels, channels, 3, 3, seed=1))
    other = weights if shared else relay.const(numbers(channels, channels, 3, 3, seed=2))
    y = relay.nn.relu(relay.nn.conv2d(x, weights, padding=(1, 1)))
    return relay.Function([x], relay.nn.relu(relay.nn.conv2d(y, other, padding=(1, 1))))


def agrees(function, model, x):
    expected = relay.create_executor("debug", relay.IRModule.from_expr(function)).evaluate()(x)
    np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-3)


def test_weights_of_convolutions_are_packed_when_compiling():
    function = convolution()
    model = relay.build(relay.IRModule.from_expr(function))
    prepared = model.compiled.plan.prepared
    assert len(prepared.made) == 2
    assert len(prepared.constants) == 2, "the weights as they were are not in the library"
    for launch, kernel in model.compiled.launches.items():
        assert kernel.early is not None and kernel.keeps is not None
        assert launch.arguments[1] not in kept_arguments(launch, kernel)
    agrees(function, model, numbers(1, 32, 14, 14))


def test_the_same_weights_have_one_place():
    function = convolution(64, shared=True)  # fewer channels go by vectors of pixels, which take weights as they are
    with PassContext(opt_level=3, disabled_pass=["ChooseLayouts"]):  # both layers in one layout
        model = relay.build(relay.IRModule.from_expr(function))
    offsets = model.compiled.plan.constant_offsets
    first, second = (offsets[made[0]] for made in model.compiled.plan.prepared.made.values())
    assert first == second
    agrees(function, model, numbers(1, 64, 14, 14))


def test_weights_that_somebody_else_reads_stay():
    x = relay.var("x", shape=(1, 64, 14, 14))
    weights = relay.const(numbers(64, 64, 3, 3))
    y = relay.nn.conv2d(x, weights, padding=(1, 1))
    function = relay.Function([x], relay.Tuple([y, weights]))
    model = relay.build(relay.IRModule.from_expr(function))
    found = model(numbers(1, 64, 14, 14))
    np.testing.assert_array_equal(found[1], weights.data)
    assert len(model.compiled.plan.prepared.constants) == 2


def test_weights_that_are_inputs_are_packed_in_the_call():
    x, w = relay.var("x", shape=(1, 16, 14, 14)), relay.var("w", shape=(16, 16, 3, 3))
    model = relay.build(relay.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w))))
    assert not model.compiled.plan.prepared.made
    assert all(kernel.early is None for kernel in model.compiled.launches.values())


def test_early_functions_come_from_the_cache(monkeypatch, tmp_path):
    switch_on(monkeypatch, tmp_path)
    function = convolution(24)
    for is_cached in (False, True):
        model = relay.build(relay.IRModule.from_expr(function))
        counts = model.compiled.counts
        assert (counts.compiled == 0) is is_cached and (counts.from_cache > 0) is is_cached
        agrees(function, model, numbers(1, 24, 14, 14))
        forget()


def test_weights_inside_a_loop():
    i, x = relay.var("i", shape=(), dtype="int32"), relay.var("x", shape=(8, 64))
    weights = relay.const(numbers(64, 64) / 8)
    loop = relay.loops.while_loop(
        lambda i, x: relay.less(i, relay.const(3, "int32")),
        [i, x],
        lambda i, x: [i + relay.const(1, "int32"), relay.nn.dense(x, weights)],
    )
    start = relay.var("start", shape=(8, 64))
    out = relay.TupleGetItem(loop(relay.const(0, "int32"), start), 1)
    model = relay.build(relay.IRModule.from_expr(relay.Function([start], out)))
    expected = numbers(8, 64, seed=3).astype("float64")
    for _ in range(3):
        expected = expected @ weights.data.astype("float64").T
    np.testing.assert_allclose(model(numbers(8, 64, seed=3)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"])
def test_for_another_machine_this_one_packs(target):
    model = relay.build(relay.IRModule.from_expr(convolution(16)), target)
    prepared = model.compiled.plan.prepared
    assert len(prepared.made) == 2
    packed = prepared.array(next(iter(prepared.made.values()))[0])
    largest = [np.sort(array, axis=None)[-9:] for array in (packed, numbers(16, 16, 3, 3, seed=1))]
    np.testing.assert_array_equal(*largest)


def test_the_profile_runs_with_prepared_weights():
    function = convolution()
    model = relay.build(relay.IRModule.from_expr(function))
    x = numbers(1, 32, 14, 14)
    np.testing.assert_array_equal(model.compiled.profile(x).outputs[0], model(x))
