"""replay: the directives of a te schedule as steps of the schedule engine, each proved, each in the trace.

First the inlined stages go; then, from the outputs to the inputs, each stage moves to the place it was given and gets
the loops it was given there, those on threads at once; last, loops get their other kinds. So an axis means a loop of
the stage where it stands, and a split applies to the part of the axis that is computed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from loopwright.ir import Buffer, Expr, For, IntImm, IterType, IterVar, is_one
from loopwright.runtime.errors import NotBuilt, SourceLine
from loopwright.schedule import BlockRV, LoopRV, ScheduleError
from loopwright.schedule import Schedule as Engine
from loopwright.schedule.errors import WouldRace
from loopwright.schedule.primitives.memory.sink_alloc import NothingToSink
from loopwright.te.extern import ExternOp
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.axis_algebra import split_sizes
from loopwright.te.schedule.errors import CannotAttach, CannotBind, CannotMark, TeScheduleError
from loopwright.te.schedule.normalize import current_axis
from loopwright.te.schedule.program import Program, has_whole_reader, make_program
from loopwright.te.schedule.relations import Fuse, Rebase, Singleton, Split, Transform, parts_of
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import INLINE, INLINED_ALREADY, SCOPE, root_axes
from loopwright.te.schedule.thread_loops import ThreadLoops
from loopwright.te.tensor import Tensor, dim_text
from loopwright.te.tensor_compute import Intrinsic, TensorComputeOp

_NOTES = {IterType.Vectorized: "vectorize", IterType.Unrolled: "unroll", IterType.Parallelized: "parallel"}


@dataclass
class Nest:
    """One block of a stage with its own loops: what stands for each axis now."""

    block: BlockRV
    loops: dict[IterVar, LoopRV] = field(default_factory=dict)
    extents: dict[IterVar, Expr] = field(default_factory=dict)  # of every axis there ever was


@dataclass
class Replayed:
    """The engine's schedule with every step done, and what became of each stage."""

    schedule: Engine
    program: Program
    nests: dict[Stage, list[Nest]]


def replay(sch: ScheduleState, args: Sequence[object] | None, binds: Mapping[Tensor, Buffer] | None = None) -> Replayed:
    """Lower a te schedule to blocks and do everything that was asked for.

    Stages that threads compute together are proved one by one, and where that fails all at once: between the steps, a
    stage may stand among threads whose own loops, or those of the stages that it reads, are not shared out yet.
    """
    program = make_program(sch, args, binds)
    try:
        return _Replay(sch, program).run()
    except WouldRace:
        if not any(attr.bind_thread is not None for stage in sch.stages for attr in stage.iter_var_attrs.values()):
            raise
    done: list[Replayed] = []
    engine = Engine(program.function)
    engine.replay(lambda: done.append(_Replay(sch, program, engine).run()))
    return done[-1]


