"""Places: which values of a program have to be on one device, and what is known of it.

A value has one place; all parts of a tuple, a cell or a data type share it. A function has a place for each parameter
and for its result. Places that must be the same are joined (`join`), and know together what each knew before.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopwright.ir.types import Type
from loopwright.relay.types import FuncType
from loopwright.target import VirtualDevice

_OPEN = VirtualDevice()


class Place:
    """Where a value is, or (with `result`) where a function takes its parameters and gives its result."""

    __slots__ = ("_device", "_same", "params", "result")

    def __init__(self, params: tuple[Place, ...] = (), result: Place | None = None) -> None:
        self._same: Place | None = None  # the place that stands for this one
        self._device = _OPEN
        self.params = params
        self.result = result

    @staticmethod
    def of_type(of: Type | None) -> Place:
        """A new place for a value of that type."""
        if isinstance(of, FuncType):
            return Place(tuple(Place.of_type(param) for param in of.arg_types), Place.of_type(of.ret_type))
        return Place()

    @property
    def root(self) -> Place:
        """The place that stands for all those joined with this one."""
        root = self
        while root._same is not None:
            root = root._same
        place = self
        while place is not root:  # who asks next is there at once
            place._same, place = root, place._same or root
        return root

    @property
    def device(self) -> VirtualDevice:
        """What is known of the device; of a function, that of its result."""
        root = self.root
        return root._device if root.result is None else root.result.device

    def values(self) -> Iterator[Place]:
        """The places of values in this one: itself, or those of the parameters and of the result."""
        root = self.root
        if root.result is None:
            yield root
            return
        for part in (*root.params, root.result):
            yield from part.values()

    def constrain(self, device: VirtualDevice) -> bool:
        """The device is at least this; whether it can be. A function is constrained by its result."""
        root = self.root
        if root.result is not None:
            return root.result.constrain(device)
        joined = root._device.join(device)
        if joined is None:
            return False
        root._device = joined
        return True

    def fill(self, device: VirtualDevice) -> None:
        """What is open of it is as this device has it; its result first where it is a function's."""
        root = self.root
        if root.result is None:
            if not root._device.is_decided:
                root._device = root._device.filled(device.in_usual_memory())
            return
        root.result.fill(device)
        for param in root.params:
            param.fill(root.result.device)


def join(one: Place, other: Place) -> bool:
    """Both are one place; False where they cannot be: two values are left as they were then."""
    return _can_join(one, other) and _join(one, other)


def together(one: Place, other: Place) -> bool:
    """Everything in both is one place, functions included: what tuples and conditions need of their parts."""
    first, *rest = [*one.values(), *other.values()]
    return all([join(first, place) for place in rest])


def _can_join(one: Place, other: Place) -> bool:
    pairs = _pairs(one, other)
    known: dict[Place, VirtualDevice] = {}
    for left, right in pairs:
        before = known.get(left, left._device), known.get(right, right._device)
        both = before[0].join(before[1])
        if both is None:
            return False
        known[left] = known[right] = both
    return True


def _join(one: Place, other: Place) -> bool:
    for left, right in _pairs(one, other):
        left, right = left.root, right.root
        if left is not right:
            both = left._device.join(right._device)
            if both is None:
                return False
            right._device = both
            left._same = right
    return True


def _pairs(one: Place, other: Place) -> list[tuple[Place, Place]]:
    """The places of values that are one when two places are; where only one is a function, all of it is."""
    one, other = one.root, other.root
    if one is other:
        return []
    if one.result is not None and other.result is not None and len(one.params) == len(other.params):
        inner = zip((*one.params, one.result), (*other.params, other.result), strict=True)
        return [pair for parts in inner for pair in _pairs(*parts)]
    first, *rest = [*one.values(), *other.values()]
    return [(first, place) for place in rest]
