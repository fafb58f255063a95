"""relay.quantize: settings, ranges, which layers become integers, and how near the results stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.quantize import compare, current_qconfig, in_precision, qconfig, quantize
from loopwright.relay.quantize.calibrate import BadSamples
from loopwright.relay.quantize.config import BadQuantization
from loopwright.relay.quantize.insert import is_never_negative
from loopwright.relay.quantize.precision import UnknownPrecision
from loopwright.relay.quantize.ranges import Seen
from loopwright.relay.visitor import post_order
from loopwright.topi.testing import conv_python

Function = Callable[..., np.ndarray]
RANDOM = np.random.default_rng(0)


def _weight(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype("float32")


def _net() -> tuple[Any, dict[str, np.ndarray]]:
    """Two convolutions with a branch around the second, a pool and a dense layer."""
    x = relay.var("x", shape=(2, 4, 6, 6))
    names = {"a": (8, 4, 3, 3), "b": (8, 8, 3, 3), "c": (5, 8)}
    a, b, c = [relay.var(name, shape=shape) for name, shape in names.items()]
    one = relay.nn.relu(relay.nn.conv2d(x, a, padding=(1, 1)))
    two = relay.nn.relu(relay.nn.conv2d(one, b, padding=(1, 1)) + one)
    flat = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(two))
    mod = relay.IRModule.from_expr(relay.Function([x, a, b, c], relay.nn.dense(flat, c)))
    return mod, {name: _weight(*shape) for name, shape in names.items()}


def _samples(count: int = 2) -> list[dict[str, np.ndarray]]:
    return [{"x": RANDOM.standard_normal((2, 4, 6, 6)).astype("float32")} for _ in range(count)]


def _operators(mod: Any) -> list[str]:
    return [each.op.name for each in post_order(mod["main"].body) if isinstance(each, relay.Call)]


def _outputs(mod: Any, params: Any, samples: Any) -> list[list[np.ndarray]]:
    rows = []
    for sample in samples:
        given = [sample.get(one.name_hint, params.get(one.name_hint)) for one in mod["main"].params]
        rows.append([evaluate(mod["main"], given, mod)])
    return rows


class Noise(NamedTuple):
    """Exact values of a model, and the standard deviation of the same values in another precision.

    A number that is rounded to multiples of a step is off by up to half of it, each error as likely as another: its
    variance is step² / 12. Errors of different numbers are independent.
    """

    value: np.ndarray
    deviation: np.ndarray

    def stored(self, scale: float, dtype: np.dtype) -> Noise:
        """As multiples of `scale` that fit `dtype`; what lies outside is clipped."""
        limits = np.iinfo(dtype)
        cut = np.abs(self.value - np.clip(self.value, limits.min * scale, limits.max * scale))
        return Noise(self.value, np.sqrt(self.deviation**2 + scale**2 / 12) + cut)

    def rounded(self, unit: float) -> Noise:
        """In a type whose numbers are off by `unit` of themselves at most."""
        return Noise(self.value, np.sqrt(self.deviation**2 + (unit * self.value) ** 2 / 3))

    def times(self, weight: np.ndarray, variance: np.ndarray, product: Function, sums: float = 0.0) -> Noise:
        """A product with weights of that variance; each of its sums is off by `sums` of its terms at most."""
        carried = product(self.value**2, variance) + product(self.deviation**2, weight**2)
        terms = np.prod(weight.shape[1:])
        added = terms * (sums * product(np.abs(self.value), np.abs(weight))) ** 2 / 3
        return Noise(product(self.value, weight), np.sqrt(carried + added))

    def assert_holds(self, found: np.ndarray) -> None:
        """Nothing is further off than six deviations: of a thousand million results, two are."""
        assert found.shape == self.value.shape
        difference = np.abs(found - self.value)
        assert 0 < difference.max() and (difference <= 6 * self.deviation).all()


class Layer(NamedTuple):
    """A layer of integers: what its data and its weights are multiples of."""

    scale: float
    dtype: np.dtype
    steps: np.ndarray  # of each filter
    weight: np.ndarray  # as stored, times its steps

    def stored(self, value: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`value` as its data is stored; where `error` decides to which side a number is rounded, it is a step off."""
        limits, exact = np.iinfo(self.dtype), value / self.scale
        is_tie = (0.5 - np.abs(exact - np.rint(exact))) * self.scale <= error
        return np.clip(np.rint(exact), limits.min, limits.max) * self.scale, np.where(is_tie, self.scale, 0.0)

    def product(self, function: Function, value: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A product of stored numbers: exact sums, of which four scales and products are rounded in float32."""
        result = function(value, self.weight)
        carried = function(error, np.abs(self.weight))
        return result, carried + 4 * 2.0**-24 * (np.abs(result) + carried)


def _layers(mod: Any) -> list[Layer]:
    layers = []
    for call in post_order(mod["main"].body):
        if isinstance(call, relay.Call) and call.op.name in ("qnn.conv2d", "qnn.dense"):
            data, weight, _, _, scale, weight_scale = call.args
            steps = weight_scale.data.astype("float64").reshape(-1, *[1] * (weight.data.ndim - 1))
            dtype = data.checked_type.dtype.numpy()
            layers.append(Layer(float(scale.data), dtype, steps, weight.data * steps))
    return layers


def _integers(given: Noise, weight: np.ndarray, layer: Layer, product: Function) -> Noise:
    """A layer of integers, whose sums are exact."""
    variance = np.broadcast_to(layer.steps**2 / 12, weight.shape)
    return given.stored(layer.scale, layer.dtype).times(weight, variance, product)


def _convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return conv_python(x, w, 1, 1, 1, 1, "NCHW")


def _dense(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x @ w.T


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _exact(array: np.ndarray) -> Noise:
    return Noise(array.astype("float64"), np.zeros(array.shape))


def test_settings_are_a_context():
    assert current_qconfig().skip_conv_layers == [0] and current_qconfig().weight_scale == "power2"
    with qconfig(nbit_weight=4, calibrate_mode="min_max") as outer:
        with qconfig(skip_dense_layer=False):
            assert current_qconfig().nbit_weight == 4 and not current_qconfig().skip_dense_layer
        assert current_qconfig() is outer and outer.skip_dense_layer
    assert current_qconfig().nbit_weight == 8


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"calibrate_mode": "guess"}, "calibrate_mode is 'guess'"),
        ({"weight_scale": "row"}, "weight_scale is 'row'"),
        ({"nbit_input": 16}, "nbit_input is 16"),
        ({"nbit_activation": 16}, "only 32 is built"),
        ({"global_scale": -1.0}, "no magnitude"),
        ({"percentile": 0}, "not between 0 and 100"),
        ({"bits": 8}, "there is no setting 'bits'"),
        ({"partition_conversions": "enabled"}, "only 'disabled'"),
    ],
)
def test_bad_settings(settings: Any, text: str):
    with pytest.raises(BadQuantization, match=text):
        qconfig(**settings)


def test_reaches():
    seen = Seen()
    assert seen.reach("min_max", 99.0, 128) == 1.0  # nothing but zeros, or nothing at all
    seen.add(np.zeros(3, "float32"))
    seen.add(np.linspace(-1, 1, 10_001).astype("float32"))
    seen.add(np.array([5.0, -50.0, np.inf, np.nan], "float32"))
    assert seen.largest == 50.0
    assert seen.reach("min_max", 99.0, 128) == 50.0
    assert 0.9 < seen.reach("percentile", 99.9, 128) < 1.2
    assert seen.reach("percentile", 100.0, 128) == 50.0
    assert 0.9 < seen.reach("kl_divergence", 0, 128) < 10  # the two far away are cut off
    assert seen.counts.sum() == 10_001 + 3 + 2
    single = Seen()
    single.add(np.array([2.0], "float32"))
    assert [single.reach(mode, 99.0, 128) for mode in ("percentile", "kl_divergence")] == [2.0, 2.0]


def test_what_cannot_be_negative():
    x = relay.var("x", shape=(1, 2, 4, 4))
    one = relay.nn.relu(x)
    assert is_never_negative(relay.nn.max_pool2d(one + relay.nn.softmax(x)))
    assert is_never_negative(relay.concatenate([one, relay.clip(x, 0.0, 6.0)], axis=1))
    assert not is_never_negative(relay.concatenate([one, relay.clip(x, -1.0, 6.0)], axis=1))
    assert not is_never_negative(one - one) and not is_never_negative(x) and not is_never_negative(one + x)
    assert is_never_negative(one * relay.const(2.0)) and not is_never_negative(one * relay.const(-2.0))


@pytest.mark.parametrize("mode", ["min_max", "percentile", "kl_divergence"])
def test_results_stay_near(mode: str):
    mod, params = _net()
    samples = _samples()
    with qconfig(calibrate_mode=mode, weight_scale="channel", skip_conv_layers=[], skip_dense_layer=False):
        found = quantize(mod, params, samples)
    names = _operators(found)
    assert names.count("qnn.conv2d") == 2 and names.count("qnn.dense") == 1 and "nn.conv2d" not in names
    exact, near = _outputs(mod, params, samples), _outputs(found, params, samples)
    accuracy = compare(exact, near)
    assert accuracy.top1 is not None
    assert accuracy.samples == 2 and "top-1 agreement" in str(accuracy)
    first, second, last = _layers(found)
    for layer, name in ((first, "a"), (second, "b"), (last, "c")):  # every weight is the multiple nearest to it
        largest = np.abs(params[name]).max(axis=tuple(range(1, params[name].ndim)), keepdims=True)
        np.testing.assert_array_equal(layer.steps, (largest / np.float32(127)).astype("float64"))
        assert (np.abs(layer.weight - params[name]) <= layer.steps / 2 * (1 + 2.0**-20)).all()
    largest = max(np.abs(sample["x"]).max() for sample in samples)
    assert first.scale <= largest / 127 * (1 + 2.0**-20)
    for sample, (result,) in zip(samples, near, strict=True):
        x = sample["x"].astype("float64")
        one, error = first.product(_convolved, *first.stored(x, 2.0**-24 * np.abs(x)))
        one, error = second.stored(_relu(one), error)
        two, carried = second.product(_convolved, one, error)
        pooled = _relu(two + one).mean(axis=(2, 3))
        carried = (carried + error).mean(axis=(2, 3)) + (36 + 2) * 2.0**-24 * pooled
        wanted, error = last.product(_dense, *last.stored(pooled, carried))
        assert (np.abs(result - wanted) <= error).all()


def test_integers_are_the_same_or_not():
    values, places = np.array([[0.5, 0.25]], "float32"), np.array([[7, 3, 2, 1]])
    found = compare([[values, places]], [[values + np.float32(0.125), places + [[0, 0, 0, 1]]]], rows_of_sample=2)
    assert (found.max_difference, found.largest, found.same_integers) == (0.125, 0.5, 0.75)
    differences = "largest difference 0.125, mean 0.125 of values up to 0.5"
    assert str(found) == f"{differences}, 75.0% of the integers are the same (1 sample of 2 rows)"
    found = compare([[places]], [[places]])
    assert str(found) == "100.0% of the integers are the same (1 sample)" and found.to_json()["max_difference"] is None
    assert str(compare([[values]], [[values]], 1)).endswith("top-1 agreement 100.0% (1 sample)")


def test_layers_are_skipped_and_simulated():
    mod, params = _net()
    names = _operators(quantize(mod, params))  # the settings that scripts know: the first and dense ones are left
    assert names.count("qnn.conv2d") == 1 and names.count("nn.conv2d") == 1 and "nn.dense" in names
    with qconfig(skip_conv_layers=[-1, 7], skip_dense_layer=False, skip_dense_layers=[0]):
        names = _operators(quantize(mod, params))
    assert names.count("qnn.conv2d") == 1 and "nn.dense" in names
    with qconfig(skip_conv_layers=None, do_simulation=True, weight_scale="max"):
        names = _operators(quantize(mod, params))
    assert names.count("nn.conv2d") == 2 and names.count("qnn.quantize") == 2


def test_a_model_without_weights_is_left_as_it_is():
    x = relay.var("x", shape=(1, 4))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with qconfig(calibrate_mode="min_max"):
        assert _operators(quantize(mod)) == ["nn.relu"]


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        ([], "there are none"),
        ([{"y": 1}], "one has no 'x', but 'y'"),
        ([{"x": np.zeros((2, 4, 6, 7))}], r"has the shape \(2, 4, 6, 7\)"),
        ([[np.zeros(1), np.zeros(1)]], "one has 2 arrays, and the model 1 inputs: x"),
    ],
)
def test_bad_samples(dataset: Any, text: str):
    mod, params = _net()
    with qconfig(calibrate_mode="min_max"), pytest.raises(BadSamples, match=text):
        quantize(mod, params, dataset)


# By how much of itself a number may be off when it is rounded, and a sum.
UNITS = {"float16": (2.0**-11, 2.0**-11), "bfloat16": (2.0**-8, 2.0**-24)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("precision", ["float16", "bfloat16", "int8"])
def test_every_precision_keeps_types_of_inputs_and_results(precision: str):
    x = relay.var("x", shape=(3, 32))
    weights = [_weight(16, 32), _weight(5, 16)]
    hidden = relay.nn.relu(relay.nn.dense(x, relay.const(weights[0])))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(hidden, relay.const(weights[1]))))
    samples = [{"x": RANDOM.standard_normal((3, 32)).astype("float32")}]
    found = in_precision(mod, precision, None, samples)
    assert str(found["main"].body.checked_type) == "Tensor[(3, 5), float32]"
    lib = relay.build(found, target="llvm")
    near = np.asarray(lib.run([samples[0]["x"]])[0])
    wanted = _exact(samples[0]["x"])
    for number, weight in enumerate(weights):
        exact = weight.astype("float64")
        if precision == "int8":
            wanted = _integers(wanted, exact, _layers(found)[number], _dense)
        else:
            unit, sums = UNITS[precision]
            wanted = wanted.rounded(unit).times(exact, (unit * exact) ** 2 / 3, _dense, sums).rounded(unit)
        wanted = Noise(_relu(wanted.value), wanted.deviation) if number == 0 else wanted
    wanted.assert_holds(near)


def test_other_precisions():
    mod, params = _net()
    assert in_precision(mod, "float32", params) is mod
    with pytest.raises(UnknownPrecision, match="unknown precision 'int3'"):
        in_precision(mod, "int3", params)


def test_comparing():
    one = [[np.array([[1.0, 2.0], [4.0, 3.0]])]]
    other = [[np.array([[1.0, 2.5], [3.0, 3.5]])]]
    found = compare(one, other)
    assert (found.max_difference, found.mean_difference, found.largest, found.top1) == (1.0, 0.5, 4.0, 0.5)
    infinite = compare([[np.array([np.inf, 1.0])]], [[np.array([np.inf, np.nan])]])
    assert infinite.to_json()["max_difference"] is None and infinite.top1 is None


def test_depthwise_weights_with_two_axes_of_channels_have_one_scale():
    x = relay.var("x", shape=(1, 6, 6, 4))
    weight = relay.const(_weight(3, 3, 4, 2))
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWOI"}
    made = relay.nn.conv2d(x, weight, groups=4, channels=8, kernel_size=(3, 3), padding=(1, 1), **layouts)
    mod = relay.IRModule.from_expr(relay.Function([x], made))
    samples = [{"x": RANDOM.standard_normal((1, 6, 6, 4)).astype("float32")}]
    small = in_precision(mod, "int8", dataset=samples)
    assert "qnn.conv2d" in _operators(small)
    found = compare(_outputs(mod, {}, samples), _outputs(small, {}, samples))
    # Nine products, each of two numbers that are off by half a step of 127 at most.
    assert found.max_difference <= 9 * (1 / 254 + 1 / 254 + 1e-4) * float(
        np.abs(weight.data).max() * np.abs(samples[0]["x"]).max()
    )
