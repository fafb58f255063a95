"""Every operator of topi against its meaning in numpy: one test walks the registry and runs samples natively.

`make test` runs some samples of each operator, `make fuzz` all of them.

A floating-point result may be off by the bound of its sample and by the rounding of the exact result, no further;
without a bound it is the exact result, rounded once. NaNs and infinities stand exactly where the reference has them.
"""

from __future__ import annotations

import inspect
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.target import GenericFunc
from loopwright.topi.registry import OPERATORS, Operator, Sample
from tests.campaign import two

# Functions of topi that are no operators: they answer questions about shapes, or are only called by other functions.
HELPERS = {
    "nn.get_pad_tuple",
    "nn.get_pad_tuple1d",
    "nn.get_pad_tuple3d",
    "nn.get_pad_tuple_generic",
    "random.threefry_key",
    "random.threefry_test_wrapping",
    "sparse.placeholder",
}
# Packages whose functions are operators; the others hold schedules, references and helpers.
PACKAGES = ("", "nn", "image", "vision", "random", "sparse")


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operator(name):
    check(OPERATORS[name])


def check(operator: Operator, autosched: bool = False) -> None:
    """Hold an operator against its reference on each of its samples, all built as one module."""
    calls = [Call(operator, number, sample) for number, sample in enumerate(two(list(operator.samples())))]
    assert calls, "an operator is tried on something"
    functions = {call.function: call.program() for call in calls if call.computed}
    if functions:
        built = lw.build(lw.IRModule(functions), target="llvm", autosched=autosched)
        for call in calls:
            if call.computed:
                call.run(built[call.function])
    for call in calls:
        call.compare()


class Call:
    """An operator applied to one sample: placeholders for arrays, and the tensors that came of it."""

    def __init__(self, operator: Operator, number: int, sample: Sample) -> None:
        self.sample = sample
        self.operator = operator
        self.function = f"sample_{number}"
        self.arrays: list[np.ndarray] = []
        self.placeholders: list[te.Tensor] = []
        outputs = operator.compute(
            *[self._as_tensors(value) for value in sample.args],
            **{key: self._as_tensors(value) for key, value in sample.attributes.items()},
        )
        self.outputs = flat(outputs)
        # What comes back unchanged needs no program: rounding integers, casting to the same type.
        self.computed = [output for output in self.outputs if self._place(output) is None]
        self.results = [
            np.full([int(size) for size in output.shape], 77).astype(str(output.dtype)) for output in self.computed
        ]

    def _as_tensors(self, value):
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
            self.placeholders.append(te.placeholder(value.shape, str(value.dtype), f"input_{len(self.arrays) - 1}"))
            return self.placeholders[-1]
        if isinstance(value, (list, tuple)):
            return type(value)([self._as_tensors(item) for item in value])
        return value

    def _place(self, output) -> int | None:
        """Which of the inputs `output` is, if it is one."""
        return next((k for k, tensor in enumerate(self.placeholders) if tensor.op is output.op), None)

    def program(self):
        func = te.create_prim_func([*self.placeholders, *self.computed])
        return func.with_attr("global_symbol", self.function)

    def run(self, built) -> None:
        before = [array.copy() for array in self.arrays]
        # A function taken from a module by name has no DLPack for numpy's types of others (bfloat16).
        given = [lw.nd.array(array) if array.dtype.kind == "V" else array for array in (*self.arrays, *self.results)]
        built(*given)
        for array, passed in zip((*self.arrays, *self.results), given, strict=True):
            if passed is not array:
                array[...] = passed.numpy()
        for array, old in zip(self.arrays, before, strict=True):
            assert array.tobytes() == old.tobytes(), "an operator leaves its inputs alone"

    def compare(self) -> None:
        args = [widened(value) for value in self.sample.args]
        attributes = {key: widened(value) for key, value in self.sample.attributes.items()}
        with np.errstate(all="ignore"):
            expected = self.operator.reference(*args, **attributes)
        wanted = list(expected) if isinstance(expected, (list, tuple)) else [expected]
        results = iter(self.results)
        assert len(wanted) == len(self.outputs), self.where("number of outputs")
        for position, (output, exact) in enumerate(zip(self.outputs, wanted, strict=True)):
            place = self._place(output)
            result = next(results) if place is None else self.arrays[place]
            self.hold(np.asarray(result), np.asarray(exact), args, position)

    def hold(self, result: np.ndarray, exact: np.ndarray, args: list, position: int) -> None:
        """Compare one output; the message says where it is furthest off."""
        where = self.where(f"output {position}")
        assert result.shape == exact.shape, f"{where}: shape {result.shape}, not {exact.shape}"
        with np.errstate(all="ignore"):
            bound = 0.0 if self.sample.bound is None else self.sample.bound(args, exact)
            rounded = exact.astype(result.dtype)
            if result.dtype.kind in "biu":
                off = np.abs(result.astype(object) - rounded.astype(object)).astype("float64")
                allowed = np.broadcast_to(np.asarray(bound, "float64"), result.shape)
            else:
                known, true = rounded.astype("float64"), exact.astype("float64")
                given = result.astype("float64")
                assert np.array_equal(np.isnan(given), np.isnan(known)), f"{where}: NaNs in other places"
                # Where no bound is granted the exact result is rounded to the nearest: equal, then.
                far = np.abs(given - (true if self.sample.bound is not None else known))
                off = np.where(np.isnan(known) | (given == known), 0.0, far)  # infinities are equal or wrong
                spare = np.abs(spacing(known, result.dtype)) / 2 if self.sample.bound is not None else 0.0
                allowed = np.broadcast_to(np.asarray(bound, "float64") + spare, result.shape)
                # A bound that is relative to an infinity would allow anything.
                allowed = np.where(np.isfinite(known), allowed, 0.0)
        wrong = ~(off <= allowed)
        if wrong.any():
            worst = np.unravel_index(np.argmax(np.where(wrong, off, -1.0)), result.shape)
            raise AssertionError(
                f"{where}: {wrong.sum()} of {wrong.size} are off; at {tuple(int(k) for k in worst)} got "
                f"{result[worst]!r}, not {exact[worst]!r} (off by {off[worst]:.3g}, allowed {allowed[worst]:.3g})"
            )

    def where(self, what: str) -> str:
        told = [f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a) for a in self.sample.args]
        told += [f"{key}={value!r}" for key, value in self.sample.attributes.items() if not hasattr(value, "dtype")]
        return f"{self.operator.name}({', '.join(told)}) ({self.function}), {what}"


