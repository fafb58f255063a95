"""Suggestions: what would work instead of a refused step, found by trying it.

    merge would change a value
      …
      what would work: sch.compute_at("B", i) (proved)

Nothing is tried until somebody reads the message, and then on a copy of the program as it was when the step was
refused: `alternatives.py` lists calls near the one that was made, and those that the engine accepts are shown, as the
user would write them. Few tries and little time: a message that takes a second to print helps nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import thread_time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final

from loopwright.runtime.errors import LoopwrightError, is_ours
from loopwright.schedule.diagnose.alternatives import Asked, Attempt, alternatives
from loopwright.schedule.handles import BlockKey, BlockRV, LoopRV, block_key
from loopwright.schedule.primitives import PRIMITIVES
from loopwright.schedule.trace.calls import Arguments, Handle, call_text, handles_in, usual_settings
from loopwright.schedule.trace.protocol import ScheduleProtocol
from loopwright.schedule.trace.trace import Instruction
from loopwright.schedule.view import View

if TYPE_CHECKING:
    from loopwright.display.sheet import Markup
    from loopwright.ir import Var
    from loopwright.schedule.errors import ScheduleError

TRIES: Final = 8
SHOWN: Final = 3
TIME = 0.15  # seconds of this thread's own time, after which nothing more is tried
HOPELESS = 1.0  # a refused step that took longer: others like it would too


@dataclass(frozen=True)
class Suggestion:
    """A step, or a few, that the engine accepted where another was refused."""

    steps: tuple[Instruction, ...]
    text: str  # as the user would write it

    def __str__(self) -> str:
        return self.text

    def apply(self, sch: ScheduleProtocol) -> None:
        """Do it on the schedule that refused; its trace says where the handles come from."""
        known: dict[object, Handle] = {
            _identity(handle): handle for inst in sch.trace.insts for handle in handles_in(inst.outputs)
        }
        for inst in self.steps:
            for handle in handles_in(inst.inputs.values()):
                if _identity(handle) not in known:
                    known[_identity(handle)] = _asked_for(sch, handle)
            inputs = {name: _exchanged(value, known) for name, value in inst.inputs.items()}
            result = sch.run_instruction(inst.kind, inputs, inst.attrs)
            known.update({_identity(old): new for old, new in zip(inst.outputs, result, strict=True)})


@dataclass(frozen=True)
class Refusal:
    """A step that was refused, and the schedule as it was then."""

    owner: ScheduleProtocol  # the user's, which may have gone on since
    frozen: Callable[[], ScheduleProtocol]  # a copy of the schedule as it was, new each time
    kind: str
    inputs: Arguments
    attrs: Arguments
    seconds: float  # that it took

    def suggestions(self, error: ScheduleError) -> list[Suggestion]:
        """What was tried instead and proved, what is most like the refused step first."""
        if self.seconds > HOPELESS:
            return []
        _, view = _place(self.frozen().views(), self.inputs)
        words = _Words(self.owner, _user_frame(error.__traceback__))
        answer: dict[str, Suggestion] = {}
        row = PRIMITIVES[self.kind]
        usual = usual_settings(row.method)
        inputs = {name: self.inputs.get(name, usual.get(name)) for name in row.inputs}
        attrs = {name: self.attrs.get(name, usual.get(name)) for name in row.attrs}
        for sch in self._accepted(alternatives(Asked(self.kind, inputs, attrs, view, error))):
            result = words.told(sch)
            answer.setdefault(result.text, result)
            if len(answer) == SHOWN:
                break
        return list(answer.values())

    def figure(self, error: ScheduleError) -> Markup | None:
        """The witness of the refusal as a drawing; None when it has none."""
        from loopwright.display.sheet import Markup  # loaded when somebody looks
        from loopwright.schedule.diagnose.witness import FIGURE_RULES, witness_figure

        figure = witness_figure(error, self.frozen().views())
        return None if figure is None else Markup(figure, FIGURE_RULES)

    def _accepted(self, tries: Iterator[Attempt]) -> Iterator[ScheduleProtocol]:
        _ = PRIMITIVES["ComputeAt"].function  # loads what most tries need: the time is not for that
        start = thread_time()
        for count, attempt in enumerate(_until_malformed(tries)):
            if count == TRIES or thread_time() - start > TIME:
                return
            sch = self.frozen()
            try:
                attempt(sch)
            except LoopwrightError:
                continue  # refused as well
            yield sch


def _until_malformed(tries: Iterator[Attempt]) -> Iterator[Attempt]:
    """The attempts up to the first that cannot be thought of: a refused step may have arguments of any type."""
    try:
        yield from tries
    except (AttributeError, TypeError, ValueError, OverflowError):
        return


def _identity(handle: Handle) -> object:
    return handle.var if isinstance(handle, LoopRV) else handle.key if isinstance(handle, BlockRV) else handle


def _asked_for(sch: ScheduleProtocol, handle: Handle) -> Handle:
    """The handle, with the question that gives it on the record."""
    function, view = _place(sch.views(), {"": handle})
    if isinstance(handle, BlockRV):
        return sch.get_block(view.realize(handle.key).block.name_hint, function)
    assert isinstance(handle, LoopRV)
    block = view.blocks_below(view.loop(handle.var))[0].block
    loops = sch.get_loops(sch.get_block(block.name_hint, function))
    return next(loop for loop in loops if loop.var is handle.var)


def _exchanged(value: object, known: Mapping[object, Handle]) -> object:
    if isinstance(value, (list, tuple)):
        return [_exchanged(item, known) for item in value]
    return known.get(_identity(value), value) if isinstance(value, (LoopRV, BlockRV)) else value


class _Words:
    """How the user writes a step: loops by variables of theirs where they have them, else by asking the schedule."""

    def __init__(self, owner: ScheduleProtocol, frame: FrameType | None) -> None:
        self.owner, self.sch = owner, ""
        self.loops: dict[Var, str] = {}
        self.blocks: dict[BlockKey, str] = {}
        # What a function does not name itself, its module may: a lambda there has no names of its own.
        names = {} if frame is None else {**frame.f_locals, **frame.f_globals, **frame.f_locals}
        for name, value in names.items():
            if not name.isidentifier() or name.startswith("_"):
                continue
            if value is owner:
                self.sch = self.sch or name
            self._learn(name, value)
            if isinstance(value, (list, tuple)) and len(value) <= 16:
                for position, item in enumerate(value):
                    self._learn(f"{name}[{position}]", item)
        self.sch = self.sch or "sch"

    def _learn(self, text: str, value: object) -> None:
        if isinstance(value, LoopRV):
            self.loops.setdefault(value.var, text)
        elif isinstance(value, BlockRV):
            self.blocks.setdefault(value.key, text)

    def told(self, sch: ScheduleProtocol) -> Suggestion:
        """The steps that were done to `sch`."""
        changes = sch.changes()
        known = dict(self.loops)
        lines: list[str] = []
        for position, (inst, views) in enumerate(changes):
            line = _Line(self, known, *_place(views, inst.inputs))
            text = f"{self.sch}.{call_text(inst.method, {**inst.inputs, **inst.attrs}, line.handle)}"
            result = [handle for handle in inst.outputs if isinstance(handle, LoopRV)]
            later = [handle for other, _ in changes[position + 1 :] for handle in handles_in(other.inputs.values())]
            used = {handle.var for handle in later if isinstance(handle, LoopRV)}
            if any(handle.var in used for handle in result):
                known.update({handle.var: handle.name for handle in result})
                text = f"{', '.join([handle.name if handle.var in used else '_' for handle in result])} = {text}"
            lines.append(text)
        return Suggestion(tuple([inst for inst, _ in changes]), "; ".join(lines))


@dataclass
class _Line:
    """One call: the program it is made on decides what names mean."""

    words: _Words
    loops: Mapping[Var, str]
    function: str
    view: View

    def handle(self, handle: LoopRV | BlockRV) -> str:
        return self._loop(handle) if isinstance(handle, LoopRV) else self._block(handle.key)

    def _loop(self, handle: LoopRV) -> str:
        if handle.var in self.loops:
            return self.loops[handle.var]
        for realize in self.view.blocks_below(self.view.loop(handle.var)):
            key = block_key(realize.block)
            if self._is_unique(key):
                around = [loop.loop_var for loop in self.view.loops_of(key)]
                return f"{self.words.sch}.get_loops({self._block(key)})[{around.index(handle.var)}]"
        return handle.name

    def _block(self, key: BlockKey) -> str:
        name = self.view.realize(key).block.name_hint
        if not self._is_unique(key):
            return self.words.blocks.get(key, name)
        working_on = self.words.owner.func_working_on
        if working_on is not None and working_on.name == self.function:
            return f'"{name}"'
        return f'{self.words.sch}.get_block("{name}", "{self.function}")'

    def _is_unique(self, key: BlockKey) -> bool:
        return self.view.block_names().count(self.view.realize(key).block.name_hint) == 1


def _place(views: Mapping[str, View], inputs: Arguments) -> tuple[str, View]:
    """The function that the handles belong to."""
    for handle in handles_in(inputs.values()):
        for name, view in views.items():
            if _identity(handle) in (view.index.loops if isinstance(handle, LoopRV) else view.index.blocks):
                return name, view
    return next(iter(views.items()))


def _user_frame(traceback: TracebackType | None) -> FrameType | None:
    """The innermost frame of the user's that an error passed through: their variables have names for the handles."""
    result = None
    while traceback is not None:
        if not is_ours(traceback.tb_frame.f_code.co_filename):
            result = traceback.tb_frame
        traceback = traceback.tb_next
    return result