class _Replay:
    def __init__(self, sch: ScheduleState, program: Program, engine: Engine | None = None) -> None:
        self.sch, self.program = sch, program
        self.engine = Engine(program.function) if engine is None else engine
        self.nests: dict[Stage, list[Nest]] = {}
        self.threads = ThreadLoops(self.engine)

    def run(self) -> Replayed:
        computed = [stage for stage in self.sch.stages if not isinstance(stage.op, PlaceholderOp)]
        for stage in computed:
            if stage.attach_type == INLINE and not has_whole_reader(self.sch, stage):
                self.inline(stage)
        placed = [stage for stage in reversed(computed) if not self.is_gone(stage)]
        for stage in placed:
            self.nests[stage] = [Nest(self.engine.get_block(result.name)) for result in self.blocks_of(stage)]
            self.place(stage)
            for nest in self.nests[stage]:
                self.shape(stage, nest)
                self.bind(stage, nest)
        for stage in placed:
            if isinstance(stage.op, ScanOp) and stage.env_threads_:
                self.launch(stage, stage.op)
        for stage in placed:
            for nest in self.nests[stage]:
                self.prepare(stage, nest)
        for stage in placed:
            self.sink(stage)
        for stage in placed:
            for nest in self.nests[stage]:
                self.tensorize(stage, nest)
        for stage in placed:
            for nest in self.nests[stage]:
                self.mark(stage, nest)
        return Replayed(self.engine, self.program, self.nests)

    def blocks_of(self, stage: Stage) -> list[Any]:
        return self.program.making.blocks.get(self.program.ops[stage], [])

    def is_gone(self, stage: Stage) -> bool:
        """Whether the stage was inlined, or is not computed at all."""
        if stage.attach_type == INLINED_ALREADY:
            return True
        return stage.attach_type == INLINE and not has_whole_reader(self.sch, stage)

    @contextmanager
    def errors_name(self, line: SourceLine | None) -> Iterator[None]:
        """A refusal names the line where the user asked for it, not the one that lowers the schedule."""
        try:
            yield
        except ScheduleError as error:
            error.refusal = None  # what it would suggest are steps of another surface
            error.legend = self.legend()
            if line is not None:
                error.user_line = line
            raise
        except TeScheduleError as error:
            if line is not None:
                error.user_line = line
            raise

    def legend(self) -> dict[str, str]:
        """What the user calls the loops of the program whose names differ from those of their axes."""
        message: dict[str, list[str]] = {}
        for stage, nests in self.nests.items():
            for axis, loop in [item for nest in nests for item in nest.loops.items()]:
                message.setdefault(loop.name, []).append(f"{axis.var.name} of {stage.name}")
        names = {name: list(dict.fromkeys(axes)) for name, axes in message.items()}
        return {name: " or ".join(axes) for name, axes in names.items() if not axes[0].startswith(f"{name} ")}

    # --- places ---------------------------------------------------------------------------------------------------

    def inline(self, stage: Stage) -> None:
        with self.errors_name(stage.inline_line):
            for result in self.blocks_of(stage):
                self.engine.compute_inline(result.name)

    def place(self, stage: Stage) -> None:
        """Move the stage to the loop where it shall be computed, and find its own loops there."""
        target = attach_of(stage)
        for result, nest in zip(self.blocks_of(stage), self.nests[stage], strict=True):
            if target is None:
                self.find_loops(stage, nest, result.given)
                continue
            parent, axis, line = target
            with self.errors_name(line):
                loop = self.loop_at(stage, parent, axis)
                self.engine.compute_at(nest.block, loop, preserve_unit_loops=True)
                realize = self.engine.get(nest.block)
                own = self.engine.get_loops(nest.block)[-len(realize.iter_vars) :]
                self.name_loops(nest, root_axes(self.program.ops[stage]), own)

    def loop_at(self, stage: Stage, parent: Stage, axis: IterVar) -> LoopRV:
        """The loop that an axis of `parent` is now."""
        if parent not in self.nests or not self.nests[parent]:
            raise CannotAttach(
                f"compute_at: {stage.name} hangs at {axis.var.name} of {parent.name}, which is "
                + ("computed inside its readers" if parent.attach_type == INLINE else "no nest of loops"),
                hint=f"compute {stage.name} at a stage that has loops",
            )
        loops = self.nests[parent][-1].loops
        axis = current_axis(parent, axis)
        if axis not in loops:
            raise CannotAttach(
                f"compute_at: {axis.var.name} of {parent.name} is no loop in the program",
                hint=f"the loops of {parent.name} are {', '.join(parent.leaf_names())}",
            )
        return loops[axis]

    def find_loops(self, stage: Stage, nest: Nest, given: int | None) -> None:
        """The loops of a stage that is computed where the function has it."""
        op = self.program.ops[stage]
        if isinstance(op, ExternOp):
            return
        loops = self.engine.get_loops(nest.block)
        if isinstance(op, HybridOp):
            variables = self.program.making.loops.get(op, {})
            by_var = {loop.var: loop for loop in loops}
            result = {axis: by_var.get(variables.get(axis.var, axis.var)) for axis in op.axis}
            for axis, loop in result.items():
                if loop is not None:
                    self.name_loops(nest, [axis], [loop])
            return
        axes = list(root_axes(op))
        if given is None:
            self.name_loops(nest, axes, loops)
            return
        # Inside a scan, time is the loop around; the axis stands for one step of it.
        own = [axis for k, axis in enumerate(axes) if k != given]
        self.name_loops(nest, own, loops[len(loops) - len(own) :])
        time = stage_axes(stage)[given]
        nest.loops.pop(time, None)
        self.step_loop(stage, nest, time)

    def step_loop(self, stage: Stage, nest: Nest, time: IterVar) -> None:
        """A loop of one iteration for the time axis of a stage in a scan, if something was asked of it."""
        used = time in stage.iter_var_attrs or time is not stage.leaf_iter_vars[0] if stage.leaf_iter_vars else False
        named = [axis for directive in stage.directives for axis in _axes_in(directive.what)]
        hung = any([other.attach_stage is stage and other.attach_ivar is time for other in self.sch.stages])
        if used or time in named or hung:
            first = next(iter(nest.loops.values()), None)
            unit = self.engine.add_unit_loop(first if first is not None else nest.block)
            self.name_loops(nest, [time], [unit])

    def name_loops(self, nest: Nest, axes: Sequence[IterVar], loops: Sequence[LoopRV]) -> None:
        """Note which loop stands for which axis."""
        for axis, loop in zip(axes, loops, strict=False):
            nest.loops[axis] = loop
            nest.extents[axis] = self.extent(loop)

    def extent(self, loop: LoopRV) -> Expr:
        node = self.engine.get(loop)
        assert isinstance(node, For)
        return node.extent

    # --- loops ----------------------------------------------------------------------------------------------------

    def shape(self, stage: Stage, nest: Nest) -> None:
        """Split, fuse and reorder as asked, in the order in which it was asked."""
        # The final operation may have axes of its own (counting from 0); the user's are the same by position.
        for ours, theirs in zip(root_axes(self.program.ops[stage]), stage_axes(stage), strict=True):
            if ours is not theirs and ours in nest.loops:
                nest.loops[theirs], nest.extents[theirs] = nest.loops.pop(ours), nest.extents.pop(ours)
        if isinstance(stage.op, TensorComputeOp) and len(nest.loops) > 1:
            # What the intrinsic runs over is innermost, whatever the order of the axes.
            tile = [axis for axis in stage.op.tile_axes if axis in nest.loops]
            self.engine.reorder(
                *[nest.loops[axis] for axis in nest.loops if axis not in tile], *[nest.loops[axis] for axis in tile]
            )
        for relation in stage.relations:
            if isinstance(relation, Rebase) and relation.parent in nest.loops:
                nest.loops[relation.rebased] = nest.loops.pop(relation.parent)
                nest.extents[relation.rebased] = nest.extents[relation.parent]
        for directive in stage.directives:
            with self.errors_name(directive.where):
                if isinstance(directive.what, Split):
                    self.split(stage, nest, directive.what)
                elif isinstance(directive.what, Fuse):
                    self.fuse(nest, directive.what)
                elif isinstance(directive.what, Singleton):
                    first = next((nest.loops[leaf] for leaf in nest.loops), None)
                    loop = self.engine.add_unit_loop(first if first is not None else nest.block)
                    self.name_loops(nest, [directive.what.iter], [loop])
                else:
                    loops = [nest.loops[axis] for axis in directive.what if axis in nest.loops]
                    if len(loops) > 1:
                        self.engine.reorder(*loops)

    def split(self, stage: Stage, nest: Nest, directive: Split) -> None:
        if directive.parent not in nest.loops:
            return
        loop = nest.loops.pop(directive.parent)
        extent = self.extent(loop)
        keep = self.is_bound(stage, directive.outer) or self.is_bound(stage, directive.inner)
        outer, inner = split_sizes(extent, directive.factor, directive.nparts, keep)
        sizes = [None, _plain(inner)] if directive.factor is not None else [_plain(outer), None]
        result = self.engine.split(loop, sizes)
        self.name_loops(nest, [directive.outer, directive.inner], result)

    def fuse(self, nest: Nest, directive: Fuse) -> None:
        if directive.outer not in nest.loops or directive.inner not in nest.loops:
            return
        fused = self.engine.fuse(nest.loops.pop(directive.outer), nest.loops.pop(directive.inner))
        self.name_loops(nest, [directive.fused], [fused])

    def is_bound(self, stage: Stage, axis: IterVar) -> bool:
        """Whether the axis, or one that comes from it, runs on threads."""
        derived = {axis}
        for relation in stage.relations:
            used, given = parts_of(relation)
            if derived.intersection(used):
                derived.update(given)
        return any(
            [stage.iter_var_attrs[one].bind_thread is not None for one in derived if one in stage.iter_var_attrs]
        )

    # --- what is said about loops and memory ----------------------------------------------------------------------

    def prepare(self, stage: Stage, nest: Nest) -> None:
        """Steps that are about memory: they need loops of no kind yet."""
        op = self.program.ops[stage]
        if stage.is_double_buffered:
            self.engine.annotate(nest.block, "double_buffer_scope", 0)
        for axis, attr in stage.iter_var_attrs.items():
            if attr.dim_align_factor and isinstance(op, ComputeOp):
                position = [*stage_axes(stage)].index(axis)
                with self.errors_name(attr.lines.get("storage_align")):
                    for k in range(op.num_outputs):
                        factor, offset = attr.dim_align_factor, attr.dim_align_offset
                        self.engine.storage_align(nest.block, k, position, factor, offset)
            for tensor, distance in zip(attr.prefetch_data, attr.prefetch_offset, strict=True):
                with self.errors_name(attr.lines.get("prefetch")):
                    self.prefetch(stage, nest, axis, tensor, distance)

    def prefetch(self, stage: Stage, nest: Nest, axis: IterVar, tensor: Tensor, distance: Expr) -> None:
        source = self.sch[tensor]
        buffer = self.program.buffer(source, tensor.value_index)
        if not isinstance(distance, IntImm):
            raise CannotMark(f"prefetch: offset is {distance}", hint="give a number of iterations")
        loop = nest.loops.get(current_axis(stage, axis))
        if loop is None:
            raise CannotMark(f"prefetch: {axis.var.name} of {stage.name} is no loop in the program")
        self.engine.prefetch(nest.block, loop, buffer.name, distance.value)

    def sink(self, stage: Stage) -> None:
        """What is computed inside a loop lies there too, so that iterations that run together do not share it."""
        op = self.program.ops[stage]
        if attach_of(stage) is None or isinstance(op, ScanOp):
            return
        inside = set(self.program.making.allocated)
        for k in range(op.num_outputs):
            buffer = self.program.buffer(stage, k)
            if buffer in inside:
                try:
                    self.engine.sink_alloc(self.nests[stage][0].block, buffer.name)
                except NothingToSink:
                    continue  # its values outlive the loop, so its memory has to as well

    def tensorize(self, stage: Stage, nest: Nest) -> None:
        """Have an instruction compute what lies inside a loop."""
        points = [axis for axis in stage.leaf_iter_vars if self.intrin_at(stage, axis) is not None]
        if isinstance(stage.op, TensorComputeOp):
            self.use(stage, nest, stage.op)
            return
        if not points:
            return
        axis = points[0]
        attr = stage.iter_var_attrs[axis]
        with self.errors_name(attr.lines.get("tensorize")):
            if len(points) > 1:
                names = " and ".join([point.var.name for point in points])
                raise CannotMark(f"tensorize: {stage.name} has two such loops, {names}", hint="choose the outer one")
            location = stage.leaf_iter_vars.index(axis)
            outside, inside = stage.leaf_iter_vars[:location], stage.leaf_iter_vars[location:]
            for inner in inside[1:]:
                marked = stage.iter_var_attrs.get(inner)
                if marked is not None and (marked.bind_thread is not None or marked.iter_type in _NOTES):
                    raise CannotMark(
                        f"tensorize: {inner.var.name} of {stage.name} lies inside the instruction, and is marked",
                        hint="mark loops outside of it only",
                    )
            assert attr.tensor_intrin is not None
            self.put(nest, attr.tensor_intrin, outside, inside)

    def use(self, stage: Stage, nest: Nest, op: TensorComputeOp) -> None:
        """The intrinsic that an operation was made of."""
        tile = [axis for axis in op.tile_axes if axis in nest.loops]
        if op.scalar_inputs:
            raise NotBuilt(f"{op.name}: a tensor intrinsic with scalar inputs", "make the scalar a tensor of rank 0")
        outside = [axis for axis in stage.leaf_iter_vars if axis not in tile]
        self.put(nest, op.intrin, outside, tile)

    def put(self, nest: Nest, intrin: Intrinsic, outside: Sequence[IterVar], inside: Sequence[IterVar]) -> None:
        """Have `intrin` compute what the loops `inside` run over."""
        continues = [one for one in outside if one.iter_type is IterType.CommReduce and one in nest.loops]
        runs_on = [one for one in continues if not is_one(self.extent(nest.loops[one]))]
        loop = nest.loops[inside[0]]
        if not intrin.reduces or not runs_on:
            self.engine.tensorize(loop, intrin.as_whole())
            return
        update, init = intrin.as_update(), intrin.as_init()
        if init is not None:
            rows = len([one for one in inside if one.iter_type is not IterType.CommReduce])
            start = self.engine.decompose_reduction(nest.block, nest.loops[runs_on[0]])
            self.engine.tensorize(self.engine.get_loops(start)[-rows], init)
        self.engine.tensorize(loop, update)

    def intrin_at(self, stage: Stage, axis: IterVar) -> object:
        attr = stage.iter_var_attrs.get(axis)
        return None if attr is None else attr.tensor_intrin

    def mark(self, stage: Stage, nest: Nest) -> None:
        """Loops get their kinds and notes."""
        for axis in stage.leaf_iter_vars:
            attr, loop = stage.iter_var_attrs.get(axis), nest.loops.get(axis)
            if attr is None or loop is None:
                continue
            if attr.iter_type in _NOTES:
                with self.errors_name(attr.lines.get("kind")):
                    self.check_constant(stage, axis, loop, attr.iter_type)
                    getattr(self.engine, _NOTES[attr.iter_type])(loop)
            for key, value in zip(attr.pragma_keys, attr.pragma_values, strict=True):
                with self.errors_name(attr.lines.get("pragma")):
                    self.engine.annotate(loop, f"pragma_{key}", 1 if value is None else value)

    def check_constant(self, stage: Stage, axis: IterVar, loop: LoopRV, kind: IterType) -> None:
        extent = self.extent(loop)
        if kind is not IterType.Parallelized and not isinstance(extent, IntImm):
            step = _NOTES[kind]
            raise CannotMark(
                f"{step}: {axis.var.name} of {stage.name} runs {dim_text(extent)} times, which is no number yet",
                hint=f"split it with a factor, and {step} the inner loop",
            )

    # --- threads --------------------------------------------------------------------------------------------------

    def bind(self, stage: Stage, nest: Nest) -> None:
        """Put loops on threads, before anything moves under them: what threads share is then computed for all."""
        for axis in stage.leaf_iter_vars:
            attr, loop = stage.iter_var_attrs.get(axis), nest.loops.get(axis)
            if attr is not None and attr.bind_thread is not None and loop is not None:
                with self.errors_name(attr.lines.get("bind")):
                    self.threads.bind(stage, axis, loop, attr.bind_thread)

    def launch(self, stage: Stage, op: ScanOp) -> None:
        """Threads run all steps of a scan together, those of `env_threads` outermost first."""
        with self.errors_name(stage.env_line):
            update = self.sch[op.update[0]]
            if update not in self.nests or not self.nests[update]:
                raise CannotBind(
                    f"env_threads: no loops of their own compute the steps of {stage.name}",
                    hint="give the threads to a scan whose update is a te.compute",
                )
            nest = self.nests[update][-1]
            time = self.engine.get_loops(nest.block)[-len(nest.loops) - 1]
            for thread in reversed(stage.env_threads_):
                time = self.threads.launch(stage, time, thread)


