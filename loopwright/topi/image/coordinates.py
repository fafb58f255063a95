"""coordinates: where in a picture a pixel of its resized copy comes from.

    half_pixel       (i + 1/2)·in/out - 1/2          the middles of the pixels
    align_corners    i·(in - 1)/(out - 1)            the first and the last pixel stay
    asymmetric       i·in/out

All of these are fractions of integers, and stay so: rounding one to a pixel has no error, and what is left over for
interpolation has one rounding. Only a region of interest (`tf_crop_and_resize`) is given in floating-point numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopwright.ir import Expr, as_expr, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import ceil, floor, select
from loopwright.ir.operators import div
from loopwright.runtime.dtype import DataType
from loopwright.topi.parts.choices import UnknownChoice
from loopwright.topi.parts.sizes import known, simplify

MODES: Final = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS: Final = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@dataclass(frozen=True)
class Fraction:
    """The coordinate `above / below`; `below` is positive."""

    above: Expr
    below: Expr

    def floor(self) -> Expr:
        return simplify(self.above // self.below)

    def rest(self, dtype: DataType) -> Expr:
        """How far it is beyond `floor`, from 0 to below 1."""
        return cast(self.above % self.below, dtype) / cast(self.below, dtype)

    def rounded(self, rounding: str) -> Expr:
        above, below = self.above, self.below
        if rounding == "floor":
            return self.floor()
        if rounding == "ceil":
            return simplify((above + below - 1) // below)
        if rounding == "round_prefer_floor":
            return simplify((2 * above + below - 1) // (2 * below))
        # Halves go up; below zero, where "round" goes down, all pixels are the first one.
        return simplify((2 * above + below) // (2 * below))

    def is_inside(self, size: Expr) -> Expr | None:
        return None


@dataclass(frozen=True)
class Tabulated:
    """A coordinate that was looked up: its pixel, and how far it is beyond that."""

    place: Expr
    beyond: Expr | None

    def floor(self) -> Expr:
        return self.place

    def rest(self, dtype: DataType) -> Expr:
        assert self.beyond is not None, "the nearest pixel has no rest"
        return self.beyond

    def rounded(self, rounding: str) -> Expr:
        return self.place

    def is_inside(self, size: Expr) -> Expr | None:
        return None


@dataclass(frozen=True)
class Real:
    """A coordinate that is a floating-point number, and may lie outside the picture."""

    value: Expr

    def floor(self) -> Expr:
        return cast(floor(self.value), DataType("int32"))

    def rest(self, dtype: DataType) -> Expr:
        return cast(self.value - floor(self.value), dtype)

    def rounded(self, rounding: str) -> Expr:
        value = self.value
        if rounding == "floor":
            nearest = floor(value)
        elif rounding == "ceil":
            nearest = ceil(value)
        elif rounding == "round_prefer_floor":
            nearest = ceil(value - 0.5)
        else:
            nearest = floor(value + 0.5)
        return cast(nearest, DataType("int32"))

    def is_inside(self, size: Expr) -> Expr:
        return all_of(self.value >= 0.0, self.value <= cast(size - 1, self.value.dtype))


def source_of(
    op: str, mode: str, location: Expr, size: Expr, target: Expr, region: tuple[Expr, Expr] | None = None
) -> Fraction | Real:
    """Where in a line of `size` pixels pixel `location` of its copy of `target` pixels comes from."""
    if mode == "tf_crop_and_resize":
        assert region is not None, "a region of interest is given with this mode"
        return cropped(location, size, target, *region)
    kind = _wide_enough(size, target)
    i, length, wanted = (cast(as_expr(value), kind) for value in (location, size, target))
    if mode == "half_pixel":
        return Fraction((2 * i + 1) * length - wanted, 2 * wanted)
    if mode == "align_corners":
        return Fraction(i * (length - 1), _at_least_one(wanted - 1))
    if mode == "asymmetric":
        return Fraction(i * length, wanted)
    if mode == "pytorch_half_pixel":
        if known(target) is not None:
            return Fraction((2 * i + 1) * length - wanted if known(target) != 1 else const(0, kind), 2 * wanted)
        return Fraction(select(wanted > 1, (2 * i + 1) * length - wanted, 0), 2 * wanted)
    if mode == "tf_half_pixel_for_nn":
        return Fraction((2 * i + 1) * length, 2 * wanted)
    raise UnknownChoice(op, "coordinate_transformation_mode", mode, MODES)


def cropped(place: Expr, size: Expr, target: Expr, start: Expr, end: Expr) -> Real:
    """Where pixel `place` of `target` comes from when they span the line from `start` to `end`, parts of its length."""
    real = DataType("float32")
    start, end = as_expr(start), as_expr(end)
    start, end = cast(start, real), cast(end, real)
    last = cast(size - 1, real)
    middle = (start + end) * 0.5 * last
    step = div((end - start) * last, cast(_at_least_one(target - 1), real))
    spread = start * last + cast(as_expr(place), real) * step
    number = known(target)
    if number is not None:
        return Real(spread if number > 1 else middle)
    return Real(select(target > 1, spread, middle))


def rounding_of(op: str, mode: str, rounding: str) -> str:
    """What an empty `rounding` means."""
    if rounding not in ROUNDINGS:
        raise UnknownChoice(op, "rounding_method", rounding, ROUNDINGS)
    return rounding or ("round" if mode == "align_corners" else "floor")


def _wide_enough(size: Expr, target: Expr) -> DataType:
    """The type in which no product of the sizes runs over."""
    most = known(4 * cast(size, DataType("int64")) * (cast(target, DataType("int64")) + 1))
    return DataType("int32" if most is not None and most < 2**31 else "int64")


def _at_least_one(value: Expr) -> Expr:
    number = known(value)
    if number is None:
        return select(value > 1, value, 1)
    return const(max(number, 1), value.dtype)
