"""TensorComputeOp: a compute whose elements come a tile at a time, from calls of a tensor intrinsic.

    C = te.compute((m, n // 16, 16), lambda i, j: vadd(A[i, j, 0:16], B[i, j, 0:16]))

The function takes the indices of a tile; the last dimensions of the shape are the tile's own, `ax0, ax1, …`. What the
operation means is what the intrinsic means, on those parts of its inputs; a schedule always computes it by the
intrinsic. With `reduce_axis=k` the tiles of all k are combined into one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from loopwright.arith import Analyzer
from loopwright.ir import (
    Expr,
    IntImm,
    IterType,
    IterVar,
    ProducerLoad,
    Range,
    Reduce,
    Rewriter,
    Var,
    as_expr,
    cast,
    deep,
    logical_and,
)
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.axes import DataVar, ReduceVar
from loopwright.te.operation import ComputeOp
from loopwright.te.tensor import Tensor, TensorRegion, TensorSlice, dim_text, shape_text


class BadIntrinsicCall(LoopwrightError, ValueError, TypeError):
    """A tensor intrinsic was called on parts of tensors that are not what it works on.

    Give one part for each of its inputs, of that input's shape: `vadd(A[i, 0:16], B[i, 0:16])`. `reduce_axis=k` needs
    an intrinsic that reduces.

    For example:

        from loopwright import te
        x = te.placeholder((4,), name="x")
        y = te.compute((4,), lambda i: x[i] + 1, name="y")
        plus = te.decl_tensor_intrin(y.op, lambda ins, outs: te.const(0), name="plus")
        A = te.placeholder((8, 8), name="A")
        te.compute((8, 2, 4), lambda i, j: plus(A[i, 0:3]), name="B")
    """

    code = "LW0487"

    def __init__(self, intrinsic: str, problem: str, hint: str) -> None:
        super().__init__(f"{intrinsic}: {problem}", hint=hint, fields={"intrinsic": intrinsic})


class Intrinsic(Protocol):
    """The intrinsic that is called; `schedule/tensor_intrin.py` has the class."""

    name: str
    op: ComputeOp
    inputs: tuple[Tensor, ...]
    scalar_params: tuple[Var, ...]

    @property
    def reduces(self) -> bool: ...

    def as_whole(self) -> str: ...

    def as_update(self) -> str: ...

    def as_init(self) -> str | None: ...


class TensorIntrinCall:
    """What calling an intrinsic gives, for `te.compute` to make tensors of."""

    def __init__(
        self, intrin: Intrinsic, regions: Sequence[TensorRegion], axes: Sequence[IterVar], scalars: Sequence[Expr]
    ) -> None:
        self.intrin, self.regions = intrin, tuple(regions)
        self.tensors = tuple([region.tensor for region in regions])
        self.reduce_axis, self.scalar_inputs = tuple(axes), tuple(scalars)

    @staticmethod
    def of(intrin: Intrinsic, args: Sequence[object], options: Mapping[str, Any]) -> TensorIntrinCall:
        """The call `intrin(*args, reduce_axis=…, scalar_inputs=…)`, checked."""
        unknown = set(options) - {"reduce_axis", "scalar_inputs", "tensor_inputs"}
        if unknown:
            raise BadIntrinsicCall(intrin.name, f"there is no option {sorted(unknown)[0]}", "use reduce_axis=")
        by_place = [arg for arg in args if _is_number(arg)]  # scalars, wherever they stand
        regions = [_region(intrin.name, k, arg) for k, arg in enumerate(args) if not _is_number(arg)]
        if len(regions) != len(intrin.inputs):
            problem = f"{len(regions)} tensors are given, and it has {len(intrin.inputs)} inputs"
            raise BadIntrinsicCall(intrin.name, problem, f"give {', '.join([item.name for item in intrin.inputs])}")
        for region, declared in zip(regions, intrin.inputs, strict=True):
            _check_region(intrin.name, region, declared)
        axes = options.get("reduce_axis")
        given = [] if axes is None else list(axes) if isinstance(axes, (list, tuple)) else [axes]
        if given and not intrin.reduces:
            raise BadIntrinsicCall(
                intrin.name, "it does not reduce, so there is nothing to combine", "leave reduce_axis out"
            )
        if not all([isinstance(axis, IterVar) and axis.iter_type is IterType.CommReduce for axis in given]):
            raise BadIntrinsicCall(intrin.name, f"reduce_axis is {axes!r}", "give axes made by te.reduce_axis")
        scalars = options.get("scalar_inputs", by_place or None)
        values = [] if scalars is None else list(scalars) if isinstance(scalars, (list, tuple)) else [scalars]
        if len(values) != len(intrin.scalar_params):
            problem = f"{len(values)} scalars are given, and it has {len(intrin.scalar_params)}"
            raise BadIntrinsicCall(intrin.name, problem, "give one value for each of its scalar_params")
        return TensorIntrinCall(intrin, regions, given, [as_expr(value) for value in values])


def _is_number(given: object) -> bool:
    return isinstance(given, (Expr, int, float))


def _region(name: str, position: int, given: object) -> TensorRegion:
    if isinstance(given, TensorRegion):
        return given
    if isinstance(given, Tensor) and not given.shape:
        return TensorRegion(given, ())
    if isinstance(given, TensorSlice) and len(given.indices) == given.tensor.ndim:
        return TensorRegion(given.tensor, tuple([Range.from_min_extent(index, 1) for index in given.indices]))
    shown = f"{type(given).__name__} {given!r}"
    raise BadIntrinsicCall(name, f"input {position} is {shown}", "give a part of a tensor, such as A[i, 0:16]")


def _check_region(name: str, region: TensorRegion, declared: Tensor) -> None:
    facts = Analyzer()
    sizes = region.region[region.tensor.ndim - declared.ndim :] if region.tensor.ndim >= declared.ndim else ()
    leading = region.region[: region.tensor.ndim - declared.ndim]
    fits = len(sizes) == declared.ndim and all([facts.can_prove_equal(part.extent, 1) for part in leading])
    if not fits or not all(
        [facts.can_prove_equal(part.extent, size) for part, size in zip(sizes, declared.shape, strict=True)]
    ):
        shown = ", ".join([dim_text(part.extent) for part in region.region])
        problem = f"the part of {region.tensor.name} has shape ({shown}), its input {declared.name} "
        problem += shape_text(declared.shape)
        raise BadIntrinsicCall(name, problem, "give a part of that shape; dimensions before it are one index each")
    if region.tensor.dtype is not declared.dtype:
        problem = f"{region.tensor.name} has type {region.tensor.dtype}, its input {declared.name} {declared.dtype}"
        raise BadIntrinsicCall(name, problem, "convert the tensor first")


class TensorComputeOp(ComputeOp):
    """Tensors whose tiles are computed by `intrin` on `input_regions` of `inputs`.

    The first `schedulable_ndim` axes count tiles; the others are the intrinsic's own, and so are `tile_reduce_axis`.
    """

    __slots__ = ("input_regions", "inputs", "intrin", "scalar_inputs", "schedulable_ndim", "tile_reduce_axis")

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, object] | None,
        axis: Sequence[IterVar],
        body: Sequence[Expr],
        call: TensorIntrinCall,
        tile_reduce_axis: Sequence[IterVar],
        regions: Sequence[TensorRegion],
    ) -> None:
        self.intrin, self.scalar_inputs = call.intrin, call.scalar_inputs
        self.inputs = tuple([region.tensor for region in regions])
        self.input_regions = tuple(regions)
        self.schedulable_ndim = len(axis) - len(call.intrin.op.axis)
        super().__init__(name, tag, attrs, axis, body, list(dict.fromkeys(self.inputs)))
        self.reduce_axis = call.reduce_axis
        self.tile_reduce_axis = tuple(tile_reduce_axis)

    @property
    def tile_axes(self) -> tuple[IterVar, ...]:
        """The axes that one use of the intrinsic runs over."""
        return (*self.axis[self.schedulable_ndim :], *self.tile_reduce_axis)

    def reading(self, change: Mapping[Tensor, Tensor], body: Sequence[Expr]) -> TensorComputeOp:
        """The same on other tensors."""
        regions = [
            TensorRegion(change.get(region.tensor, region.tensor), region.region) for region in self.input_regions
        ]
        call = TensorIntrinCall(self.intrin, regions, self.reduce_axis, self.scalar_inputs)
        return TensorComputeOp(self.name, self.tag, self.attrs, self.axis, body, call, self.tile_reduce_axis, regions)

    def plain(self) -> ComputeOp:
        """What the operation means, as a compute like any other; its tile axes come last in each kind."""
        axes = [
            axis if axis.iter_type is IterType.DataPar else IterVar(axis.dom, axis.var, IterType.DataPar)
            for axis in self.axis
        ]
        return ComputeOp(self.name, self.tag, self.attrs, axes, self.body, self.input_tensors)


class _OnRegions(Rewriter):
    """The body of an intrinsic on parts of other tensors, in other axes."""

    def __init__(self, parts: Mapping[Tensor, TensorRegion], variables: Mapping[Var, Expr]) -> None:
        self.parts, self.variables = parts, variables

    def visit_Var(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def visit_ProducerLoad(self, load: ProducerLoad) -> Expr:
        indices = [self.visit(index) for index in load.indices]
        assert isinstance(load.producer, Tensor)
        region = self.parts[load.producer]
        first = region.tensor.ndim - len(indices)
        lows = [part.min for part in region.region]
        moved = [_plus(low, index) for low, index in zip(lows[first:], indices, strict=True)]
        return ProducerLoad(region.tensor, (*lows[:first], *moved))


def _plus(low: Expr, index: Expr) -> Expr:
    if isinstance(low, IntImm) and low.value == 0:
        return cast(index, low.dtype) if index.dtype is not low.dtype else index
    return low + cast(index, low.dtype)


@deep
def tensor_compute(
    name: str,
    tag: str,
    attrs: Mapping[str, object] | None,
    shape: Sequence[Expr],
    axes: Sequence[IterVar],
    call: TensorIntrinCall,
) -> TensorComputeOp:
    """The operation that `te.compute` makes of a call of an intrinsic."""
    meaning = call.intrin.op
    tile = shape[len(axes) :]
    facts = Analyzer()
    wanted = meaning.output_shape(0)
    if len(tile) != len(wanted) or not all(
        [facts.can_prove_equal(size, other) for size, other in zip(tile, wanted, strict=True)]
    ):
        problem = f"te.compute {name} has tiles of shape {shape_text(tile)}, and it gives {shape_text(wanted)}"
        hint = (
            f"let the shape end with {shape_text(wanted)}, and give the function one argument for each dimension before"
        )
        raise BadIntrinsicCall(call.intrin.name, problem, hint)
    own = [IterVar(Range(size), DataVar(f"ax{k}", size.dtype), IterType.Opaque) for k, size in enumerate(tile)]
    inner = [
        IterVar(axis.dom, ReduceVar(axis.var.name, axis.var.dtype), axis.iter_type) for axis in meaning.reduce_axis
    ]
    variables: dict[Var, Expr] = {
        old.var: new.var for old, new in zip([*meaning.axis, *meaning.reduce_axis], [*own, *inner], strict=True)
    }
    variables.update(dict(zip(call.intrin.scalar_params, call.scalar_inputs, strict=True)))
    rewriter = _OnRegions(dict(zip(call.intrin.inputs, call.regions, strict=True)), variables)
    body: list[Expr] = []
    for value in meaning.body:
        if isinstance(value, Reduce):
            source = tuple([rewriter.visit(part) for part in value.source])
            condition = rewriter.visit(logical_and(value.condition))
            over = (*call.reduce_axis, *inner)
            body.append(Reduce(value.combiner, source, over, condition, value.value_index))
        else:
            body.append(rewriter.visit(value))
    return TensorComputeOp(name, tag, attrs, [*axes, *own], body, call, inner, call.regions)
