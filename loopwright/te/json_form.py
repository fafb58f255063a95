"""Graphs of tensors, and te schedules, as JSON: what `ir.save_json` and `ir.load_json` write and read of this layer.

A tensor is an output of its operation, so operations are saved and tensors name them. A schedule is saved with all that
was said about its stages, but without the lines where it was said, and without its record.
"""

from __future__ import annotations

from dataclasses import fields as fields_of
from typing import Any, Final

from loopwright.ir import IterVar
from loopwright.te.axes import DataVar, ReduceVar
from loopwright.te.extern import ExternOp
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.scan import ScanOp
from loopwright.te.scan_body import read_scan_body
from loopwright.te.schedule.relations import (
    Directive,
    Fuse,
    IterVarAttr,
    Rebase,
    Singleton,
    Split,
    Transform,
)
from loopwright.te.schedule.schedule import Schedule
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.tensor_intrin import TensorIntrin
from loopwright.te.tensor import Operation, Tensor, TensorRegion
from loopwright.te.tensor_compute import TensorComputeOp, TensorIntrinCall

# Operation → what its constructor takes after name, tag and attrs, as attributes of the operation.
_OPERATIONS: Final[dict[type, tuple[str, ...]]] = {
    ComputeOp: ("axis", "body", "input_tensors"),
    ScanOp: ("scan_axis", "init", "update", "state_placeholder", "inputs", "spatial_axis_"),
    ExternOp: ("inputs", "input_placeholders", "output_placeholders", "body"),
    HybridOp: ("inputs", "outputs", "axis", "body"),
    TensorComputeOp: (
        *("axis", "body", "intrin", "input_regions", "reduce_axis", "scalar_inputs", "tile_reduce_axis"),
    ),
}
_INTRINSIC: Final = ("name", "op", "inputs", "buffers", "scalar_params", "body", "reduce_init", "reduce_update")
_RECORDS: Final[dict[str, type]] = {
    cls.__name__: cls for cls in (Fuse, IterVarAttr, Rebase, Singleton, Split, Transform)
}
_STAGE: Final = (
    *("is_output", "scope", "num_child_stages", "attach_type", "attach_ivar", "env_threads_", "is_double_buffered"),
    *("is_rolling", "store_predicate", "layout_transforms", "axis_separators", "all_iter_vars", "leaf_iter_vars"),
    *("relations", "iter_var_attrs"),
)


def save_fields(node: object) -> dict[str, object] | None:
    """What an object holds, by name; None for a class that has no JSON form."""
    if isinstance(node, Tensor):
        return {"op": node.op, "value_index": node.value_index}
    if isinstance(node, (DataVar, ReduceVar)):
        return {"name": node.name, "type_annotation": node.type_annotation}
    if isinstance(node, PlaceholderOp):
        return {"name": node.name, "shape": node.shape, "dtype": node.dtype}
    if type(node) in _OPERATIONS:
        assert isinstance(node, Operation)
        own = {name: getattr(node, name) for name in _OPERATIONS[type(node)]}
        return {"name": node.name, "tag": node.tag, "attrs": node.attrs, **own}
    if isinstance(node, TensorRegion):
        return {"tensor": node.tensor, "region": node.region}
    if isinstance(node, TensorIntrin):
        return {name: getattr(node, name) for name in _INTRINSIC}
    if type(node).__name__ in _RECORDS:
        return {one.name: getattr(node, one.name) for one in fields_of(node) if one.name != "lines"}  # type: ignore[arg-type]
    return _save_schedule(node) if type(node) is Schedule else None


def load_fields(name: str, fields: dict[str, Any]) -> object:
    """The object of that class; KeyError or TypeError where the fields are not its own."""
    if name == "Tensor":
        return _expect(Operation, fields["op"]).output(fields["value_index"])
    if name in ("DataVar", "ReduceVar"):
        return (DataVar if name == "DataVar" else ReduceVar)(fields["name"], fields["type_annotation"])
    if name == "PlaceholderOp":
        return PlaceholderOp(fields["name"], fields["shape"], fields["dtype"])
    if name == "TensorRegion":
        return TensorRegion(_expect(Tensor, fields["tensor"]), fields["region"])
    if name == "TensorIntrin":
        text, op, inputs, buffers, scalars, *statements = [fields[key] for key in _INTRINSIC]
        return TensorIntrin(text, op, inputs, buffers, scalars, statements)
    if name in _RECORDS:
        return _RECORDS[name](**fields)
    if name == "Schedule":
        return _load_schedule(fields)
    return _operation(name, fields)


def _expect(cls: type, value: Any) -> Any:
    if not isinstance(value, cls):
        raise TypeError(f"{type(value).__name__} stands where {cls.__name__} belongs")
    return value


def _operation(name: str, fields: dict[str, Any]) -> Operation:
    (cls,) = [one for one in _OPERATIONS if one.__name__ == name]
    head: tuple[Any, Any, Any] = (fields["name"], fields["tag"], fields["attrs"])
    own = [fields[key] for key in _OPERATIONS[cls]]
    for tensor in [one for value in own if isinstance(value, (list, tuple)) for one in value]:
        if tensor is None or isinstance(tensor, (str, int)):
            raise TypeError(f"{tensor!r} stands in a list of tensors, axes or values")
    if cls is ScanOp:
        axis, init, update, states, inputs, spatial = own
        body = read_scan_body(head[0], update, states, init[0].shape[0], update[0].shape[0])
        scan = ScanOp(*head, _expect(IterVar, axis), init, update, states, inputs, body)
        scan.spatial_axis_ = tuple(spatial)
        return scan
    if cls is TensorComputeOp:
        axis, body, intrin, regions, reduced, scalars, tile = own
        call = TensorIntrinCall(_expect(TensorIntrin, intrin), regions, reduced, scalars)
        return TensorComputeOp(*head, axis, body, call, tile, regions)
    result: Operation = cls(*head, *own)
    return result


def _save_schedule(schedule: Schedule) -> dict[str, object]:
    everywhere = [*schedule.stages, *schedule.groups]
    numbers: dict[Stage | None, int | None] = {None: None, **{stage: k for k, stage in enumerate(everywhere)}}
    stages = [
        {
            **{name: getattr(stage, name) for name in _STAGE},
            "op": stage._op,
            "origin_op": stage._origin_op,
            "group": numbers[stage.group],
            "attach_stage": numbers[stage.attach_stage],
            "directives": [directive.what for directive in stage.directives],
        }
        for stage in everywhere
    ]
    return {
        "outputs": schedule.outputs,
        "stages": stages,
        "num_groups": len(schedule.groups),
        "stage_map": [(op, numbers[stage]) for op, stage in schedule.stage_map.items()],
    }


def _load_schedule(fields: dict[str, Any]) -> Schedule:
    result = Schedule([_expect(Operation, op) for op in fields["outputs"]])
    everywhere: list[Stage] = []
    for held in fields["stages"]:
        stage = Stage(result, held["op"])
        stage._origin_op = held["origin_op"]
        for name in _STAGE:
            setattr(stage, name, held[name])
        stage.directives = [Directive(what, None) for what in held["directives"]]
        everywhere.append(stage)
    for stage, held in zip(everywhere, fields["stages"], strict=True):
        stage.group = None if held["group"] is None else everywhere[held["group"]]
        stage.attach_stage = None if held["attach_stage"] is None else everywhere[held["attach_stage"]]
    count = len(everywhere) - fields["num_groups"]
    result.stages, result.groups = everywhere[:count], everywhere[count:]
    result.stage_map = {op: everywhere[k] for op, k in fields["stage_map"]}
    return result
