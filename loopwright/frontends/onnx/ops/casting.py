"""Cast, CastLike, BitCast: element types changed, those that are carried in others included.

Floats of 8 bits or less without operators of their own are codes in the graph. Their values are in a table; the code
of a number is found among the borders between neighbouring values, so that rounding to the nearest, ties to even, is
exact.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.element_types import ElementType, of_proto
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr


@converter("Cast")
def cast(node: Node, x: Expr) -> Expr:
    to = node.attr("to")
    if isinstance(to, str):  # before version 6 the type was a name
        to = _NAMES.get(to, 0)
    wanted = of_proto(int(to), f"the result of node {node.name!r}")
    return converted(node, x, wanted, bool(node.attr("saturate", 1)), node.attr("round_mode", "up"))


_NAMES = {
    "FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BOOL": 9, "FLOAT16": 10,
    "DOUBLE": 11, "UINT32": 12, "UINT64": 13,
}  # fmt: skip


@converter("CastLike", since=15)
def cast_like(node: Node, x: Expr, like: Expr) -> Expr:
    return converted(node, x, node.element(like), bool(node.attr("saturate", 1)), node.attr("round_mode", "up"))


def converted(node: Node, x: Expr, wanted: ElementType, saturate: bool = True, round_mode: str = "up") -> Expr:
    """`x` with elements of another type."""
    given = node.element(x)
    if given.code == wanted.code:
        return x
    plain = decoded(node, x, given)
    if wanted.coded:
        return node.carries(_encoded(node, plain, wanted, saturate, round_mode), wanted)
    if wanted.carried:
        return node.carries(_narrowed(node, plain, wanted), wanted)
    if wanted.name in ("float8e4m3fn", "float8e5m2"):
        return _to_float8(node, plain, wanted, saturate)
    if wanted.dtype == "bool":
        return relay.not_equal(plain, node.const(0, plain))
    # An expression carries one type: what a 4-bit integer is carried in becomes one of its own.
    return relay.cast(plain, wanted.dtype) if given.carried else node.cast(plain, wanted.dtype)


def decoded(node: Node, x: Expr, given: ElementType) -> Expr:
    """Values of what is carried by codes: float32; others as they are."""
    if not given.coded:
        return x
    table = np.arange(256, dtype=np.uint8)
    if given.bits < 8:
        table &= (1 << given.bits) - 1
    values = table.view(given.numpy()).astype(np.float32)
    return relay.take(relay.const(values, "float32"), relay.cast(x, "int32"), axis=0)


def _narrowed(node: Node, x: Expr, wanted: ElementType) -> Expr:
    """Integers of less than a byte: the lowest bits, as for wider ones."""
    whole = node.cast(x, "int32")
    mask = node.const((1 << wanted.bits) - 1, "int32")
    low = relay.bitwise_and(whole, mask)
    if wanted.dtype == "int8":
        half = node.const(1 << (wanted.bits - 1), "int32")
        low = relay.subtract(relay.bitwise_xor(low, half), half)
    return relay.cast(low, wanted.dtype)


def _to_float8(node: Node, x: Expr, wanted: ElementType, saturate: bool) -> Expr:
    """Numbers beyond the largest become the largest, or without `saturate` what the type has for that."""
    wide = node.cast(x, "float32")
    if saturate:
        largest = {"float8e4m3fn": 448.0, "float8e5m2": 57344.0}[wanted.name]
        wide = relay.where(relay.isnan(wide), wide, relay.clip(wide, -largest, largest))
    return relay.cast(wide, wanted.dtype)


@cache
def _grid(code: int) -> tuple[np.ndarray, np.ndarray, int, int]:
    """The values of a coded float that are not negative, rising, with their codes; the codes of NaN and of infinity."""
    kind = of_proto(code)
    codes = np.arange(1 << min(kind.bits, 8), dtype=np.uint8)
    values = codes.view(kind.numpy()).astype(np.float64)
    nans = codes[np.isnan(values)]
    infinite = codes[np.isposinf(values)]
    usable = np.isfinite(values) & ~np.signbit(values)
    order = np.argsort(values[usable], kind="stable")
    return (
        values[usable][order],
        codes[usable][order],
        int(nans[0]) if nans.size else -1,
        int(infinite[0]) if infinite.size else -1,
    )


def _encoded(node: Node, x: Expr, wanted: ElementType, saturate: bool, round_mode: str) -> Expr:
    """The codes of numbers in a float that has no operators."""
    wide = node.cast(x, "float32")
    values, codes, nan, infinity = _grid(wanted.code)
    borders = _borders(values, codes, wanted, round_mode)
    size = relay.abs(wide)
    location = relay.searchsorted(relay.const(borders, "float32"), _flat(node, size), right=True, dtype="int32")
    location = relay.reshape(location, node.shape(wide), allowzero=True)
    result = relay.take(relay.const(codes.astype(np.int32), "int32"), location, axis=0)
    beyond = _beyond(values, wanted, round_mode)
    if wanted.name == "float8e8m0":
        # No sign and no zero: what is smaller than the smallest becomes that.
        too_large = relay.greater(size, node.const(np.float32(beyond), "float32")) if not saturate else None
        if too_large is not None:
            result = relay.where(too_large, node.const(nan, "int32"), result)
        result = relay.where(relay.isnan(wide), node.const(nan, "int32"), result)
        return relay.cast(result, "uint8")
    if not saturate:
        over = infinity if infinity >= 0 else nan
        if over >= 0:
            too_large = relay.greater_equal(size, node.const(np.float32(beyond), "float32"))
            result = relay.where(too_large, node.const(over, "int32"), result)
    sign = 1 << (wanted.bits - 1)
    signed = relay.bitwise_or(result, node.const(sign, "int32"))
    if nan < 0:
        # The smallest floats have a negative zero, which stands for NaN as well.
        negative = relay.less(relay.reinterpret(wide, "int32"), node.const(0, "int32"))
        result = relay.where(negative, signed, result)
        return relay.cast(relay.where(relay.isnan(wide), node.const(sign, "int32"), result), "uint8")
    # In the others the code of a negative zero is that of NaN.
    keeps = relay.logical_and(
        relay.less(wide, node.const(0, "float32")), relay.not_equal(result, node.const(0, "int32"))
    )
    keeps = relay.logical_and(keeps, relay.not_equal(result, node.const(nan, "int32")))
    result = relay.where(keeps, signed, result)
    return relay.cast(relay.where(relay.isnan(wide), node.const(nan, "int32"), result), "uint8")


def _borders(values: np.ndarray, codes: np.ndarray, wanted: ElementType, round_mode: str) -> np.ndarray:
    """From which number on the next value is nearer; a number on the border belongs to the even code."""
    middle = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    if wanted.name == "float8e8m0":
        if round_mode == "up":
            return np.nextafter(values[:-1].astype(np.float32), np.float32(np.inf))
        if round_mode == "down":
            return values[1:].astype(np.float32)
        return middle
    to_lower = codes[:-1] % 2 == 0
    return np.where(to_lower, np.nextafter(middle, np.float32(np.inf)), middle).astype(np.float32)


def _beyond(values: np.ndarray, wanted: ElementType, round_mode: str) -> float:
    """From which number on a value is too large: half a step above the largest."""
    if wanted.name == "float8e8m0":
        return float(values[-1])
    return float(values[-1] + (values[-1] - values[-2]) / 2)


def _flat(node: Node, x: Expr) -> Expr:
    return relay.reshape(x, (-1,))


@converter("BitCast", since=26)
def bit_cast(node: Node, x: Expr) -> Expr:
    """The same bits as another type of the same width."""
    wanted = of_proto(int(node.attr("to")), f"the result of node {node.name!r}")
    given = node.element(x)
    if given.bits != wanted.bits:
        raise node.bad(f"{given.name} has {given.bits} bits, and {wanted.name} {wanted.bits}")
    if given.code == wanted.code:
        return x
    if wanted.bits < 8:
        mask = (1 << wanted.bits) - 1
        bits = relay.bitwise_and(node.cast(x, "int32"), node.const(mask, "int32"))
        if wanted.dtype == "int8":
            half = node.const(1 << (wanted.bits - 1), "int32")
            bits = relay.subtract(relay.bitwise_xor(bits, half), half)
        return node.carries(relay.cast(bits, wanted.dtype), wanted)
    source = relay.cast(x, "uint8") if node.dtype(x) == "bool" else x
    if wanted.dtype == "bool":
        return relay.not_equal(node.cast(relay.reinterpret(source, "uint8"), "int32"), node.const(0, "int32"))
    same = node.dtype(source) == wanted.dtype
    result = relay.cast(source, wanted.dtype) if same else relay.reinterpret(source, wanted.dtype)
    return node.carries(result, wanted)