def flat(outputs) -> list[te.Tensor]:
    return [tensor for part in outputs for tensor in flat(part)] if isinstance(outputs, (list, tuple)) else [outputs]


def widened(value):
    """Floating-point arrays as float64, also inside lists."""
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "biu" else value.astype("float64")
    return type(value)([widened(item) for item in value]) if isinstance(value, (list, tuple)) else value


def spacing(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The distance to the next number of that type."""
    if dtype.kind == "f":
        return np.nan_to_num(np.spacing(values.astype(dtype)).astype("float64"))
    info = ml_dtypes.finfo(dtype)
    floor = np.maximum(np.abs(np.nan_to_num(values)), float(info.smallest_normal))
    return 2.0 ** np.floor(np.log2(floor)) * float(info.eps)


def public_functions() -> dict[str, object]:
    """Every function that users reach in the packages of operators."""
    found: dict[str, object] = {}
    for package in PACKAGES:
        module = getattr(topi, package, None) if package else topi
        if isinstance(module, ModuleType):
            for name in module.__all__:
                value = getattr(module, name)
                # What a target may replace (legalize and alter hooks) is asked by passes, and computes nothing.
                if callable(value) and not inspect.isclass(value) and not isinstance(value, GenericFunc):
                    found[f"{package}.{name}" if package else name] = value
    return found


def test_every_public_function_is_in_the_registry():
    entered = {id(operator.compute) for operator in OPERATORS.values()}
    missing = {name for name, function in public_functions().items() if id(function) not in entered}
    assert sorted(missing - HELPERS) == []


def test_no_helper_is_listed_in_vain():
    entered = {id(operator.compute) for operator in OPERATORS.values()}
    needed = {name for name, function in public_functions().items() if id(function) not in entered}
    assert sorted(HELPERS - needed) == []


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_the_name_reaches_the_function(name):
    value = topi
    for part in name.split("."):
        value = getattr(value, part)
    assert value is OPERATORS[name].compute


def test_a_wrong_operator_is_found():
    def sample(values, **attributes):
        return Sample((np.array(values, "float32"),), **attributes)

    def doubled(x):
        return te.compute(x.shape, lambda i: x[i] * 2, name="doubled")

    wrong = Operator("doubled", doubled, lambda x: 2 * x + 1e-3, lambda: [sample([1.0, 5.0])])
    with pytest.raises(AssertionError, match=r"2 of 2 are off; at \(\d,\) got np.float32\("):
        check(wrong)
    near = Operator("doubled", doubled, lambda x: 2 * x + 1e-3, lambda: [sample([1.0], bound=lambda _, e: 1.1e-3)])
    check(near)
    nan = Operator("doubled", doubled, lambda x: 2 * x, lambda: [sample([np.nan, np.inf, -np.inf, 1e38, 3e38])])
    check(nan)
    with pytest.raises(AssertionError, match="NaNs in other places"):
        check(Operator("doubled", doubled, np.nan_to_num, lambda: [sample([np.nan])]))
    with pytest.raises(AssertionError, match=r"shape \(1,\), not \(1, 1\)"):
        check(Operator("doubled", doubled, lambda x: x[None], lambda: [sample([1.0])]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: topi.sum(None), "sum: data is NoneType None, not a tensor"),
        (lambda x: topi.argmax(axis=0, data=2.5), "argmax: data is float 2.5, not a tensor"),
        (lambda x: topi.nn.relu(None), "relu: x is NoneType None, not a tensor"),
        (lambda x: topi.reshape("x", (2,)), "reshape: a is str 'x', not a tensor"),
        (lambda x: topi.concatenate([x, 1], 0), "concatenate: number 1 of the list is int 1, not a tensor"),
        (lambda x: topi.stack([None, x], 0), "stack: number 0 of the list is NoneType None, not a tensor"),
        (lambda x: topi.concatenate(None, 0), "concatenate: NoneType None is no list of tensors"),
    ],
)
def test_what_is_no_tensor_is_refused(call, message):
    with pytest.raises(topi.InvalidShapeError, match=message):
        call(te.placeholder((3, 4), name="x"))
