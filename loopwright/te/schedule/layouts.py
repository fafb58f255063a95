"""transform_layout: a tensor is stored in another layout, and computed in the order of its cells.

    B[i, j] = A[i, j] + 1           s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])

    B'[jo, i, ji] = A[i, jo * 4 + ji] + 1          and a reader's B[x, y] becomes B'[y // 4, x, y % 4]

The map is used up when the schedule is lowered: it must have an inverse on the shape, so each element has one cell and
each cell one element, and every read finds what it found. An input is taken in the new layout from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loopwright.arith import Analyzer
from loopwright.arith.index_map import IndexMap
from loopwright.ir import Expr, IterVar, ProducerLoad, Range, Var
from loopwright.ir.operators import cast
from loopwright.runtime.errors import LoopwrightError, caller
from loopwright.te.axes import data_axis
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.schedule.errors import CannotTransformLayout
from loopwright.te.schedule.graph import BodyRewriter, rewrite_body, same_objects, tensors_in
from loopwright.te.schedule.relations import Directive, Transform
from loopwright.te.schedule.stage_state import StageState
from loopwright.te.tensor import Operation, Tensor, dim_text


def transform_layout(stage: StageState, mapping_function: Callable[..., object]) -> list[IterVar] | None:
    """Note the layout; the new axes of a compute."""
    op = stage.op
    axes = _data_axes(stage, op)
    shape = [axis.dom.extent for axis in axes if axis.dom is not None] if axes else _stored_shape(stage, op)
    dtype = shape[0].dtype if shape else "int32"
    try:
        mapping, separators = IndexMap.from_func_with_separators(mapping_function, len(shape), index_dtype=dtype)
        inverse = mapping.inverse(list(shape))
        new_shape = mapping.map_shape(list(shape))
    except LoopwrightError as error:
        sizes = ", ".join([dim_text(size) for size in shape])
        raise CannotTransformLayout(
            f"transform_layout of {stage.name}, shape ({sizes}): {error.problem}",
            why=error.why,
            hint="use every index, so that each element gets a cell of its own and no cell is left over",
        ) from None
    _check_start(stage, mapping)
    stage.layout_transforms.append(mapping)
    stage.axis_separators = list(separators)
    if not axes:
        stage._record("transform_layout")
        return None
    names = [_name(result, k) for k, result in enumerate(mapping.final_indices)]
    built = [data_axis(name, size) for name, size in zip(names, new_shape, strict=True)]
    first = stage.leaf_iter_vars.index(axes[0])
    stage.leaf_iter_vars[first : first + len(axes)] = built
    stage.all_iter_vars += built
    relation = Transform(tuple(axes), tuple(built), mapping, inverse)
    stage.relations.append(relation)
    if stage.directives:
        # Orders that were asked for name axes that are no more: the order that they made is asked for again.
        stage.directives.append(Directive(tuple(stage.leaf_iter_vars), caller()))
    stage._record("transform_layout")
    return built


def _check_start(stage: StageState, mapping: IndexMap) -> None:
    """The first element is in the first cell: a map with an inverse only moves digits, so no cell is left over."""
    facts = Analyzer()
    first = [facts.simplify(index) for index in mapping.map_indices([0] * len(mapping.initial_indices))]
    if not all([facts.can_prove_equal(index, 0) for index in first]):
        raise CannotTransformLayout(
            f"transform_layout of {stage.name}: {mapping!r} leaves the cells before {first!r} without an element",
            hint="let every index of the map begin at 0",
        )


def _name(index: Expr, position: int) -> str:
    """An axis that stands for one old index keeps its name."""
    return index.name if isinstance(index, Var) else f"axis{position}"


def _data_axes(stage: StageState, op: Operation) -> list[IterVar]:
    """The data axes as loops, in order; refused where they are no longer whole and together."""
    if not isinstance(op, ComputeOp):
        return []
    done = [relation for relation in stage.relations if isinstance(relation, Transform)]
    axes = list(done[-1].transformed_variables if done else op.axis)
    leaves = stage.leaf_iter_vars
    if not axes:
        return []
    if axes[0] not in leaves or leaves[leaves.index(axes[0]) :][: len(axes)] != axes:
        raise CannotTransformLayout(
            f"transform_layout: the data axes {', '.join([axis.var.name for axis in axes])} of {stage.name} were "
            f"split, fused or reordered; its loops are now {', '.join(stage.leaf_names())}",
            hint="call transform_layout first, and schedule the axes that it gives",
        )
    return axes


def _stored_shape(stage: StageState, op: Operation) -> list[Expr]:
    shape: list[Expr] = list(op.output(0).shape)
    for mapping in stage.layout_transforms:
        shape = list(mapping.map_shape(shape))
    return shape


# --- when the schedule is lowered ---------------------------------------------------------------------------------


class Relaid(BodyRewriter):
    """Loads of tensors that are stored in another layout."""

    def __init__(
        self, layouts: Mapping[Tensor, tuple[Tensor, Sequence[IndexMap]]], variables: Mapping[Var, Expr]
    ) -> None:
        super().__init__(variables)
        self.layouts = layouts
        self.facts = Analyzer()

    def visit_ProducerLoad(self, load: ProducerLoad) -> Expr:
        indices = tuple([self.visit(index) for index in load.indices])
        result = self.layouts.get(load.producer)  # type: ignore[call-overload]
        if result is None:
            return load if same_objects(indices, load.indices) else ProducerLoad(load.producer, indices)
        tensor, maps = result
        for mapping in maps:
            indices = _apply(mapping, indices, self.facts)
        return ProducerLoad(tensor, indices)


def _apply(mapping: IndexMap, indices: Sequence[Expr], facts: Analyzer) -> tuple[Expr, ...]:
    given = [cast(index, var.dtype) for index, var in zip(indices, mapping.initial_indices, strict=True)]
    return tuple([facts.simplify(index) for index in mapping.map_indices(given)])


def relaid_op(stage: StageState, op: Operation) -> Operation:
    """The operation of a stage with its result in the new layout; what it reads is dealt with elsewhere."""
    if not stage.layout_transforms:
        return op
    if isinstance(op, PlaceholderOp):
        return PlaceholderOp(op.name, _stored_shape(stage, op), op.dtype)
    if not isinstance(op, ComputeOp):
        raise CannotTransformLayout(
            f"transform_layout: {stage.name} is no te.compute and no input", hint="copy it with a te.compute first"
        )
    transforms = [relation for relation in stage.relations if isinstance(relation, Transform)]
    axes = list(transforms[-1].transformed_variables)
    values: list[Expr] = [axis.var for axis in axes]
    facts = Analyzer()
    for axis in axes:
        facts.bind(axis.var, axis.dom or Range(1))
    for relation in reversed(transforms):
        inverse = relation.inverse_transformation
        assert isinstance(inverse, IndexMap)
        values = list(_apply(inverse, values, facts))
    renamed = {axis.var: cast(value, axis.var.dtype) for axis, value in zip(op.axis, values, strict=True)}
    body = rewrite_body(op, BodyRewriter(renamed))
    return ComputeOp(op.name, op.tag, op.attrs, axes, body, tensors_in(body))
