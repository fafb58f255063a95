"""Convolution: a block that winograd can compute, and which of its axes plays which part.

    out[n, f, y, x] += data[n, c, y + i, x + j] * weight[f, c, i, j]

    places y, x    axes of the result that move over the data; each with its tap i, j, which also moves over the weight
    batch n        in the data and the result          inputs c     reduced, in the data and the weight
    outputs f      in the weight and the result        groups       in all three

The dimensions may stand in any order, in each of the three. A place whose window has one tap is one more batch axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loopwright.arith.affine_reader import Affine
from loopwright.ir import (
    Add,
    BlockRealize,
    BufferLoad,
    BufferStore,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    IterType,
    IterVar,
    Mul,
    Var,
    structural_equal,
)
from loopwright.runtime.dtype import FLOAT32, FLOAT64
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import is_true
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.plain_loops import check_plain
from loopwright.schedule.view import View

_TYPES: Final = (FLOAT32, FLOAT64)


class NotWinograd(ScheduleError):
    """winograd was asked of a block that is no convolution it can compute from tiles.

    The block adds up `data[…, y + i, …] * weight[…, i, …]` from zero, in float32 or float64: stride 1, dilation 1,
    every other index a single axis, alone in a nest of one loop an axis. Integers are refused: the transforms divide
    (by 2 for tiles of two results, by 243 for tiles of four), so that sums of integers would not come out whole.

    For example:

        from loopwright import te, tir
        A = te.placeholder((9,), name="A")
        W = te.placeholder((3,), name="W")
        k = te.reduce_axis((0, 3), name="k")
        B = te.compute((4,), lambda i: te.sum(A[2 * i + k] * W[k], axis=k), name="B")
        sch = tir.Schedule(te.create_prim_func([A, W, B]))
        sch.winograd("B")
    """

    code = "LW0287"

    def __init__(self, realize: BlockRealize, problem: str, why: str | None = None, hint: str | None = None) -> None:
        name = realize.block.name_hint
        super().__init__(
            f"winograd: block {name!r} {problem}",
            at=realize,
            why=why,
            hint=hint,
            fields={"block": name, "problem": problem},
        )


class Window(NamedTuple):
    """A place of the result, and the tap that moves with it over the data; and how many of either there are."""

    place: IterVar
    tap: IterVar
    places: int
    taps: int


@dataclass(frozen=True)
class Convolution:
    """The parts of a convolution."""

    realize: BlockRealize
    store: BufferStore
    data: Expr  # a load, perhaps cast
    weight: Expr
    windows: tuple[Window, ...]  # of more than one tap
    single: tuple[Var, ...]  # taps that have one value, 0
    groups: tuple[IterVar, ...]
    batch: tuple[IterVar, ...]
    inputs: tuple[IterVar, ...]
    outputs: tuple[IterVar, ...]


def convolution_of(view: View, realize: BlockRealize) -> Convolution:
    """The block as a convolution that stands by itself; raises NotWinograd where it is none."""
    result = parts_of(realize)
    _check_own_nest(view, realize)
    return result


def parts_of(realize: BlockRealize) -> Convolution:
    """The parts of a convolution, wherever it stands; raises NotWinograd where it is none."""
    store, data, weight = _operands(realize)
    _check_type(realize, store)
    used = _Axes(realize, store, load_of(data), load_of(weight))
    windows, single = used.windows()
    moving = {axis.var for window in windows for axis in (window.place, window.tap)}
    if not windows:
        problem = "has no window: no index of the data is the sum of an axis and a reduction axis"
        raise NotWinograd(realize, problem, hint="a product of matrices needs none; it is fast as it is")
    parts: dict[str, list[IterVar]] = {"groups": [], "batch": [], "inputs": [], "outputs": []}
    for axis in realize.block.iter_vars:
        if axis.var not in moving and axis.var not in single:
            parts[used.part(axis)].append(axis)
    groups, batch, inputs, outputs = (tuple(parts[name]) for name in ("groups", "batch", "inputs", "outputs"))
    return Convolution(realize, store, data, weight, windows, single, groups, batch, inputs, outputs)


def load_of(operand: Expr) -> BufferLoad:
    """The load that an operand is, perhaps cast."""
    while isinstance(operand, Cast):
        operand = operand.value
    assert isinstance(operand, BufferLoad)
    return operand


def _operands(realize: BlockRealize) -> tuple[BufferStore, Expr, Expr]:
    """The store of the block, and the two factors that it sums; the second is found out to be the weight later."""
    block = realize.block
    store, init = block.body, block.init
    if not is_leaf(block) or block.match_buffers or block.alloc_buffers or not isinstance(store, BufferStore):
        raise NotWinograd(realize, "is not a single store")
    if not isinstance(init, BufferStore) or not _same_cell(init, store):
        raise NotWinograd(realize, f"does not give {store.buffer.name} a start value")
    if not isinstance(init.value, (IntImm, FloatImm)) or init.value.value != 0:
        raise NotWinograd(realize, f"starts at {init.value}, not at zero")
    value = store.value
    sides = (value.a, value.b) if isinstance(value, Add) else ()
    own = [isinstance(side, BufferLoad) and _same_cell(side, store) for side in sides]
    product = sides[1 - own.index(True)] if own.count(True) == 1 else None
    if not isinstance(product, Mul):
        raise NotWinograd(realize, f"stores {value}, which is no sum of products")
    for factor in (product.a, product.b):
        inner = factor
        while isinstance(inner, Cast):
            inner = inner.value
        if not isinstance(inner, BufferLoad):
            raise NotWinograd(realize, f"multiplies with {factor}, which is no element of a buffer")
        if inner.buffer.data is store.buffer.data:
            raise NotWinograd(realize, f"reads {inner.buffer.name} elsewhere than where it writes")
    data, weight = product.a, product.b
    if _sums(realize, load_of(weight)) and not _sums(realize, load_of(data)):
        data, weight = weight, data
    return store, data, weight


def _same_cell(access: BufferStore | BufferLoad, store: BufferStore) -> bool:
    return access.buffer is store.buffer and all(map(structural_equal, access.indices, store.indices))


def _check_type(realize: BlockRealize, store: BufferStore) -> None:
    dtype = store.buffer.dtype
    if dtype in _TYPES:
        return
    if dtype.is_float:
        why = "the transforms enlarge rounding, and few bits are left of those that a short type has"
        raise NotWinograd(realize, f"sums in {dtype}", why, "sum in float32: cast both factors")
    why = "the transforms multiply by fractions, so sums of integers would not be integers"
    raise NotWinograd(realize, f"sums in {dtype}", why)


def _sums(realize: BlockRealize, load: BufferLoad) -> bool:
    """Whether an index of the load is no single axis: it is the data then, not the weight."""
    axes = {axis.var for axis in realize.block.iter_vars}
    return any(not isinstance(index, IntImm) and index not in axes for index in load.indices)


class _Axes:
    """Where each axis of the block is used."""

    def __init__(self, realize: BlockRealize, store: BufferStore, data: BufferLoad, weight: BufferLoad) -> None:
        self.realize = realize
        self.axes = {axis.var: axis for axis in realize.block.iter_vars}
        affine = Affine()
        for var in self.axes:
            affine.own(var)
        self.data_forms = [affine.form(index) for index in data.indices]
        self.data = data
        self.in_weight = self._single(weight.indices, weight.buffer.name)
        self.in_result = self._single(store.indices, store.buffer.name)
        self.in_data: set[Var] = set()  # single indices; those of windows are taken apart by `windows`

    def windows(self) -> tuple[tuple[Window, ...], tuple[Var, ...]]:
        """The places with several taps; and taps that have one value only."""
        result: list[Window] = []
        single: list[Var] = []
        for index, form in zip(self.data.indices, self.data_forms, strict=True):
            if isinstance(index, IntImm):
                continue
            if isinstance(index, Var) and index in self.axes:
                self._see(index)
                continue
            window = self._window(form)
            if window is None:
                self._refuse_index(index, form)
            assert window is not None
            self._see(window.place.var)
            self._see(window.tap.var)
            if window.taps == 1:
                single.append(window.tap.var)
            else:
                result.append(window)
        return tuple(result), tuple(single)

    def _see(self, var: Var) -> None:
        if var in self.in_data:
            raise NotWinograd(self.realize, f"uses axis {var.name} twice in {self.data.buffer.name}")
        self.in_data.add(var)

    def _window(self, form: object) -> Window | None:
        terms = getattr(form, "terms", None)
        if terms is None or len(terms) != 2 or set(terms.values()) != {1}:
            return None
        if any(var not in self.axes for var in terms):
            return None
        location, tap = sorted([self.axes[var] for var in terms], key=_is_reduce)
        if _is_reduce(location) or not _is_reduce(tap):
            return None
        fits = location.var in self.in_result and location.var not in self.in_weight and tap.var in self.in_weight
        if not fits:
            return None
        locations, taps = (self._size(axis) for axis in (location, tap))
        return Window(location, tap, locations, taps)

    def _size(self, axis: IterVar) -> int:
        extent = axis.dom.extent if axis.dom is not None else None
        if not isinstance(extent, IntImm) or extent.value < 1:
            problem = f"has a window over {axis.var.name}, of {extent} values: no number known now"
            raise NotWinograd(self.realize, problem)
        return extent.value

    def _refuse_index(self, index: Expr, form: object) -> None:
        terms = {var: step for var, step in getattr(form, "terms", {}).items() if var in self.axes}
        steps = {"stride" if not _is_reduce(self.axes[var]) else "dilation": step for var, step in terms.items()}
        larger = [f"{what} {step}" for what, step in steps.items() if step not in (0, 1)]
        problem = f"reads {self.data.buffer.name} at {index}, which is no sum of one axis and one reduction axis"
        if larger and len(terms) == 2:
            problem = f"reads {self.data.buffer.name} at {index}: {' and '.join(larger)}"
            raise NotWinograd(self.realize, problem, "neighbouring results of a tile must read neighbouring data")
        raise NotWinograd(self.realize, problem)

    def part(self, axis: IterVar) -> str:
        """What an axis is that takes no part in windows of several taps."""
        var = axis.var
        used = (var in self.in_data, var in self.in_weight, var in self.in_result)
        if axis.dom is not None and isinstance(axis.dom.extent, IntImm) and axis.dom.extent.value == 1:
            # Its indices may be written as 0.
            used = (True, True, False) if _is_reduce(axis) else (used[0] or not used[1], used[1], True)
        if _is_reduce(axis):
            if used == (True, True, False):
                return "inputs"
            lacking = "the data" if not used[0] else "the weight"
            raise NotWinograd(self.realize, f"sums over {var.name}, which {lacking} does not have")
        if used in ((True, False, True), (False, True, True), (True, True, True)):
            return {(True, False): "batch", (False, True): "outputs"}.get(used[:2], "groups")
        raise NotWinograd(self.realize, f"has an axis {var.name} that neither factor uses")

    def _single(self, indices: Sequence[Expr], name: str) -> set[Var]:
        """The axes of an access whose every index is one of them, or a number."""
        result: set[Var] = set()
        for index in indices:
            if isinstance(index, IntImm):
                continue
            if not isinstance(index, Var) or index not in self.axes:
                raise NotWinograd(self.realize, f"touches {name} at {index}, which is no single axis")
            if index in result:
                raise NotWinograd(self.realize, f"uses axis {index.name} twice in {name}")
            result.add(index)
        return result


def _is_reduce(axis: IterVar) -> bool:
    return axis.iter_type == IterType.CommReduce


def _check_own_nest(view: View, realize: BlockRealize) -> None:
    """The loops around the block are one an axis, from 0, and nothing else is in them."""
    path = view.block_path(block_key(realize.block))
    loops = view.loops_of(block_key(realize.block))
    own = path[len(path) - 1 - len(loops) : -1]
    if len(own) != len(loops) or any(a is not b for a, b in zip(own, loops, strict=True)):
        raise NotWinograd(realize, "does not stand alone in a nest of loops")
    if len(loops) != len(realize.iter_values) or not loops or not is_true(realize.predicate):
        raise NotWinograd(realize, "does not stand in a nest of one loop an axis, without a guard")
    for value, axis, loop in zip(realize.iter_values, realize.block.iter_vars, loops, strict=True):
        check_plain("winograd", view, loop)
        dom = axis.dom
        starts = dom is not None and isinstance(dom.min, IntImm) and dom.min.value == 0
        if value is not loop.loop_var or dom is None or not starts or not structural_equal(loop.extent, dom.extent):
            raise NotWinograd(realize, f"binds axis {axis.var.name} to {value}, not to a loop as it is")
