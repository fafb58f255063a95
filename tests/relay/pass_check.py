"""A pass as text: the program before it, the program expected after it, and both run on the same numbers.

    check(SimplifyExpr(), "fn (%x: Tensor[(3), float32]) { add(%x, $zero) }", "fn (%x: Tensor[(3), float32]) { %x }",
          constants={"zero": np.zeros(3, "float32")})

A text is one function, or a module (`def @main(…) { … }`). `$zero` is the tensor of that name among `constants`: the
same object wherever it stands, on both sides. A tensor that the pass computes is said as a function of others:
`{"w": w, "s": s, "scaled": lambda w, s: w * s}`. Programs are compared by structure; where they differ, the failure
shows a diff of both texts and the first difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
from inspect import signature
from typing import Any

import numpy as np

from loopwright import ir, relay
from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType
from loopwright.relay.interpreter import evaluate
from loopwright.relay.text.printer import astext

Pass = Callable[[IRModule], IRModule]
Constants = Mapping[str, np.ndarray | relay.Constant | Callable[..., np.ndarray]]
Compare = Callable[[IRModule, IRModule], None]


def check(
    pass_: Pass | Iterable[Pass],
    before: str,
    after: str,
    constants: Constants | None = None,
    compare: Compare | None = None,
) -> IRModule:
    """`pass_`, or several in turn, make the program `after` of `before`; what they made.

    `compare` says how results before and after are related; by default small integers give equal results.
    """
    tensors = _tensors(constants)
    first = _parsed(before, tensors)
    result = run_passes(pass_, first)
    assert_is(result, after, tensors)
    (compare or same_results)(first, result)
    return result


def check_unchanged(pass_: Pass | Iterable[Pass], text: str, constants: Constants | None = None) -> None:
    """`pass_` leaves the program as it is."""
    tensors = _tensors(constants)
    assert_is(run_passes(pass_, _parsed(text, tensors)), text, tensors)


def assert_is(module: IRModule, text: str, constants: Constants | None = None) -> None:
    """The module is the program of the text, names of variables aside."""
    tensors = _tensors(constants)
    expected = _parsed(text, tensors)
    assert sorted(var.name for var in module) == sorted(var.name for var in expected)
    if ir.structural_equal(module, expected, map_free_vars=True):
        return
    texts = [_lines(each, tensors) for each in (expected, module)]
    diff = "\n".join(unified_diff(*texts, "expected", "found", lineterm="", n=10**6))
    try:
        ir.assert_structural_equal(module, expected, map_free_vars=True)
    except AssertionError as mismatch:
        difference = str(mismatch).splitlines()[0]
        raise AssertionError(f"the pass makes another program:\n{diff}\n\n{difference}") from None


def program(text: str, constants: Constants | None = None) -> IRModule:
    """The module of a text; its types are inferred."""
    return _parsed(text, _tensors(constants))


def run_passes(pass_: Pass | Iterable[Pass], module: IRModule) -> IRModule:
    for each in pass_ if isinstance(pass_, Iterable) else [pass_]:
        module = each(module)
    return module


def same_results(before: IRModule, after: IRModule) -> None:
    """Equal results for small integers, of which sums and products are exact; NaN is NaN."""
    assert_near(*results(before, after), 0.0)


def within(roundings: int, of: float) -> Compare:
    """Results in float64 that so many roundings of numbers up to `of` may set apart; NaN is NaN."""

    def compare(before: IRModule, after: IRModule) -> None:
        assert_near(*results(before, after), roundings * 2.0**-53 * of)

    return compare


def quantized(steps: int, share: float = 1.0) -> Compare:
    """Integers of the whole range of their type give results that differ by `steps` at most, and in `share` of them."""

    def compare(before: IRModule, after: IRModule) -> None:
        random = np.random.default_rng(0)
        types = [param.checked_type for param in before["main"].params]
        limits = [np.iinfo(of.dtype.numpy()) for of in types]
        arguments = [
            random.integers(limit.min, limit.max + 1, of.concrete_shape).astype(limit.dtype)
            for of, limit in zip(types, limits, strict=True)
        ]
        one, other = evaluate(before["main"], arguments, before), evaluate(after["main"], arguments, after)
        assert one.dtype == other.dtype and one.shape == other.shape
        apart = np.abs(one.astype("float64") - other.astype("float64"))
        assert apart.max() <= steps and (apart > 0).mean() <= share
        assert share == 1 or len(np.unique(one)) > 5  # a share says nothing where all results are at the limits

    return compare


def results(before: IRModule, after: IRModule) -> tuple[Any, Any]:
    """What both return for the same arguments: small integers, of the types of the parameters."""
    random = np.random.default_rng(0)
    arguments = [_argument(param.checked_type, random) for param in before["main"].params]
    return evaluate(before["main"], arguments, before), evaluate(after["main"], arguments, after)


def assert_near(one: Any, other: Any, bound: float) -> None:
    """Equal in shape and type, and in value but for `bound`."""
    if isinstance(one, list):
        for left, right in zip(one, other, strict=True):
            assert_near(left, right, bound)
        return
    assert one.shape == other.shape and one.dtype == other.dtype
    if bound == 0:
        np.testing.assert_array_equal(one, other)
    else:
        assert one.dtype == np.float64
        np.testing.assert_allclose(other, one, rtol=0, atol=bound)


def results_not_compared(before: IRModule, after: IRModule) -> None:
    """For passes that change numbers on purpose, and tests that compare them in another way."""


def drawn(dtype: str = "float32", **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """A tensor of small integers for each name."""
    random = np.random.default_rng(0)
    return {name: random.integers(-3, 4, shape).astype(dtype) for name, shape in shapes.items()}


def _argument(of: Any, random: np.random.Generator) -> Any:
    if isinstance(of, TupleType):
        return [_argument(field, random) for field in of.fields]
    shape = [size if isinstance(size, int) else 3 for size in of.shape]
    low = 0 if str(of.dtype).startswith(("u", "b")) else -4
    return random.integers(low, 2 if of.dtype.is_bool else 5, shape).astype(of.dtype.numpy())


def _tensors(constants: Constants | None) -> dict[str, relay.Constant]:
    """A function is a tensor made of others: of those that its parameters name."""
    tensors: dict[str, relay.Constant] = {}
    for name, given in (constants or {}).items():
        if isinstance(given, relay.Constant):
            tensors[name] = given
        else:
            if callable(given):
                given = given(*[tensors[each].data for each in signature(given).parameters])
            tensors[name] = relay.const(given, str(given.dtype))
    return tensors


def _parsed(text: str, tensors: Mapping[str, relay.Constant]) -> IRModule:
    names = list(tensors)
    numbered = re.sub(r"\$(\w+)", lambda match: f"meta[relay.Constant][{names.index(match[1])}]", text).strip()
    numbered = re.sub(r"\Afn\b", "def @main", numbered)
    return relay.parse(numbered, init_meta_table={"relay.Constant": [*tensors.values()]})


def _lines(module: IRModule, tensors: Mapping[str, relay.Constant]) -> list[str]:
    """The program without types of values, its constants by name; a tensor that has none by its values."""

    def named(expression: Any) -> str:
        if not isinstance(expression, relay.Constant) or expression.data.ndim == 0:
            return ""
        same = [name for name, tensor in tensors.items() if ir.structural_equal(tensor, expression)]
        return f"${same[0]}" if same else " ".join(f"{expression.data.dtype} {expression.data!s:.300}".split())

    text = astext(module, show_meta_data=False, annotate=named)
    return re.sub(r"meta\[relay\.Constant\]\[\d+\] /\* (.*?) \*/", r"\1", text).splitlines()[1:]
