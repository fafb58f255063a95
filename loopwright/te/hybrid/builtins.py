"""The functions a hybrid function may call, as expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright.ir import Expr, IntImm, as_expr, cast, const, intrinsics, match_types
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.runtime.dtype import DataType
from loopwright.te.hybrid.emulation import CASTS, MATH
from loopwright.te.tensor import Tensor

LOOPS: Final = ("range", "unroll", "parallel", "vectorize", "const_range", "bind")
STORAGE: Final = ("allocate", "output_tensor")


class WrongCall(Exception):
    """The arguments do not fit; the reader adds the place."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


def number(value: object, what: str) -> Expr:
    """`value` as an expression."""
    if isinstance(value, Tensor) and value.shape:
        raise WrongCall(f"{what} is the whole tensor {value.name}", f"index it: {value.name}[…]")
    if isinstance(value, (tuple, list, str, DataType)) or value is None:
        raise WrongCall(f"{what} is {type(value).__name__} {value!r}", "give a number or an element")
    return as_expr(value)


def _math(name: str) -> Callable[..., Expr]:
    build: Callable[..., Expr] = getattr(intrinsics, name)
    count = 2 if name == "power" else 1

    def call(*args: object) -> Expr:
        _count(name, args, count)
        return build(*[number(arg, f"an argument of {name}") for arg in args])

    return call


def _count(name: str, args: Sequence[object], *counts: int) -> None:
    if len(args) not in counts:
        takes = " or ".join([str(count) for count in counts])
        plural = "s" * (counts != (1,))
        raise WrongCall(f"{name} takes {takes} argument{plural}, got {len(args)}", f"call {name} with {takes}")


def _fold(name: str, combine: Callable[[object, object], Expr]) -> Callable[..., Expr]:
    def call(*args: object) -> Expr:
        _count(name, args, 2)
        a, b = match_types(*[number(arg, f"an argument of {name}") for arg in args])
        return combine(a, b)

    return call


def _cast(name: str) -> Callable[..., Expr]:
    def call(*args: object) -> Expr:
        _count(name, args, 1)
        return cast(number(args[0], f"the argument of {name}"), DataType(name))

    return call


def _len(*args: object) -> Expr:
    _count("len", args, 1)
    (value,) = args
    if isinstance(value, (tuple, list)):
        return const(len(value))
    if isinstance(value, Tensor):
        if value.ndim != 1:
            hint = f"use {value.name}.shape[0]"
            raise WrongCall(f"len of {value.name}, which has {value.ndim} dimensions, has no one answer", hint)
        return value.shape[0]
    raise WrongCall(f"len of {type(value).__name__} {value!r}", "give a tensor of one dimension, or a tuple")


def _ceil_div(*args: object) -> Expr:
    _count("ceil_div", args, 2)
    return intrinsics.ceildiv(*[number(arg, "an argument of ceil_div") for arg in args])


def _likely(*args: object) -> Expr:
    _count("likely", args, 1)
    return intrinsics.likely(number(args[0], "the argument of likely"))


def _max_num_threads(*args: object) -> Expr:
    from loopwright.te.hybrid.emulation import WORDS

    _count("max_num_threads", args, 0, 1)
    return const(WORDS["max_num_threads"]())


def _infinity(sign: int, name: str) -> Callable[..., Expr]:
    def call(*args: object) -> Expr:
        _count(name, args, 0, 1)
        return const(sign * float("inf"), type_named(args[0]) if args else "float32")

    return call


def type_named(value: object) -> DataType:
    """The type that `value` (a text, or some tensor's dtype) names."""
    text = str(value)
    if not isinstance(value, (str, DataType)) or not (text.startswith(("int", "uint", "float")) or text == "bool"):
        raise WrongCall(f"{value!r} is no type that tensors here have", 'write "float32", "int8" or the like')
    try:
        return DataType(text)
    except ValueError as error:
        raise WrongCall(f"{value!r} is no type", 'write "float32", "int8" or the like') from error


def abs_(*args: object) -> Expr:
    """|x|."""
    _count("abs", args, 1)
    return intrinsics.abs(number(args[0], "the argument of abs"))


FUNCTIONS: Final[dict[str, Callable[..., Expr]]] = {
    **{name: _math(name) for name in MATH},
    **{name: _cast(name) for name in CASTS},
    "min": _fold("min", minimum),
    "max": _fold("max", maximum),
    "abs": abs_,
    "len": _len,
    "likely": _likely,
    "ceil_div": _ceil_div,
    "max_num_threads": _max_num_threads,
    "inf": _infinity(1, "inf"),
    "ninf": _infinity(-1, "ninf"),
}


def literal_int(value: object) -> int | None:
    """A constant integer as a Python number."""
    if isinstance(value, IntImm):
        return value.value
    return value if isinstance(value, int) else None
