"""The program that a te schedule starts from: its graph as one function with a block for each stage, before any step.

Here the graph takes its last form: reduce axes count from 0 (loops are split from there), tensors have the layouts they
were given, and each result lies in the memory it was given.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import (
    Buffer,
    Expr,
    IntImm,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Reduce,
    Var,
    const,
    decl_buffer,
    substitute,
)
from loopwright.ir.buffer import DEFAULT_ALIGNMENT
from loopwright.runtime.errors import user_stack_level, with_article
from loopwright.te.create_prim_func import function_of
from loopwright.te.extern import ExternOp
from loopwright.te.function_in_making import FunctionInMaking
from loopwright.te.lower_body import IndexTypes
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.axis_algebra import leaves_from_roots
from loopwright.te.schedule.errors import ArgumentsMissing, BadBinding, CannotMark, CannotTransformLayout
from loopwright.te.schedule.graph import BodyRewriter, replace_inputs, rewrite_body, tensors_in
from loopwright.te.schedule.layouts import Relaid, relaid_op
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import GROUP_ROOT, SCOPE, root_axes
from loopwright.te.schedule.tensor_intrin import TensorIntrin
from loopwright.te.schedule.thread_loops import storing_thread
from loopwright.te.tensor import Operation, Tensor, dim_text
from loopwright.te.tensor_compute import TensorComputeOp


class Program(NamedTuple):
    """The function, and what became of each stage in it."""

    function: PrimFunc
    ops: dict[Stage, Operation]
    making: FunctionInMaking

    def buffer(self, stage: Stage, index: int = 0) -> Buffer:
        """Where an output of a stage lies."""
        return self.making.buffers[self.ops[stage].output(index)]


def make_program(
    sch: ScheduleState, args: Sequence[object] | None, binds: Mapping[Tensor, Buffer] | None = None
) -> Program:
    """The function of `sch` with the parameters `args`; tensors in `binds` lie in these buffers."""
    given = _check_args(sch, args, binds)
    ops = _final_ops(sch)
    result: list[Tensor | Var] = []
    bound: dict[Tensor, Buffer] = {}
    names: dict[Tensor, str] = {}
    for tensor, buffer in given:
        if not isinstance(tensor, Tensor) or _is_unused_input(sch, tensor):
            result.append(tensor)
            continue
        final = ops[sch[tensor]].output(tensor.value_index)
        if buffer is not None:
            _check_fits(final, buffer)
            bound[final] = buffer
        names[final] = tensor.name
        result.append(final)
    making = _Making(IndexTypes(None, result), ops, names)
    listed = _listed(sch, given)
    dropped = [op for op in sch.outputs if op not in listed]
    if dropped:
        lacking = ", ".join([op.name for op in dropped])
        message = f"schedule: args lacks {lacking}: computed in the function, and dropped"
        warnings.warn(message, stacklevel=user_stack_level())
    function = function_of(result, making, bound, [ops[sch[op]] for op in dropped])
    return Program(function.with_attr("from_legacy_te_schedule", True), ops, making)


# --- parameters ---------------------------------------------------------------------------------------------------


def _check_args(
    sch: ScheduleState, args: Sequence[object] | None, binds: Mapping[Tensor, Buffer] | None
) -> list[tuple[Tensor | Var, Buffer | None]]:
    """The parameters in order, each with the buffer that was given for it."""
    placeholders = inputs_of(sch)
    wanted = [op.name for op in [*placeholders, *sch.outputs]]
    if args is None or isinstance(args, str) or not isinstance(args, Sequence):
        if args is not None:
            raise BadBinding(
                f"schedule: args is {with_article(type(args).__name__)}, not a list",
                hint=f"give args=[{', '.join(wanted)}]",
            )
        raise ArgumentsMissing(wanted, [], wanted)
    buffers = dict(binds or {})
    of_buffer = {buffer: tensor for tensor, buffer in buffers.items()}
    result: list[tuple[Tensor | Var, Buffer | None]] = []
    for position, arg in enumerate(args):
        if isinstance(arg, Buffer):
            tensor = of_buffer.get(arg)
            if tensor is None:
                raise BadBinding(
                    f"schedule: entry {position} of args is the buffer {arg.name}, which stands for no tensor",
                    hint=f"say which: binds={{tensor: {arg.name}}}",
                )
            result.append((tensor, arg))
        elif isinstance(arg, Tensor):
            if not _is_unused_input(sch, arg):
                sch[arg]  # refused here when the schedule does not know it
            result.append((arg, buffers.get(arg)))
        elif isinstance(arg, Var):
            result.append((arg, None))
        else:
            raise BadBinding(
                f"schedule: entry {position} of args is {with_article(type(arg).__name__)}, which is no parameter",
                hint="give tensors, buffers and variables",
            )
    listed = _listed(sch, result)
    missing = [op.name for op in placeholders if op not in listed]
    if missing or not result:
        raise ArgumentsMissing(missing or wanted, [arg.name for arg, _ in result], wanted)
    seen: set[object] = set()
    for arg, _ in result:
        if arg in seen:
            raise BadBinding(f"schedule: args holds {arg.name} twice", hint="give each parameter once")
        seen.add(arg)
    return result


def _listed(sch: ScheduleState, given: Sequence[tuple[Tensor | Var, Buffer | None]]) -> set[Operation]:
    """The operations of the schedule that are parameters."""
    return {sch[arg].op for arg, _ in given if isinstance(arg, Tensor) and not _is_unused_input(sch, arg)}


def _is_unused_input(sch: ScheduleState, tensor: Tensor) -> bool:
    """Whether nothing that is computed reads the tensor: a parameter all the same."""
    return isinstance(tensor.op, PlaceholderOp) and tensor.op not in inputs_of(sch)


def inputs_of(sch: ScheduleState) -> list[Operation]:
    """The placeholders that are read, not those that stand for the state of a scan."""
    states = {
        state.op for stage in sch.stages if isinstance(stage.op, ScanOp) for state in stage.op.state_placeholder
    }
    return [stage.op for stage in sch.stages if isinstance(stage.op, PlaceholderOp) and stage.op not in states]


def _check_fits(tensor: Tensor, buffer: Buffer) -> None:
    if not isinstance(buffer, Buffer):
        raise BadBinding(
            f"schedule: {tensor.name} is bound to {with_article(type(buffer).__name__)}", hint="give a buffer"
        )
    facts = Analyzer()
    if buffer.dtype is not tensor.dtype:
        raise BadBinding(
            f"schedule: buffer {buffer.name} has type {buffer.dtype}, its tensor {tensor.name} {tensor.dtype}",
            hint="declare the buffer with the tensor's type",
        )
    same = len(buffer.shape) == len(tensor.shape) and all(
        [facts.can_prove_equal(one, other) for one, other in zip(buffer.shape, tensor.shape, strict=True)]
    )
    if not same:
        shapes = [", ".join([dim_text(size) for size in item.shape]) for item in (buffer, tensor)]
        raise BadBinding(
            f"schedule: buffer {buffer.name} has shape ({shapes[0]}), its tensor {tensor.name} ({shapes[1]})",
            hint="declare the buffer with the tensor's shape; strides and offset may differ",
        )


# --- the graph in its last form -----------------------------------------------------------------------------------


def _final_ops(sch: ScheduleState) -> dict[Stage, Operation]:
    result: dict[Stage, Operation] = {}
    changed: dict[Tensor, Tensor] = {}
    layouts: dict[Tensor, tuple[Tensor, Sequence[object]]] = {}
    for stage in sch.stages:
        op = replace_inputs(stage.op, changed)
        if layouts:
            op = _with_layouts(op, layouts)
        if isinstance(op, TensorComputeOp):
            op = op.plain()
        op = _from_zero(relaid_op(stage, op))
        if op is not stage.op:
            for k in range(op.num_outputs):
                if stage.layout_transforms:
                    layouts[stage.op.output(k)] = (op.output(k), stage.layout_transforms)
                else:
                    changed[stage.op.output(k)] = op.output(k)
        result[stage] = op
    return result


def _with_layouts(op: Operation, layouts: Mapping[Tensor, tuple[Tensor, Sequence[object]]]) -> Operation:
    read = [tensor for tensor in op.input_tensors if tensor in layouts]
    if not read:
        return op
    if not isinstance(op, ComputeOp):
        raise CannotTransformLayout(
            f"transform_layout: {op.name} reads {read[0].name} as a whole, in its own layout",
            hint="copy the tensor with a te.compute, and let that one be read",
        )
    body = rewrite_body(op, Relaid(layouts, {}))  # type: ignore[arg-type]
    return ComputeOp(op.name, op.tag, op.attrs, op.axis, body, tensors_in(body))


def _from_zero(op: Operation) -> Operation:
    """The same reduction with axes that count from 0."""
    reduce = op.body[0] if isinstance(op, ComputeOp) else None
    if not isinstance(op, ComputeOp) or not isinstance(reduce, Reduce):
        return op
    moved: dict[Var, Expr] = {}
    axes: list[IterVar] = []
    for axis in reduce.axis:
        assert axis.dom is not None
        low, extent = substitute(axis.dom.min, moved), substitute(axis.dom.extent, moved)
        if isinstance(low, IntImm) and low.value == 0 and extent is axis.dom.extent:
            axes.append(axis)
            continue
        new = type(axis.var)(axis.var.name, axis.var.dtype)
        axes.append(IterVar(Range.from_min_extent(const(0, low.dtype), extent), new, IterType.CommReduce))
        moved[axis.var] = low + new
    if not moved:
        return op
    result = BodyRewriter(moved).visit(reduce.with_(axis=()))
    body = [
        result.with_(axis=tuple(axes), value_index=field.value_index) for field in op.body if isinstance(field, Reduce)
    ]
    return ComputeOp(op.name, op.tag, op.attrs, op.axis, body, tensors_in(body))


# --- memory -------------------------------------------------------------------------------------------------------


class _Making(FunctionInMaking):
    """A function in the making whose buffers lie where their stages say."""

    one_block = True

    def __init__(self, index: IndexTypes, ops: Mapping[Stage, Operation], names: Mapping[Tensor, str]) -> None:
        super().__init__(index)
        self.stage_of = {op: stage for stage, op in ops.items()}
        self.given_names = names  # parameters are called what the user calls them

    def declare(self, tensor: Tensor, called: str | None = None) -> Buffer:
        return super().declare(tensor, called or self.given_names.get(tensor))

    def new_buffer(self, tensor: Tensor, shape: Sequence[Expr], name: str) -> Buffer:
        stage = self.stage_of.get(tensor.op)
        if stage is None:
            return super().new_buffer(tensor, shape, name)
        is_parameter = tensor in self.given_names
        scope = "" if is_parameter else stage.scope or inferred_scope(stage)
        return decl_buffer(
            shape,
            tensor.dtype,
            name,
            data_alignment=self.alignment(tensor) if is_parameter else -1,
            scope=scope or "global",
            axis_separators=stage.axis_separators or None,
        )

    def alignment(self, tensor: Tensor) -> int:
        """What the instructions that use a parameter ask of its memory, which the call then checks; -1 for nothing."""
        asked = [-1]
        for op, stage in self.stage_of.items():
            if tensor.op is op or any([one is tensor for one in op.input_tensors]):
                marked = [attr.tensor_intrin for attr in stage.iter_var_attrs.values()]
                called = [stage.op.intrin] if isinstance(stage.op, TensorComputeOp) else []
                for intrin in (*marked, *called):
                    buffers = intrin.buffers if isinstance(intrin, TensorIntrin) else ()
                    asked += [one.data_alignment for one in buffers if one.data_alignment != DEFAULT_ALIGNMENT]
        return max(asked)

    def may_fold(self, op: Operation) -> bool:
        # A stage that moves is found by its indices, time among them.
        stage = self.stage_of.get(op)
        return stage is None or (stage.attach_type == GROUP_ROOT and stage.group is None)

    def store_condition(self, op: Operation) -> Expr | None:
        stage = self.stage_of.get(op)
        if stage is None or stage.store_predicate is None:
            return None
        roots = {axis: axis.var for axis in root_axes(stage.op)}
        values = leaves_from_roots(roots, stage.relations, stage.sizes())
        known: dict[Var, Expr] = {axis.var: value for axis, value in values.items() if axis not in roots}
        turns: dict[Var, Expr] = {}
        for axis, attr in stage.iter_var_attrs.items():
            if attr.bind_thread is None or axis not in stage.leaf_iter_vars:
                continue
            thread = attr.bind_thread.var
            if axis.iter_type is IterType.CommReduce:
                known.pop(axis.var, None)
                turns.update({thread: thread, axis.var: thread})
            elif axis in values:
                known[thread] = values[axis]
        if not turns:
            known |= self._first_of_others(stage)
            condition = Analyzer().simplify(substitute(stage.store_predicate, known))
            if isinstance(condition, IntImm) and not condition.value:
                raise CannotMark(
                    f"set_store_predicate: no thread stores {stage.name}: {stage.store_predicate} holds for none",
                    hint="the threads along which a stage has no loop leave it to the first of them: ask for number 0",
                )
            return None if isinstance(condition, IntImm) else condition
        condition = substitute(substitute(stage.store_predicate, known), turns)
        self.stored_by[op] = storing_thread(stage, condition)
        return None  # who stores the result changes nothing: it is one for all threads


    def _first_of_others(self, stage: Stage) -> dict[Var, Expr]:
        """The threads along which a stage has no loop: it is left to the first of them."""
        own = [attr.bind_thread for attr in stage.iter_var_attrs.values()]
        tags = {*_thread_tags(stage), *[axis.thread_tag for axis in own if axis is not None]}
        bound = [attr.bind_thread for other in self.stage_of.values() for attr in other.iter_var_attrs.values()]
        others = [axis.var for axis in bound if axis is not None and axis.thread_tag not in tags]
        return {var: const(0, var.dtype) for var in others}


def inferred_scope(stage: Stage) -> str:
    """Memory for a stage that was given none: per thread under threads, per block of threads under blocks."""
    tags = _thread_tags(stage)
    if any([tag.startswith(("threadIdx", "vthread", "cthread")) for tag in tags]):
        return "local"
    return "shared" if any([tag.startswith("blockIdx") for tag in tags]) else "global"


def _thread_tags(stage: Stage) -> list[str]:
    """The threads of the loops that a stage is computed under."""
    tags: list[str] = []
    here: Stage | None = stage
    while here is not None:
        if here.attach_type == SCOPE and here.attach_stage is not None and here.attach_ivar is not None:
            parent = here.attach_stage
            for leaf in parent.leaf_iter_vars:
                attr = parent.iter_var_attrs.get(leaf)
                if attr is not None and attr.bind_thread is not None:
                    tags.append(attr.bind_thread.thread_tag)
                if leaf is here.attach_ivar:
                    break
            here = parent
        else:
            here = here.group
    return tags


def has_whole_reader(sch: ScheduleState, stage: Stage) -> bool:
    """Whether an operation that needs the whole tensor in memory reads it: such a stage cannot be inlined."""
    return any(
        [
            isinstance(other.op, ExternOp) and any([read.op is stage.op for read in other.op.input_tensors])
            for other in sch.stages
        ]
    )
