"""check_grad: whether the gradients of a function are what small changes of its inputs say.

    check_grad(relay.Function([x], relay.exp(x)))

Each gradient is compared, element by element, with (f(x + eps) − f(x − eps)) / 2 eps, f being the sum of the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType, Type
from loopwright.relay.executors import create_executor
from loopwright.relay.expr import Function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.transform.functions.first_order_gradient import gradient
from loopwright.relay.types import TensorType


def random_values(of: Type, scale: float = 1.0, mean: float = 0.0) -> object:
    """A value of the type, drawn from a normal distribution of that mean and deviation; a tuple is a list."""
    if isinstance(of, TupleType):
        return [random_values(field, scale, mean) for field in of.fields]
    if not isinstance(of, TensorType):
        raise ValueError(f"values are drawn of tensors and tuples of them, and not of {of}")
    return (mean + scale * np.random.randn(*of.concrete_shape)).astype(of.dtype.numpy())


def check_grad(
    func: Function,
    inputs: Sequence[np.ndarray] | None = None,
    test_inputs: Sequence[np.ndarray] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0.0,
    mode: str = "higher_order",
    target_devices: object = None,
    executor_kind: str = "debug",
) -> None:
    """Compare the gradients of `func` at `inputs` (drawn, unless given) with differences; of `test_inputs`, if given.

    An AssertionError shows where they differ.
    """
    forward = infer_module(IRModule({"main": func}))  # type: ignore[dict-item]
    backward = infer_module(IRModule({"main": gradient(func, forward, mode)}))  # type: ignore[dict-item]
    types = [param.checked_type for param in func.params]
    given = list(inputs) if inputs is not None else [random_values(of, scale or 10 * eps, mean) for of in types]
    checked = list(test_inputs) if test_inputs is not None else given
    value = create_executor(executor_kind, mod=forward).evaluate()
    _, grads = create_executor(executor_kind, mod=backward).evaluate()(*given)

    def total() -> float:
        return float(np.sum(_array(value(*given)), dtype=np.float64))

    for place, one in enumerate(given):
        if not any(one is other for other in checked) or not isinstance(one, np.ndarray) or one.dtype.kind != "f":
            continue
        found = np.zeros(one.shape, np.float64)
        for index in np.ndindex(one.shape):
            before = one[index]
            one[index] = before + eps
            above = total()
            one[index] = before - eps
            found[index] = (above - total()) / (2 * eps)
            one[index] = before
        np.testing.assert_allclose(_array(grads[place]), found, atol=atol, rtol=rtol)


def _array(value: object) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
