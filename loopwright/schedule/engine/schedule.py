"""Schedule: the engine. It finds what a step is about, has the primitive build it, proves it, applies it, records it.

The steps themselves are methods in `methods/`, and thin: the work is in `primitives/`, one file each. On an error the
old version stands.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import thread_time
from typing import Any, Final, overload

from loopwright.analysis.reduction_init import InitUsesReduction, write_inits
from loopwright.analysis.strides import check_strides
from loopwright.display import progress
from loopwright.ir import Block, BlockRealize, For, GlobalVar, IRModule, PrimFunc
from loopwright.ir.rare_collections import rare_collections
from loopwright.ir.verifier import verify
from loopwright.runtime.description import UNPROVED
from loopwright.runtime.errors import caller, user_call_text
from loopwright.runtime.guesses import no_attribute
from loopwright.schedule.diagnose.guessed_names import instead
from loopwright.schedule.diagnose.handle_history import history_of_handle
from loopwright.schedule.diagnose.suggestions import Refusal
from loopwright.schedule.engine.arguments import check_handles, check_levels, checked_types, nodes_of, plain
from loopwright.schedule.engine.deferred import Deferred, Doubt
from loopwright.schedule.engine.methods import (
    BlockMethods,
    ComputationMethods,
    CopyMethods,
    LoopMethods,
    MemoryMethods,
    QuestionMethods,
    SampleMethods,
    ShowMethods,
)
from loopwright.schedule.engine.prove_step import prove_loop_kinds, prove_step
from loopwright.schedule.engine.state import NotInState, ScheduleState, StmtSRef
from loopwright.schedule.engine.user_steps import USERS, check_bodies
from loopwright.schedule.errors import BadStepArgument, HandleGone, NotSupported, ScheduleError, WrongType
from loopwright.schedule.handles import MARKS, BlockRV, ExprRV, LoopRV, Mark
from loopwright.schedule.origins import Origins
from loopwright.schedule.primitives import PRIMITIVES, Primitive
from loopwright.schedule.proof.buffer_scopes import check_scopes
from loopwright.schedule.proof.debug_checks import ALL, look_again
from loopwright.schedule.proof.tensorized import check_tensorized
from loopwright.schedule.rewrite.alignment import with_alignment
from loopwright.schedule.rewrite.inline_lets import with_lets_written_out
from loopwright.schedule.rewrite.unique_names import with_unique_names
from loopwright.schedule.step import BlockResult, LoopResult, Proof, Result, Step
from loopwright.schedule.trace.calls import Arguments, Handle, Outputs, handles_in
from loopwright.schedule.trace.record import PROVED_TOGETHER, REFUSALS, UNPROVED_STEP, Refused, proof_of_all
from loopwright.schedule.trace.trace import Instruction, InstructionKind, Trace
from loopwright.schedule.view import View

_LARGEST_SEED: Final = 2**31 - 1


class Schedule(
    QuestionMethods,
    LoopMethods,
    ComputationMethods,
    BlockMethods,
    CopyMethods,
    MemoryMethods,
    SampleMethods,
    ShowMethods,
):
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
        for _, function in mod.functions_items():
            check_strides(function)
        functions = {name: _plain(function) for name, function in mod.functions_items()}
        self._views = {name: View(_marked(function, enable_check)) for name, function in functions.items()}
        self._globals = {var.name: var for var in mod.get_global_vars()}
        self._attrs = mod.attrs
        self._history: list[tuple[dict[str, View], int]] = []
        self._random = random.Random(_checked_seed(seed))
        self.enable_check = enable_check
        self.debug_mask = debug_mask if isinstance(debug_mask, int) else ALL if debug_mask == "all" else 0
        self.error_render_level = error_render_level
        self._trace = Trace(is_checked=enable_check)
        self._is_traced = True
        self._decisions: list[object] = []  # of the samples to come, where a composite step is replayed
        self._deferred: Deferred | None = None  # the proofs that a replay owes
        self._refused: tuple[Refused, ...] = ()  # the last steps that were
        self._removed: tuple[Handle, ...] = ()  # handles that were forgotten
        self._function: str | None = "main" if "main" in self._views else None
        self._is_draft = False  # of a draft not even scopes are checked
        if len(self._views) == 1:
            self._function = next(iter(self._views))

        if enable_check:
            try:
                for view in self._views.values():
                    prove_loop_kinds(view)
            except ScheduleError as error:
                error.render_level = error_render_level
                raise

    # --- state ----------------------------------------------------------------------------------------------------

    @staticmethod
    def draft(mod: PrimFunc | IRModule, seed: int | None = None) -> Schedule:
        """A schedule that is there for its trace alone: nothing is checked before that is replayed."""
        result = Schedule(mod, seed=seed, enable_check=False, error_render_level="none")
        result._is_draft = True
        return result

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
        result = Schedule(
            mod, seed=seed, debug_mask=debug_mask, error_render_level=error_render_level, enable_check=enable_check
        )
        result._is_traced = False
        return result

    @property
    def is_proved(self) -> bool:
        """Whether every step was proved, those included that the program had behind it when it came here."""
        return not any([view.function.attrs.get(UNPROVED) for view in self._views.values()])

    @property
    def func_working_on(self) -> GlobalVar | None:
        """The function that names are looked up in."""
        return None if self._function is None else self._globals[self._function]

    def work_on(self, func_name: str) -> None:
        """Look blocks up in that function from now on."""
        self._function = self._own_name("work_on", func_name)

    def _own_name(self, step: str, func_name: str) -> str:
        """The name of a function in the module; what callers from outside know it by will do."""
        if not isinstance(func_name, str):
            raise WrongType(step, "the name of a function", "a text", func_name)
        if func_name in self._views:
            return func_name
        named = [name for name, view in self._views.items() if view.function.attrs.get("global_symbol") == func_name]
        if len(named) != 1:
            raise BadStepArgument(step, f"there is no function {func_name!r}; there are {', '.join(self._views)}")
        return named[0]

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
        return self._random.randint(1, _LARGEST_SEED)

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
        return ScheduleState(self.mod, debug_mask=self.debug_mask, enable_check=self.enable_check, owner=self)

    def get_sref(self, handle: BlockRV | LoopRV | Block | For) -> StmtSRef:
        """A loop or block in its place; the marks of `sample_compute_location` for their handles."""
        if isinstance(handle, LoopRV) and handle.var in MARKS:
            return StmtSRef.inline_mark() if MARKS[handle.var] is Mark.INLINE else StmtSRef.root_mark()
        node = self.get(handle) if isinstance(handle, (BlockRV, LoopRV)) else handle
        if not isinstance(node, (Block, For)):
            raise WrongType("get_sref", "what is looked up", "a block or a loop", node)
        return self.state.get_sref(node)

    def remove_rv(self, handle: BlockRV | LoopRV | ExprRV) -> None:
        """Forget a handle: looking it up fails from now on."""
        self._removed = (*self._removed, handle)

    def view(self, func_name: str | None = None) -> View:
        """The current version of a function, for primitives and analyses."""
        name = self._function if func_name is None else func_name
        if name is None:
            problem = "the schedule does not know which function to be working on: the module has several"
            raise BadStepArgument("schedule", problem, hint='say which: sch.work_on("name")')
        return self._views[self._own_name("schedule", name)]

    def views(self) -> Mapping[str, View]:
        """The current version of every function, by its name."""
        return self._views

    # --- the engine -----------------------------------------------------------------------------------------------

    @rare_collections
    def run_instruction(
        self, kind: str, inputs: Arguments, attrs: Arguments, decision: object = None
    ) -> list[Any]:
        """Do one step by its kind; the handles it gives."""
        if not isinstance(kind, str) or kind not in PRIMITIVES:
            raise BadStepArgument("run_instruction", f"there is no step of the kind {kind!r}", hint="e.g. Split, Fuse")
        primitive, start = PRIMITIVES[kind], thread_time()
        if primitive.is_composite:
            return self._run_composite(primitive, inputs, attrs, decision)
        if primitive.is_sample and decision is None and self._decisions:
            decision = self._decisions.pop(0)
        proof = ""
        asked: list[Instruction] = []  # blocks given by name: looked up first, recorded only if the step is done
        try:
            check_levels(primitive.method, [*inputs.values(), *attrs.values()])
            check_handles(primitive.method, inputs)
            inputs = {
                key: value if key == "factors" else self._with_handles(value, asked) for key, value in inputs.items()
            }
            view, name = self._locate(inputs, attrs)
            arguments = {key: nodes_of(view, value, primitive.takes_marks) for key, value in inputs.items()}
            arguments.update({key: plain(value) for key, value in attrs.items()})
            if primitive.is_sample:
                arguments["decision"] = decision
            if primitive.may_guess:
                arguments["is_owed"] = self._deferred is not None
            several = primitive.gives_list
            with checked_types(primitive.method, primitive.hints, arguments):
                if primitive.is_query:
                    results = primitive.function(view, **arguments)
                elif primitive.is_sample:
                    results, decision = primitive.function(view, self._random, **arguments)
                else:
                    step = with_alignment(view, _step_of(primitive, view, arguments))
                    proof = self._apply(primitive, name, view, step)
                    results, several = step.results, step.several
        except ScheduleError as error:
            seconds = thread_time() - start
            error.steps = _without_questions(self._trace.insts)
            error.render_level = self.error_render_level
            if isinstance(error, HandleGone):
                self._with_history(error)
            error.refusal = Refusal(self, self._frozen(), kind, inputs, attrs, seconds)
            if not primitive.is_query:
                self._note_refusal(primitive, inputs, attrs, error, seconds)
            raise
        if not self.enable_check:
            self._trace.is_checked = False
        for question in asked:
            self._trace.append(question)
        handles = [self._handle(result) for result in results]
        self._trace.append(
            Instruction(
                InstructionKind(kind),
                dict(inputs),
                dict(attrs),
                handles,
                several,
                primitive.method,
                str(caller() or ""),
                proof=proof,
                seconds=thread_time() - start,
            ),
            decision,
        )
        return handles

    def _apply(self, primitive: Primitive, name: str, view: View, step: Step) -> str:
        """Prove the step, and make what it gives the next version of function `name`; how it was shown to be right."""
        if primitive.is_users:
            check_bodies(primitive.method, view.function, step.after)
            step = replace(step, proof=Proof.VALUES, given=None, buffers=None, origins=Origins())
        proof = self._prove(primitive.method, name, view, step)
        if self.debug_mask and self.enable_check:
            look_again(primitive.method, view.function, step, self.debug_mask)
        self._history.append((dict(self._views), len(self._trace.insts)))
        is_unsafe = InstructionKind(primitive.kind).is_unsafe
        done = _marked(step.after, self.enable_check and not is_unsafe)
        self._views[name] = view.followed_by(done, step.moved)
        return UNPROVED_STEP if is_unsafe else proof

    def _prove(self, method: str, name: str, view: View, step: Step) -> str:
        """How the step was shown to keep every value, in words; a replay owes the proof."""
        if self._deferred is not None:
            check_tensorized(method, view, View(step.after))
            self._deferred.add(name, view, step)
            return PROVED_TOGETHER
        if self._is_draft:
            return UNPROVED_STEP
        check_scopes(method, step)
        if not self.enable_check:
            return UNPROVED_STEP
        with progress.task(f"prove {method}"):
            return prove_step(method, view, step)

    def _do(self, kind: str, inputs: Arguments, **attrs: object) -> Any:
        """A step as a method call: one handle, a list, or nothing."""
        return self._as_given(self.run_instruction(kind, inputs, attrs))

    def run_composite(
        self, kind: str, inputs: Arguments, attrs: Arguments, decision: object = None
    ) -> Outputs:
        """Do a step that a user's function is made of: its handles, as the function gives them."""
        return self._as_given(self.run_instruction(kind, inputs, attrs, decision))

    def _as_given(self, handles: list[Handle]) -> Outputs:
        """The handles of the last step as its caller gets them."""
        return handles if self._trace.insts[-1].several else handles[0] if handles else None

    def _run_composite(
        self, row: Primitive, inputs: Arguments, attrs: Arguments, decision: Any
    ) -> list[Handle]:
        """The function runs on a copy; what it did becomes one entry of the trace."""
        start = thread_time()
        inner = self.copy()
        inner._trace = Trace(is_checked=self._trace.is_checked)
        inner._history = []
        inner._decisions = list(decision or [])
        try:
            result = row.function(inner, **inputs, **{key: plain(value) for key, value in attrs.items()})
        except ScheduleError as error:
            if isinstance(error, HandleGone):
                inner._with_history(error, self.changes())
            error.steps = _without_questions([*self._trace.insts, *inner._trace.insts])
            self._note_refusal(row, inputs, attrs, error, thread_time() - start)
            raise
        several = isinstance(result, (list, tuple))
        handles = list(result) if several else [] if result is None else [result]
        for handle in handles:
            if not isinstance(handle, (BlockRV, LoopRV, ExprRV)):
                raise WrongType(row.method, "what it gives", "handles of blocks, loops or numbers", handle)
        self._history.append((dict(self._views), len(self._trace.insts)))
        self._views = inner._views
        built = Instruction(
            InstructionKind(row.kind),
            dict(inputs),
            dict(attrs),
            handles,
            several,
            row.method,
            str(caller() or ""),
            inner._trace,
            proof_of_all([inst.proof for inst in inner._trace.insts]),
            thread_time() - start,
        )
        self._trace.append(built, list(inner._trace.decisions.values()) or None)
        return handles

    def __getattr__(self, name: str) -> Any:
        """Steps that users have registered are methods too."""
        result = USERS.get(name)
        if result is None:
            known = [*dir(type(self)), *USERS]
            raise no_attribute("Schedule has no step or attribute", name, known, instead(name, user_call_text))
        return partial(result, self)

    @rare_collections
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
            with progress.task("prove all steps"):
                self._deferred.finish(self._views)
        except (Doubt, ScheduleError) as error:
            if isinstance(error, ScheduleError) and not self._is_changed_since(views):
                raise  # without a step that owes a proof, it stands
            self.__dict__.update(before)
            self._views, self._history, self._trace, self._deferred = views, history, trace, None
            self._random.setstate(state)
            steps()
        finally:
            self._deferred = None

    def _is_changed_since(self, views: Mapping[str, View]) -> bool:
        return any([view is not views[name] for name, view in self._views.items()])

    # --- what handles stand for -----------------------------------------------------------------------------------

    def _locate(self, inputs: Arguments, attrs: Arguments) -> tuple[View, str]:
        handles = handles_in(inputs.values())
        if not handles:
            name = attrs.get("func_name")
            name = self._function if name is None else name
            if name is None and "func_name" not in attrs:
                name = next(iter(self._views))  # about no function in particular
            return self.view(name), str(name) if name is None else self._own_name("schedule", name)
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
        raise self._with_history(HandleGone(gone, is_loop))

    def _realize(self, block: BlockRV | str) -> BlockRealize:
        if isinstance(block, BlockRV):
            return self._view_of([block]).realize(block.key)
        (result,) = PRIMITIVES["GetBlock"].function(self.view(), name=block)
        return self.view().realize(result.key)

    def _with_handles(self, value: object, asked: list[Instruction]) -> object:
        """Blocks given by name become handles, as if `get_block` had been called."""
        if isinstance(value, str):
            attrs = {"name": value, "func_name": self._function}
            (result,) = PRIMITIVES["GetBlock"].function(self.view(), **attrs)
            handle = self._handle(result)
            kind = InstructionKind("GetBlock")
            asked.append(Instruction(kind, {}, attrs, [handle], False, "get_block", str(caller() or "")))
            return handle
        if isinstance(value, (list, tuple)):
            return [self._with_handles(item, asked) for item in value]
        return value

    def _handle(self, result: Result) -> Handle:
        if isinstance(result, LoopResult):
            return LoopRV(result.var)
        if isinstance(result, BlockResult):
            key = result.key
            for view in self._views.values():
                if key in view.index.blocks:
                    return BlockRV(key, view.realize(key).block.name_hint)
            return BlockRV(key, str(key))
        return ExprRV(result)

    # --- looking back ---------------------------------------------------------------------------------------------

    def changes(self) -> list[tuple[Instruction, Mapping[str, View]]]:
        """Each step that changed the program, with the functions as they were before it."""
        rows = [(inst, PRIMITIVES[inst.kind]) for inst in self._trace.insts]
        steps = [inst for inst, primitive in rows if not (primitive.is_query or primitive.is_sample)]
        return [(inst, views) for inst, (views, _) in zip(steps, self._history, strict=True)]

    def _with_history(
        self, error: HandleGone, earlier: Sequence[tuple[Instruction, Mapping[str, View]]] = ()
    ) -> HandleGone:
        """The error, able to tell what became of the loop or block; `earlier` came before the steps of this trace."""
        done, now = [*earlier, *self.changes()], dict(self._views)
        error.fate = lambda: history_of_handle(error.gone, done, now, error.is_loop)
        return error

    def _note_refusal(
        self, row: Primitive, inputs: Arguments, attrs: Arguments, error: ScheduleError, seconds: float
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


def _plain(function: PrimFunc) -> PrimFunc:
    """The function as primitives see it: with blocks known by their names, and integer lets written out."""
    function = with_lets_written_out(with_unique_names(function))
    write_inits(function.body)  # raises where one cannot be
    return function


def _step_of(primitive: Primitive, view: View, arguments: Mapping[str, Any]) -> Step:
    """What a primitive does; one that would leave a start where it cannot be is refused."""
    try:
        result: Step = primitive.function(view, **arguments)
    except InitUsesReduction as error:
        raise NotSupported(primitive.method, error.problem, error.at) from None
    return result


def _marked(function: PrimFunc, is_proved: bool) -> PrimFunc:
    """The function, with the mark that building it carries on where something was not proved."""
    return function if is_proved or function.attrs.get(UNPROVED) else function.with_attr(UNPROVED, True)


def _without_questions(steps: Sequence[Instruction]) -> tuple[Instruction, ...]:
    return tuple([inst for inst in steps if not PRIMITIVES[inst.kind].is_query])


def _checked_seed(seed: int | None) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise WrongType("Schedule", "seed", "an int", seed)
    if not (seed == -1 or 1 <= seed <= _LARGEST_SEED):
        raise BadStepArgument("Schedule", f"seed is {seed}", hint=f"give a seed from 1 to {_LARGEST_SEED}")
    return None if seed == -1 else seed


def _check_options(debug_mask: str | int, error_render_level: str) -> None:
    is_word = isinstance(debug_mask, str) and debug_mask in ("all", "none")
    if not is_word and (isinstance(debug_mask, bool) or not isinstance(debug_mask, int)):
        raise BadStepArgument("Schedule", f"debug_mask is {debug_mask!r}", hint='use "all", "none" or a number')
    if not isinstance(error_render_level, str) or error_render_level not in ("detail", "fast", "none"):
        problem = f"error_render_level is {error_render_level!r}"
        raise BadStepArgument("Schedule", problem, hint='use "detail", "fast" or "none"')