def attach_of(stage: Stage) -> tuple[Stage, IterVar, SourceLine | None] | None:
    """The loop where a stage is computed, its own or its group's; None: where the function has it."""
    here: Stage | None = stage
    while here is not None:
        if here.attach_type == SCOPE and here.attach_stage is not None and here.attach_ivar is not None:
            return here.attach_stage, here.attach_ivar, here.attach_line
        here = here.group
    return None


def stage_axes(stage: Stage) -> Sequence[IterVar]:
    """The axes a stage's loops begin with: those of its operation, or of the layout it was given."""
    done = [relation for relation in stage.relations if isinstance(relation, Transform)]
    op = stage.op
    if isinstance(op, TensorComputeOp):
        return (*op.axis, *op.reduce_axis, *op.tile_reduce_axis)
    if done and isinstance(op, ComputeOp):
        return (*done[-1].transformed_variables, *op.reduce_axis)
    return root_axes(op)


def _axes_in(what: Split | Fuse | Singleton | tuple[IterVar, ...]) -> tuple[IterVar, ...]:
    return what if isinstance(what, tuple) else parts_of(what)[0]


def _plain(size: Expr) -> Expr | int:
    return size.value if isinstance(size, IntImm) else size


__all__ = ["Nest", "Replayed", "attach_of", "current_axis", "replay", "stage_axes"]
