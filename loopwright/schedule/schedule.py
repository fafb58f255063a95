"""Schedule: the engine. It finds what a step is about, has the primitive build it, proves it, applies it, records it.

A method of `Schedule` is thin: the work is in `primitives/`, one file each. On an error the old version stands.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import thread_time
from typing import Any, Final, overload

from loopwright.ir import Block, Buffer, Expr, For, IRModule, PrimFunc
from loopwright.ir.verifier import verify
from loopwright.runtime.description import UNPROVED
from loopwright.runtime.errors import caller
from loopwright.schedule.cache_methods import CacheMethods
from loopwright.schedule.composites import USERS, check_bodies
from loopwright.schedule.deferred import Deferred, Doubt
from loopwright.schedule.doing import check_handles, map_text, named, sided, size_text
from loopwright.schedule.errors import (
    BadStepArgument,
    HandleGone,
    NotProved,
    ScheduleError,
    WouldChangeValues,
    WouldRace,
    WrongType,
)
from loopwright.schedule.fates import fate_of
from loopwright.schedule.handles import MARKS, BlockRV, ExprRV, LoopRV, Mark
from loopwright.schedule.loop_kinds import check_thread_loops, concurrent_loops, to_prove_again
from loopwright.schedule.primitives import PRIMITIVES, Primitive
from loopwright.schedule.proof import Mismatch, Origins, Unproved, find_mismatch, find_race
from loopwright.schedule.record import PROVED_TOGETHER, REFUSALS, UNPROVED_STEP, Refused, proof_of_all, proof_words
from loopwright.schedule.scopes import check_scopes
from loopwright.schedule.second_look import ALL, look_again
from loopwright.schedule.shape_methods import ShapeMethods
from loopwright.schedule.show_methods import ShowMethods
from loopwright.schedule.state import NotInState, ScheduleState, StmtSRef
from loopwright.schedule.step import BlockResult, LoopResult, Proof, Result, Step
from loopwright.schedule.suggestions import Refusal
from loopwright.schedule.tensorized import check_tensorized
from loopwright.schedule.trace import Instruction, InstructionKind, Trace, handles_in
from loopwright.schedule.view import View

_LARGEST_SEED: Final = 2**31 - 1


class Schedule(CacheMethods, ShapeMethods, ShowMethods):
    """A program and the steps done to it. Every step is proved to keep every value, or refused with a witness."""

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        """`enable_check=False` skips the proofs and marks the program, its trace and what is built of it unproved.

        `debug_mask` looks at every step again: bit 1 at the index of loops and blocks, bit 2 at the proof, without
        shortcuts; "all" does both. `error_render_level` says how much a refusal tells: "detail", "fast" (one line) or
        "none".
        """
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise WrongType("Schedule", "mod", "a PrimFunc or an IRModule", mod)
        if not isinstance(enable_check, bool):
            raise WrongType("Schedule", "enable_check", "a bool", enable_check)
        _check_options(debug_mask, error_render_level)
        verify(mod)
        self._views = {name: View(_marked(function, enable_check)) for name, function in mod.functions_items()}
        self._globals = {var.name: var for var in mod.get_global_vars()}
        self._attrs = mod.attrs
        self._history: list[tuple[dict[str, View], int]] = []
        self._random = random.Random(_checked_seed(seed))
        self.enable_check = enable_check
        self.debug_mask = debug_mask if isinstance(debug_mask, int) else ALL if debug_mask == "all" else 0
        self.error_render_level = error_render_level
        self._trace = Trace(is_checked=enable_check)
        self._is_traced = True
        self._decisions: list[Any] = []  # of the samples to come, where a composite step is replayed
        self._deferred: Deferred | None = None  # the proofs that a replay owes
        self._refused: tuple[Refused, ...] = ()  # the last steps that were
        self._removed: tuple[Any, ...] = ()  # handles that were forgotten
        self._function: str | None = "main" if "main" in self._views else None
        if len(self._views) == 1:
            self._function = next(iter(self._views))

        if enable_check:
            try:
                self._prove_loop_kinds()
            except ScheduleError as error:
                error.render_level = error_render_level
                raise

    def _prove_loop_kinds(self) -> None:
        """Loops written as parallel or vectorized are held to the same rule as those that a step makes so."""
        for view in self._views.values():
            check_thread_loops("Schedule", view)
            for loop in concurrent_loops(view):
                race = find_race(view.function, loop.loop_var)
                if isinstance(race, Unproved):
                    raise NotProved(f"Schedule: loop {loop.loop_var.name}", race.reason, loop)
                if race is not None:
                    raise WouldRace(f"Schedule: loop {loop.loop_var.name}", race.why, loop, race.fields)

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def mod(self) -> IRModule:
        """The program as it is now."""
        functions = {self._globals[name]: view.function for name, view in self._views.items()}
        return IRModule(functions, attrs=self._attrs)  # type: ignore[arg-type]

    @property
    def trace(self) -> Trace:
        """The steps so far; None for schedules made by `_create_non_traced`, which nobody else makes."""
        return self._trace if self._is_traced else None  # type: ignore[return-value]

    @trace.setter
    def trace(self, trace: Trace) -> None:
        self._trace = trace

    @staticmethod
    def _create_non_traced(
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> Schedule:
        """A schedule that shows no trace of its steps."""
        made = Schedule(
            mod, seed=seed, debug_mask=debug_mask, error_render_level=error_render_level, enable_check=enable_check
        )
        made._is_traced = False
        return made

    @property
    def is_proved(self) -> bool:
        """Whether every step was proved, those included that the program had behind it when it came here."""
        return not any([view.function.attrs.get(UNPROVED) for view in self._views.values()])

    @property
    def func_working_on(self) -> Any:
        """The function that names are looked up in."""
        return None if self._function is None else self._globals[self._function]

    def work_on(self, func_name: str) -> None:
        """Look blocks up in that function from now on."""
        if func_name not in self._views:
            raise BadStepArgument("work_on", f"there is no function {func_name!r}; there are {', '.join(self._views)}")
        self._function = func_name

    def copy(self) -> Schedule:
        """A schedule that goes its own way from here; handles work on both."""
        new = object.__new__(Schedule)
        new.__dict__.update(self.__dict__)
        new._views = dict(self._views)
        new._history = list(self._history)
        new._trace = self._trace.copy()
        new._random = random.Random(self._random.random())
        return new

    def undo(self) -> None:
        """Take the last step that changed the program back, with the questions asked since."""
        if not self._history:
            raise BadStepArgument("undo", "there is no step to take back")
        self._views, length = self._history.pop()
        while len(self._trace.insts) > length:
            self._trace.pop()

    def seed(self, seed: int) -> None:
        """Start the random numbers of sampling anew."""
        self._random = random.Random(_checked_seed(seed))

    def fork_seed(self) -> int:
        """A seed for another schedule."""
        return self._random.randint(1, 2**31 - 1)

    @overload
    def get(self, handle: BlockRV) -> Block: ...
    @overload
    def get(self, handle: LoopRV) -> For: ...
    @overload
    def get(self, handle: ExprRV) -> int: ...
    @overload
    def get(self, handle: StmtSRef) -> Block | For: ...
    def get(self, handle: BlockRV | LoopRV | ExprRV | StmtSRef) -> Block | For | int:
        """What a handle stands for now."""
        if isinstance(handle, StmtSRef):
            return handle.stmt  # type: ignore[return-value]
        if any(handle is other for other in self._removed):
            raise NotInState(getattr(handle, "name", handle))
        if isinstance(handle, ExprRV):
            return int(handle)
        if isinstance(handle, LoopRV) and handle.var in MARKS:
            raise NotInState(handle.name)
        view = self._view_of([handle])
        return view.loop(handle.var) if isinstance(handle, LoopRV) else view.realize(handle.key).block

    @property
    def state(self) -> ScheduleState:
        """The program as it is now, to be asked about its structure."""
        return ScheduleState(self.mod, debug_mask=self.debug_mask, enable_check=self.enable_check)

    def get_sref(self, handle: BlockRV | LoopRV | Block | For) -> StmtSRef:
        """A loop or block in its place; the marks of `sample_compute_location` for their handles."""
        if isinstance(handle, LoopRV) and handle.var in MARKS:
            return StmtSRef.inline_mark() if MARKS[handle.var] is Mark.INLINE else StmtSRef.root_mark()
        node = self.get(handle) if isinstance(handle, (BlockRV, LoopRV)) else handle
        assert isinstance(node, (Block, For))
        return self.state.get_sref(node)

    def remove_rv(self, handle: BlockRV | LoopRV | ExprRV) -> None:
        """Forget a handle: looking it up fails from now on."""
        self._removed = (*self._removed, handle)

    def view(self, func_name: str | None = None) -> View:
        """The current version of a function, for primitives and analyses."""
        name = func_name or self._function
        if name is None:
            raise BadStepArgument("schedule", "the module has several functions", hint='say which: sch.work_on("name")')
        if name not in self._views:
            raise BadStepArgument("schedule", f"there is no function {name!r}; there are {', '.join(self._views)}")
        return self._views[name]

    def views(self) -> Mapping[str, View]:
        """The current version of every function, by its name."""
        return self._views

    # --- questions ------------------------------------------------------------------------------------------------

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block called `name`."""
        return self._do("GetBlock", {}, name=name, func_name=func_name or self._function)

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops between a block and the block around it, outermost first."""
        return self._do("GetLoops", {"block": self._block(block)})

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """The nearest blocks inside, in program order."""
        return self._do("GetChildBlocks", {"block_or_loop": block_or_loop})

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what this one reads."""
        return self._do("GetProducers", {"block": self._block(block)})

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what this one writes."""
        return self._do("GetConsumers", {"block": self._block(block)})

    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks inside that write a buffer from outside."""
        return self._do("GetOutputBlocks", {"scope_block": self._block(scope_block)})

    # --- loops ----------------------------------------------------------------------------------------------------

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[int | ExprRV | Expr | str | None],
        preserve_unit_iters: bool = True,
        tail: str = "guard",
    ) -> list[LoopRV]:
        """One loop becomes a nest, outermost first; one factor may be None.

        `tail` says what becomes of a last tile that is not full: "guard" or "peel" what there is of it, "pad" it (and
        the function's own buffers), or "shift" it inward, so that some iterations run twice.
        A factor may be a size of the function, such as `n // 4 + 1`. With `preserve_unit_iters=False`, loops of one
        iteration go from the bindings of the blocks.
        """
        if isinstance(factors, str) or not isinstance(factors, Sequence):
            raise WrongType("split", "factors", "a list", factors, "give one factor for each new loop: [None, 8]")
        inputs = {"loop": loop, "factors": [size_text(factor) for factor in factors]}
        return self._do("Split", inputs, preserve_unit_iters=preserve_unit_iters, tail=tail)

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """A nest becomes one loop; the iterations run in the same order."""
        return self._do("Fuse", {"loops": list(loops)}, preserve_unit_iters=preserve_unit_iters)

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """The loops of a nest in another order; loops not named stay where they are."""
        return self._do("Reorder", {"ordered_loops": list(ordered_loops)})

    def merge(self, *loops: LoopRV) -> LoopRV:
        """Sibling nests become one, their bodies one after the other in each iteration."""
        return self._do("Merge", {"loops": list(loops)})

    def fission(self, loop: LoopRV, index: int = 1) -> list[LoopRV]:
        """A loop over several statements becomes two: one over the first `index`, one over the rest."""
        return self._do("Fission", {"loop": loop}, index=index)

    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV) -> LoopRV:
        """A loop of one iteration around a block or loop."""
        return self._do("AddUnitLoop", {"block_or_loop": block_or_loop})

    def parallel(self, loop: LoopRV) -> None:
        """The iterations run on threads; proved that no two touch one cell with a write among them."""
        return self._do("Parallel", {"loop": loop})

    def vectorize(self, loop: LoopRV) -> None:
        """The iterations run as lanes in lockstep; proved that this keeps every value."""
        return self._do("Vectorize", {"loop": loop})

    def unroll(self, loop: LoopRV) -> None:
        """The iterations are written out one after the other."""
        return self._do("Unroll", {"loop": loop})

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """The iterations run on the threads of an axis such as "threadIdx.x"."""
        return self._do("Bind", {"loop": loop}, thread_axis=thread_axis)

    # --- moving computation ---------------------------------------------------------------------------------------

    def compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """A producer moves under a consumer's loop and computes there what one iteration needs."""
        inputs = {"block": self._block(block), "loop": loop}
        return self._do("ComputeAt", inputs, preserve_unit_loops=preserve_unit_loops, index=index)

    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """A consumer moves under a producer's loop and uses up there what one iteration made."""
        inputs = {"block": self._block(block), "loop": loop}
        return self._do("ReverseComputeAt", inputs, preserve_unit_loops=preserve_unit_loops, index=index)

    def compute_inline(self, block: BlockRV | str) -> None:
        """A block's value is computed where it is read, and the block is gone."""
        return self._do("ComputeInline", {"block": self._block(block)})

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """A block is folded into the block that makes what it reads."""
        return self._do("ReverseComputeInline", {"block": self._block(block)})

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """A reduction's init becomes a block of its own, before `loop`; the old handle stays with the updates."""
        return self._do("DecomposeReduction", {"block": self._block(block), "loop": loop})

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """A loop of a reduction becomes data: partial results in a new dimension, combined by a second reduction."""
        return self._do("RFactor", {"loop": loop}, factor_axis=factor_axis)

    def winograd(self, block: BlockRV | str, tile: int = 4) -> list[BlockRV]:
        """A convolution is computed from tiles of `tile` results a dimension, with fewer products; the new blocks.

        They are equal over the real numbers, and rounded otherwise: `schedule.winograd.error_bound` says how far.
        """
        return self._do("Winograd", {"block": self._block(block)}, tile=tile)

    def blockize(
        self, target: LoopRV | BlockRV | str | Sequence[BlockRV | str], preserve_unit_iters: bool = True
    ) -> BlockRV:
        """What is below a loop, or blocks in a row, become one block over whole tiles."""
        given = [target] if isinstance(target, (BlockRV, str)) else target
        return self._do("Blockize", {"target": given}, preserve_unit_iters=preserve_unit_iters)

    def tensorize(
        self, block_or_loop: BlockRV | LoopRV | str, tensor_intrin: str, preserve_unit_iters: bool = True
    ) -> None:
        """A block, or what is below a loop, is computed by an instruction that `tensor_intrin` names."""
        attrs = {"tensor_intrin": tensor_intrin, "preserve_unit_iters": preserve_unit_iters}
        return self._do("Tensorize", {"block_or_loop": block_or_loop}, **attrs)

    # --- memory ---------------------------------------------------------------------------------------------------

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """A copy of what a block reads, made before it; the block (or the listed ones) reads the copy."""
        consumers = None if consumer_blocks is None else [self._block(consumer) for consumer in consumer_blocks]
        inputs = {"block": self._block(block), "consumer_blocks": consumers}
        return self._do("CacheRead", inputs, read_buffer_index=named(read_buffer_index), storage_scope=storage_scope)

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """A block writes a new buffer, which is copied out after it."""
        consumers = None if consumer_blocks is None else [self._block(consumer) for consumer in consumer_blocks]
        inputs = {"block": self._block(block), "consumer_blocks": consumers}
        return self._do(
            "CacheWrite", inputs, write_buffer_index=named(write_buffer_index), storage_scope=storage_scope
        )

    def stage(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        buffer: int | str | Buffer,
        storage_scope: str = "global",
        layout: Callable[..., Any] | str | None = None,
    ) -> BlockRV:
        """What one iteration of `loop` reads of `buffer` is copied at the loop, perhaps in another layout."""
        inputs = {"block": self._block(block), "loop": loop}
        return self._do(
            "Stage", inputs, buffer=named(buffer), storage_scope=storage_scope, layout=map_text("stage", layout)
        )

    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: tuple[str, int] | str | Buffer,
        index_map: Callable[..., Any] | str,
        pad_value: Any = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """A buffer is stored in another layout, everywhere it is used; an argument changes for the caller as well.

        `pad_value` fills cells that hold no element: a number, or a map from the new indices to one. Nothing is assumed
        with `assume_injective_transform`: a map that puts two elements into one cell is found out.
        """
        inputs = {"block": self._block(block)}
        return self._do(
            "TransformLayout",
            inputs,
            buffer=sided(buffer),
            index_map=map_text("transform_layout", index_map),
            pad_value=map_text("transform_layout", pad_value) if callable(pad_value) else pad_value,
        )

    def set_scope(self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str) -> None:
        """A buffer that the block writes lives in another kind of memory."""
        return self._do(
            "SetScope", {"block": self._block(block)}, buffer_index=named(buffer_index), storage_scope=storage_scope
        )

    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """The stride of a dimension becomes `offset` modulo `factor`."""
        return self._do(
            "StorageAlign",
            {"block": self._block(block)},
            buffer_index=buffer_index,
            axis=axis,
            factor=factor,
            offset=offset,
        )

    def lift_alloc(self, block: BlockRV | str, buffer: int | str | Buffer, levels: int = 1) -> None:
        """A buffer the block writes is allocated further out: `levels` loops up."""
        return self._do("LiftAlloc", {"block": self._block(block)}, buffer=named(buffer), levels=levels)

    def sink_alloc(self, block: BlockRV | str, buffer: int | str | Buffer) -> None:
        """A buffer the block writes is allocated as far in as its values allow."""
        return self._do("SinkAlloc", {"block": self._block(block)}, buffer=named(buffer))

    def prefetch(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        buffer: int | str | Buffer,
        distance: int = 1,
        levels: int = 0,
        lines: int = 1,
    ) -> None:
        """Each iteration of `loop` asks for what the block touches `distance` iterations later, that many cache lines.

        They are iterations of `loop`, or of the loop that is `levels` loops further out. A loop that is beside the
        block, under a loop around both, stands for the block's own of the same depth and length.
        """
        return self._do(
            "Prefetch",
            {"block": self._block(block), "loop": loop},
            buffer=named(buffer),
            distance=distance,
            levels=levels,
            lines=lines,
        )

    # --- notes and samples ----------------------------------------------------------------------------------------

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """A note on a block or loop; an existing one with that key stays."""
        return self._do("Annotate", {"block_or_loop": block_or_loop}, ann_key=ann_key, ann_val=ann_val)

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Take a note away."""
        return self._do("Unannotate", {"block_or_loop": block_or_loop}, ann_key=ann_key)

    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[ExprRV]:
        """`n` factors whose product is the extent of the loop, the last at most `max_innermost_factor` (-1: any)."""
        attrs = {"n": n, "max_innermost_factor": max_innermost_factor}
        return self.run_instruction("SamplePerfectTile", {"loop": loop}, attrs, decision)

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates by its probability; `decision` is its position."""
        attrs = {"candidates": list(candidates), "probs": list(probs)}
        made: ExprRV = self.run_instruction("SampleCategorical", {}, attrs, decision)[0]
        return made

    def enter_postproc(self) -> None:
        """A mark in the trace: what comes now finishes the schedule, and is left out by `remove_postproc`."""
        return self._do("EnterPostproc", {})

    # --- the engine -----------------------------------------------------------------------------------------------

    def run_instruction(
        self, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], decision: Any = None
    ) -> list[Any]:
        """Do one step by its kind; the handles it gives."""
        primitive, start = PRIMITIVES[kind], thread_time()
        if primitive.is_composite:
            return self._run_composite(primitive, inputs, attrs, decision)
        if primitive.is_sample and decision is None and self._decisions:
            decision = self._decisions.pop(0)
        proof = ""
        asked: list[Instruction] = []  # blocks given by name: looked up first, recorded only if the step is done
        try:
            check_handles(primitive.method, inputs)
            inputs = {
                key: value if key == "factors" else self._with_handles(value, asked) for key, value in inputs.items()
            }
            view, name = self._locate(inputs, attrs)
            arguments = {key: self._resolved(view, value, primitive.takes_marks) for key, value in inputs.items()}
            arguments.update({key: _plain(value) for key, value in attrs.items()})
            if primitive.is_query:
                results = primitive.function(view, **arguments)
                several = primitive.gives_list
            elif primitive.is_sample:
                results, decision = primitive.function(view, self._random, decision=decision, **arguments)
                several = primitive.gives_list
            else:
                step = primitive.function(view, **arguments)
                if primitive.is_users:
                    check_bodies(primitive.method, view.function, step.after)
                    step = replace(step, proof=Proof.VALUES, given=None, buffers=None, origins=Origins())
                proof = self._prove(primitive.method, name, view, step)
                if self.debug_mask and self.enable_check:
                    look_again(primitive.method, view.function, step, self.debug_mask)
                self._history.append((dict(self._views), len(self._trace.insts)))
                if InstructionKind(kind).is_unsafe:
                    proof = UNPROVED_STEP
                done = _marked(step.after, self.enable_check and not InstructionKind(kind).is_unsafe)
                self._views[name] = view.followed_by(done, step.moved)
                results, several = step.results, step.several
        except ScheduleError as error:
            error.steps = tuple(inst for inst in self._trace.insts if not PRIMITIVES[inst.kind].is_query)
            error.render_level = self.error_render_level
            if isinstance(error, HandleGone):
                self._with_fate(error)
            seconds = thread_time() - start
            error.refusal = Refusal(self, self._frozen(), kind, inputs, attrs, seconds)
            if not primitive.is_query:
                self._note_refusal(primitive, inputs, attrs, error, seconds)
            raise
        if not self.enable_check:
            self._trace.is_checked = False
        for question in asked:
            self._trace.append(question)
        handles = [self._handle(result) for result in results]
        where = str(caller() or "")
        named = InstructionKind(kind)
        self._trace.append(
            Instruction(
                named,
                dict(inputs),
                dict(attrs),
                handles,
                several,
                primitive.method,
                where,
                proof=proof,
                seconds=thread_time() - start,
            ),
            decision,
        )
        return handles

    def run_composite(
        self, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], decision: Any = None
    ) -> Any:
        """Do a step that a user's function is made of: its handles, as the function gives them."""
        handles = self.run_instruction(kind, inputs, attrs, decision)
        return handles if self._trace.insts[-1].several else handles[0] if handles else None

    def _run_composite(
        self, row: Primitive, inputs: Mapping[str, Any], attrs: Mapping[str, Any], decision: Any
    ) -> list[Any]:
        """The function runs on a copy; what it did becomes one entry of the trace."""
        start = thread_time()
        inner = self.copy()
        inner._trace = Trace(is_checked=self._trace.is_checked)
        inner._history = []
        inner._decisions = list(decision or [])
        try:
            result = row.function(inner, **inputs, **{key: _plain(value) for key, value in attrs.items()})
        except ScheduleError as error:
            if isinstance(error, HandleGone):
                inner._with_fate(error, self.changes())
            steps = [*self._trace.insts, *inner._trace.insts]
            error.steps = tuple(inst for inst in steps if not PRIMITIVES[inst.kind].is_query)
            self._note_refusal(row, inputs, attrs, error, thread_time() - start)
            raise
        several = isinstance(result, (list, tuple))
        handles = list(result) if several else [] if result is None else [result]
        for handle in handles:
            if not isinstance(handle, (BlockRV, LoopRV, ExprRV)):
                raise WrongType(row.method, "what it gives", "handles of blocks, loops or numbers", handle)
        self._history.append((dict(self._views), len(self._trace.insts)))
        self._views = inner._views
        chosen = list(inner._trace.decisions.values()) or None
        where, named = str(caller() or ""), InstructionKind(row.kind)
        made = Instruction(
            named,
            dict(inputs),
            dict(attrs),
            handles,
            several,
            row.method,
            where,
            inner._trace,
            proof_of_all([inst.proof for inst in inner._trace.insts]),
            thread_time() - start,
        )
        self._trace.append(made, chosen)
        return handles

    def __getattr__(self, name: str) -> Any:
        """Steps that users have registered are methods too."""
        found = USERS.get(name)
        if found is None:
            raise AttributeError(f"Schedule has no step or attribute {name!r}")
        return partial(found, self)

    def replay(self, steps: Callable[[], None]) -> None:
        """Do steps that were proved once before, and prove them again as a whole; one by one if that finds a doubt."""
        if not self.enable_check or self.debug_mask or self._deferred is not None:
            steps()
            return
        before = dict(self.__dict__)
        views, history, trace = dict(self._views), list(self._history), self._trace.copy()
        state = self._random.getstate()
        self._deferred = Deferred(self._views)
        try:
            steps()
            self._deferred.finish(self._views)
        except (Doubt, ScheduleError):
            self.__dict__.update(before)
            self._views, self._history, self._trace, self._deferred = views, history, trace, None
            self._random.setstate(state)
            steps()
        finally:
            self._deferred = None

    def _note_refusal(
        self, row: Primitive, inputs: Mapping[str, Any], attrs: Mapping[str, Any], error: ScheduleError, seconds: float
    ) -> None:
        """Remember what was asked, for `history` and `to_html`; nothing is worked out."""
        done, where = len(self._history), error.user_line
        refused = Refused(dict(self._views), done, row.kind, row.method, inputs, attrs, type(error), where, seconds)
        self._refused = (*self._refused[1 - REFUSALS :], refused)

    def _frozen(self, of: Mapping[str, View] | None = None) -> Callable[[], Schedule]:
        """Makes schedules of the program as it is now (or was, `of` a version), with no steps yet, to try things on."""
        views, function = dict(self._views if of is None else of), self._function

        def make() -> Schedule:
            new = object.__new__(type(self))
            new.__dict__.update(self.__dict__)
            new._views, new._function, new._history, new._trace = dict(views), function, [], Trace()
            new._random = random.Random(0)  # of its own: drawing here must not change what the user draws next
            new.enable_check, new.debug_mask = True, 0
            return new

        return make

    def changes(self) -> list[tuple[Instruction, Mapping[str, View]]]:
        """Each step that changed the program, with the functions as they were before it."""
        rows = [(inst, PRIMITIVES[inst.kind]) for inst in self._trace.insts]
        steps = [inst for inst, primitive in rows if not (primitive.is_query or primitive.is_sample)]
        return [(inst, views) for inst, (views, _) in zip(steps, self._history, strict=True)]

    def _do(self, kind: str, inputs: Mapping[str, Any], **attrs: Any) -> Any:
        """A step as a method call: one handle, a list, or nothing."""
        handles = self.run_instruction(kind, inputs, attrs)
        if self._trace.insts[-1].several:
            return handles
        return handles[0] if handles else None

    def _locate(self, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> tuple[View, str]:
        handles = handles_in(inputs.values())
        if not handles:
            name = attrs.get("func_name") or self._function
            if name is None and "func_name" not in attrs:
                name = next(iter(self._views))  # about no function in particular
            return self.view(name), str(name)
        view = self._view_of(handles)
        return view, next(name for name, other in self._views.items() if other is view)

    def _view_of(self, handles: Sequence[BlockRV | LoopRV | ExprRV]) -> View:
        handle = handles[0]
        for view in self._views.values():
            if isinstance(handle, LoopRV) and handle.var in view.index.loops:
                return view
            if isinstance(handle, BlockRV) and view.current(handle.key) in view.index.blocks:
                return view
        is_loop = isinstance(handle, LoopRV)
        gone = handle.var if isinstance(handle, LoopRV) else handle.key if isinstance(handle, BlockRV) else str(handle)
        raise self._with_fate(HandleGone(gone, is_loop))

    def _with_fate(
        self, error: HandleGone, earlier: Sequence[tuple[Instruction, Mapping[str, View]]] = ()
    ) -> HandleGone:
        """The error, able to tell what became of the loop or block; `earlier` came before the steps of this trace."""
        done, now = [*earlier, *self.changes()], dict(self._views)
        error.fate = lambda: fate_of(error.gone, done, now, error.is_loop)
        return error

    def _resolved(self, view: View, value: Any, takes_marks: bool = False) -> Any:
        """Handles become the nodes they stand for."""
        if isinstance(value, LoopRV):
            return MARKS[value.var] if takes_marks and value.var in MARKS else view.loop(value.var)
        if isinstance(value, BlockRV):
            return view.realize(value.key)
        if isinstance(value, ExprRV):
            return int(value)
        if isinstance(value, (list, tuple)):
            return [self._resolved(view, item) for item in value]
        return value

    def _with_handles(self, value: Any, asked: list[Instruction]) -> Any:
        """Blocks given by name become handles, as if `get_block` had been called."""
        if isinstance(value, str):
            attrs = {"name": value, "func_name": self._function}
            (found,) = PRIMITIVES["GetBlock"].function(self.view(), **attrs)
            handle = self._handle(found)
            kind = InstructionKind("GetBlock")
            asked.append(Instruction(kind, {}, attrs, [handle], False, "get_block", str(caller() or "")))
            return handle
        if isinstance(value, (list, tuple)):
            return [self._with_handles(item, asked) for item in value]
        return value

    def _handle(self, result: Result) -> Any:
        if isinstance(result, LoopResult):
            return LoopRV(result.var)
        if isinstance(result, BlockResult):
            key = result.key
            for view in self._views.values():
                if key in view.index.blocks:
                    return BlockRV(key, view.realize(key).block.name_hint)
            return BlockRV(key, str(key))
        return ExprRV(result)

    def _prove(self, method: str, name: str, view: View, step: Step) -> str:
        """How the step was shown to keep every value, in words."""
        if self._deferred is not None:
            check_tensorized(method, view, View(step.after))
            self._deferred.add(name, view, step)
            return PROVED_TOGETHER
        check_scopes(method, step)
        if not self.enable_check:
            return UNPROVED_STEP
        if step.proof is Proof.VALUES:
            found = find_mismatch(step.given or view.function, step.after, step.origins, step.buffers)
            if isinstance(found, Mismatch):
                raise WouldChangeValues(method, found, step.at)
            if found is not None:
                raise NotProved(method, found.reason, step.at)
        after = View(step.after)
        check_thread_loops(method, after)
        check_tensorized(method, view, after)
        at_the_same_time = to_prove_again(view, after, step)
        for var in at_the_same_time:
            race = find_race(step.after, var)
            if isinstance(race, Unproved):
                raise NotProved(f"{method}: loop {var.name}", race.reason, after.loop(var))
            if race is not None:
                raise WouldRace(f"{method}: loop {var.name}", race.why, after.loop(var), race.fields)
        return proof_words(step, bool(at_the_same_time))


def _marked(function: PrimFunc, is_proved: bool) -> PrimFunc:
    """The function, with the mark that building it carries on where something was not proved."""
    return function if is_proved or function.attrs.get(UNPROVED) else function.with_attr(UNPROVED, True)


def _plain(value: Any) -> Any:
    """A setting with sampled numbers as plain ones."""
    if isinstance(value, ExprRV):
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _checked_seed(seed: int | None) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise WrongType("Schedule", "seed", "an int", seed)
    if not (seed == -1 or 1 <= seed <= _LARGEST_SEED):
        raise BadStepArgument("Schedule", f"seed is {seed}", hint=f"give a seed from 1 to {_LARGEST_SEED}")
    return None if seed == -1 else seed


def _check_options(debug_mask: str | int, error_render_level: str) -> None:
    if isinstance(debug_mask, bool) or (not isinstance(debug_mask, int) and debug_mask not in ("all", "none")):
        raise BadStepArgument("Schedule", f"debug_mask is {debug_mask!r}", hint='use "all", "none" or a number')
    if error_render_level not in ("detail", "fast", "none"):
        problem = f"error_render_level is {error_render_level!r}"
        raise BadStepArgument("Schedule", problem, hint='use "detail", "fast" or "none"')
