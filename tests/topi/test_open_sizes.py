"""Every operator of topi with one size of one input left open: what it does not assume aloud, it must get right.

For each axis of each input of a sample, the operator is built with that size a variable. Then the size is changed, one
input at a time. Where all that the operator assumed of sizes still holds, its loops run in the evaluator, which stops
at the first element outside a buffer; sizes of results are never negative; what numpy gives has the same shape.
"""

from __future__ import annotations

import warnings
from itertools import islice

import numpy as np
import pytest

from loopwright import te, topi
from loopwright.arith import Analyzer
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import FailedCheck
from loopwright.ir import IntImm, const, substitute
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.assumed_sizes import collected
from loopwright.topi.registry import OPERATORS

MOST_ELEMENTS = 160  # of the inputs of a sample that is tried: the evaluator is slow
MOST_SAMPLES = 2
# Indices come from data here; who calls the kernel has checked them (`relay/index_checks.py`).
TRUST_THEIR_INDICES = {"adv_index", "gather", "gather_nd", "nn.nll_loss", "take"}
# Numpy repeats, or drops, what these operators take as it is; or only the values say how large a result is.
OTHER_SHAPES = {"dynamic_strided_slice", "gather", "squeeze", "stft", "vision.multibox_prior"}
# Whether a size is 1, or channels are in groups, is asked when compiling: an open size is taken for the common case.
OPEN_IS_COMMON = {
    "einsum",
    "nn.attention",
    "nn.conv2d_NCHWc",
    "nn.conv2d_NCHWc_int8",
    "nn.conv3d_winograd_weight_transform",
    "nn.depthwise_conv2d_NCHWc",
}
FLOAT_SIZES = {"nn.upsampling", "nn.upsampling3d"}  # sizes times a fraction are computed in floating point


def arrays_of(value):
    if isinstance(value, np.ndarray):
        return [value]
    return [array for item in value for array in arrays_of(item)] if isinstance(value, (list, tuple)) else []


def with_arrays(value, arrays):
    """`value` with its arrays replaced by those of an iterator."""
    if isinstance(value, np.ndarray):
        return next(arrays)
    return type(value)([with_arrays(item, arrays) for item in value]) if isinstance(value, (list, tuple)) else value


def called(function, sample, arrays):
    given = iter(arrays)
    args = [with_arrays(value, given) for value in sample.args]
    return function(*args, **{key: with_arrays(value, given) for key, value in sample.attributes.items()})


def flat(value):
    return [item for one in value for item in flat(one)] if isinstance(value, (list, tuple)) else [value]


def number(size, var, value):
    if isinstance(size, int):
        return size
    known = Analyzer().simplify(substitute(size, {var: const(value, var.dtype)}))
    assert isinstance(known, IntImm), f"{size} at {var.name} = {value} is {known}"
    return int(known.value)


def resized(array, axis, size):
    return np.take(array, np.arange(size) % max(array.shape[axis], 1), axis=axis)


def samples(operator):
    fit = (
        sample
        for sample in operator.samples()
        if sum(array.size for array in arrays_of([*sample.args, *sample.attributes.values()])) <= MOST_ELEMENTS
    )
    return islice(fit, MOST_SAMPLES)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_sizes_that_are_not_assumed_are_right(name):
    operator = OPERATORS[name]
    for sample in samples(operator):
        arrays = arrays_of([*sample.args, *sample.attributes.values()])
        for place, array in enumerate(arrays):
            for axis, size in enumerate(array.shape):
                if size:
                    try_axis(operator, sample, arrays, place, axis)


def try_axis(operator, sample, arrays, place, axis):
    var = te.size_var("n")
    shapes = [list(array.shape) for array in arrays]
    shapes[place][axis] = var
    inputs = [te.placeholder(shape, str(array.dtype), f"in{k}") for k, (shape, array) in enumerate(zip(shapes, arrays))]
    try:
        with warnings.catch_warnings(), collected() as assumed:
            warnings.simplefilter("ignore")
            outputs = [one for one in flat(called(operator.compute, sample, inputs)) if isinstance(one, te.Tensor)]
    except LoopwrightError:
        return  # it wants a number here, and says so
    outputs = [one for one in outputs if not any(one is given for given in inputs)]
    if not outputs or operator.name in FLOAT_SIZES:
        return
    func = te.create_prim_func([*inputs, *outputs])
    own = arrays[place].shape[axis]
    if not all(number(one.condition, var, own) for one in assumed):
        assert operator.name in OPEN_IS_COMMON, f"{operator.name} refuses its own sample: {assumed}"
    for size in sorted({own + 1, max(own - 1, 0), 0, 1}):
        if not all(number(one.condition, var, size) for one in assumed):
            continue
        told = f"{operator.name}: axis {axis} of input {place} is {size}, not {own}"
        given = [resized(array, axis, size) if k == place else array for k, array in enumerate(arrays)]
        shape = [[number(extent, var, size) for extent in output.shape] for output in outputs]
        assert all(extent >= 0 for sizes in shape for extent in sizes), told
        results = [np.zeros(sizes, str(output.dtype)) for sizes, output in zip(shape, outputs)]
        try:
            evaluate(func, *[array.copy() for array in given], *results)
        except FailedCheck:
            continue  # the kernel looks at its indices itself
        except LoopwrightError as error:
            if operator.name not in TRUST_THEIR_INDICES:
                raise AssertionError(told) from error
            continue
        compare(operator, sample, given, results, told)


def compare(operator, sample, given, results, told):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = called(operator.reference, sample, given)
    except Exception:
        return  # numpy refuses more than we need to: only memory and shapes are at stake here
    found = expected if isinstance(expected, (list, tuple)) else [expected]
    if len(found) == len(results) and operator.name not in OTHER_SHAPES:
        assert [np.shape(one) for one in found] == [one.shape for one in results], told


def test_the_walk_would_notice():
    """An operator that reads past its input for other sizes, and says nothing, is found out."""
    bad = te.placeholder((te.size_var("n"),), "float32", "A")
    func = te.create_prim_func([bad, te.compute((4,), lambda i: bad[i], name="B")])
    with pytest.raises(LoopwrightError, match=r"reads A\[3\]"):
        evaluate(func, np.zeros(3, "float32"), np.zeros(4, "float32"))
    assert topi.add is OPERATORS["add"].compute
