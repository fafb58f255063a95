"""Trace: the steps of a schedule as data. It prints as Python, travels as JSON, and replays on a fresh schedule."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from loopwright.display import progress
from loopwright.ir import Var
from loopwright.runtime.json_text import NestedTooDeep, read_json
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV
from loopwright.schedule.primitives import PRIMITIVES
from loopwright.schedule.trace.calls import Arguments, Handle, call_text, every_handle, handles_in
from loopwright.schedule.trace.listed_arguments import Given, by_name
from loopwright.schedule.trace.trace_json import OURS, UnreadableMap, read_step, step_data

if TYPE_CHECKING:
    from loopwright.display.sheet import Sheet

class StepRunner(Protocol):
    """What a trace needs of a schedule."""

    def run_instruction(
        self, kind: str, inputs: Arguments, attrs: Arguments, decision: object = None
    ) -> list[Any]:
        """Do one step by its kind; the handles it gives."""

    def replay(self, steps: Callable[[], None]) -> None:
        """Do steps that were proved once before, and prove them again as a whole."""


class InstructionKind(str):
    """The kind of a step, as traces name it: "Split". Pure steps change nothing: questions and samples."""

    __slots__ = ()

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind with that name."""
        if name not in PRIMITIVES:
            raise BadStepArgument("InstructionKind", f"there is no kind {name!r}; there are {', '.join(PRIMITIVES)}")
        return InstructionKind(name)

    @property
    def name(self) -> str:
        return str(self)

    def same_as(self, other: object) -> bool:
        """Whether both are one kind."""
        return self == other

    @property
    def is_pure(self) -> bool:
        """Whether the step only gives results: without a use for them it can be left out."""
        row = PRIMITIVES[self]
        return row.is_sample or (row.is_query and self != _POSTPROC)

    @property
    def is_unsafe(self) -> bool:
        """Whether nobody can prove what the step does: the caller vouches for it."""
        return self.startswith("Unsafe")


_POSTPROC = "EnterPostproc"


@dataclass(frozen=True, eq=False)
class Instruction:
    """One step: its kind, what it was applied to, its settings, and the handles it gave."""

    kind: InstructionKind
    inputs: Arguments
    attrs: Arguments
    outputs: Sequence[Handle]
    several: bool = False  # the outputs came as a list
    method: str = ""
    where: str = ""  # the user's file and line
    inside: Trace | None = None  # the steps that a composite one is made of
    proof: str = ""  # how it was shown to keep every value: "order kept", "values proved, no races", …
    seconds: float = 0.0  # of the thread's own time, proof included

    def __post_init__(self) -> None:
        inputs, attrs = self.inputs, self.attrs
        if not isinstance(inputs, Mapping) or not isinstance(attrs, Mapping):
            row = PRIMITIVES[InstructionKind.get(str(self.kind))]
            try:
                inputs, attrs = by_name(str(self.kind), inputs, attrs, (row.inputs, row.attrs))
            except (KeyError, IndexError, TypeError, ValueError):
                problem = f"{row.kind} takes the inputs {list(row.inputs)} and the settings {list(row.attrs)}"
                raise BadStepArgument("Instruction", f"{problem}, got {inputs!r} and {attrs!r}") from None
            object.__setattr__(self, "several", row.gives_list)
            object.__setattr__(self, "method", row.method)
        object.__setattr__(self, "inputs", Given(inputs))
        object.__setattr__(self, "attrs", Given(attrs))

    def same_as(self, other: object) -> bool:
        """Whether both are one step."""
        return self is other

    @property
    def is_proved(self) -> bool:
        """Whether the engine proved it; the caller vouches for unsafe steps."""
        return not self.kind.is_unsafe and (self.inside is None or self.inside.is_proved)

    def __str__(self) -> str:
        """The step in the user's own names: split(i, [None, 4]); written by hand, as a line with blanks for handles."""
        if any([handle.name == "" for handle in handles_in([*self.inputs.values(), *self.outputs])]):
            return _line(self, _Blanks())
        return call_text(self.method, {**self.inputs, **self.attrs}, lambda handle: handle.name)


class TraceDoesNotFit(BadStepArgument):
    """A step of a trace gives another number of results than it did where the trace was made, or takes other arguments.

    A trace names the results of its steps: `get_loops` those of a nest, `split` the new loops. Replayed on a program
    with more or fewer loops, or changed by hand, the names do not pair up.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.get_loops("B")

        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
        sch.trace.apply_to_schedule(tir.Schedule(te.create_prim_func([A, B])))
    """

    code = "LW0274"

    def __init__(self, method: str, position: int, problem: str) -> None:
        hint = "replay a trace on a program with the nests that it was made on"
        super().__init__(method, f"entry {position} {problem}", hint=hint)


class Decisions(dict[Any, Any]):
    """What was sampled, by the position of the step; by the step itself too."""

    def __init__(self, given: Mapping[Any, Any], insts: list[Instruction]) -> None:
        super().__init__()
        self.insts = insts
        for key, value in given.items():
            self[_position_in(insts, key) if isinstance(key, Instruction) else key] = value

    def __missing__(self, key: object) -> Any:
        position = _position_in(self.insts, key) if isinstance(key, Instruction) else None
        if position not in self:
            raise KeyError(key)
        return self[position]


def _position_in(insts: Sequence[Instruction], inst: Instruction) -> int:
    result = next((position for position, other in enumerate(insts) if other is inst), None)
    if result is None:
        raise BadStepArgument("Trace", f"the step {inst} is not one of its own")
    return result


@dataclass
class Trace:
    """The steps in order; `decisions` holds what was sampled, by the position of the step."""

    insts: list[Instruction] = field(default_factory=list)
    decisions: dict[Any, Any] = field(default_factory=dict)
    is_checked: bool = True  # False once a step was done without its proof

    def __post_init__(self) -> None:
        self.insts = list(self.insts)
        self.decisions = Decisions(self.decisions, self.insts)

    @property
    def is_proved(self) -> bool:
        """Whether every step was proved to keep every value."""
        return self.is_checked and all([inst.is_proved for inst in self.insts])

    @property
    def relies_on(self) -> list[str]:
        """The tensor intrinsics whose implementations are taken to compute what they describe, each once."""
        return list(dict.fromkeys([inst.attrs["tensor_intrin"] for inst in self.insts if inst.kind == "Tensorize"]))

    def append(self, inst: Instruction, decision: object = None) -> None:
        if decision is not None:
            self.decisions[len(self.insts)] = decision
        self.insts.append(inst)

    def pop(self) -> Instruction | None:
        """Take the last step back; None when there is none."""
        if not self.insts:
            return None
        self.decisions.pop(len(self.insts) - 1, None)
        return self.insts.pop()

    def copy(self) -> Trace:
        return Trace(list(self.insts), dict(self.decisions), self.is_checked)

    def get_decision(self, inst: Instruction) -> Any:
        """What was sampled at that step, or None."""
        return self.decisions.get(self._position(inst))

    def with_decision(self, inst: Instruction, decision: object, remove_postproc: bool = False) -> Trace:
        """The same steps with another decision at one of them."""
        new = self.copy()
        new.decisions[self._position(inst)] = decision
        return new._kept(range(self._length(remove_postproc)))

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """The steps without the questions and samples that nobody uses the answers of."""
        used: set[int] = set()  # ids: an ExprRV is an int, and two samples may be equal
        kept: list[int] = []
        for position in reversed(range(self._length(remove_postproc))):
            inst = self.insts[position]
            if inst.kind.is_pure and not any([id(handle) in used for handle in inst.outputs]):
                continue
            kept.append(position)
            used.update([id(handle) for value in (inst.inputs, inst.attrs) for handle in every_handle(value)])
        return self._kept(reversed(kept))

    def _position(self, inst: Instruction) -> int:
        return _position_in(self.insts, inst)

    def _length(self, remove_postproc: bool) -> int:
        """How many steps count: with `remove_postproc`, those before the mark."""
        marks = [position for position, inst in enumerate(self.insts) if inst.kind == _POSTPROC]
        return marks[0] if remove_postproc and marks else len(self.insts)

    def _kept(self, positions: Iterable[int]) -> Trace:
        """These steps alone, each with its decision."""
        new = Trace(is_checked=self.is_checked)
        for position in positions:
            new.append(self.insts[position], self.decisions.get(position))
        return new

    # --- text -----------------------------------------------------------------------------------------------------

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """One line of Python a step."""
        names = _Names()
        lines = []
        for position, inst in enumerate(self.insts[: self._length(remove_postproc)]):
            lines.append(_line(inst, names, self.decisions.get(position)))
        return lines

    def __str__(self) -> str:
        lines = ["# from loopwright import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        if not self.is_proved:
            lines.insert(0, "# unproved: some of these steps were done without a proof that they keep every value")
        if self.relies_on:
            lines.insert(0, f"# relies on tensor intrinsics doing what they describe: {', '.join(self.relies_on)}")
        body = self.as_python() or ["pass"]
        return "\n".join([*lines, *["  " + line for line in body]])

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the steps, highlighted where that is possible."""
        self._sheet().show(style)

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def _sheet(self) -> Sheet:
        from loopwright.display.sheet import Code, Sheet  # loaded when somebody looks

        return Sheet(Code(str(self)))

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """The steps as plain data: [[kind, inputs, attributes, outputs], …] and [[position, decision], …].

        A trace that is not proved says so in a third entry, {"proved": false}.
        """
        names = _Names()
        steps = []
        length = self._length(remove_postproc)
        for inst in self.insts[:length]:
            data = step_data(str(inst.kind), inst.inputs, inst.attrs, names)
            steps.append([*data, [names.define(handle) for handle in inst.outputs]])
        decisions = [[position, decision] for position, decision in sorted(self.decisions.items()) if position < length]
        return [steps, decisions] if self.is_proved else [steps, decisions, {"proved": False}]

    def apply_to_schedule(
        self,
        sch: StepRunner,
        remove_postproc: bool = False,
        decision_provider: Callable[[Instruction, list[Any], list[Any], Any], object] | None = None,
    ) -> None:
        """Do all the steps on another schedule, which proves them again: once, what they end with against the start."""
        insts = self.insts[: self._length(remove_postproc)]

        def replay() -> None:
            known: dict[int, Handle] = {}  # by id: an ExprRV is an int, and two samples may be equal
            for position, inst in enumerate(insts):
                task.now(inst.method)
                _check_names(position, inst)
                inputs = {name: _translated(value, known) for name, value in inst.inputs.items()}
                decision = self.decisions.get(position)
                if decision_provider is not None:
                    decision = decision_provider(inst, list(inputs.values()), list(inst.attrs.values()), decision)
                attrs = {name: _translated(value, known) for name, value in inst.attrs.items()}
                outputs = sch.run_instruction(inst.kind, inputs, attrs, decision)
                if len(outputs) != len(inst.outputs):
                    problem = f"names {len(inst.outputs)} results, but {inst.method} gave {len(outputs)}"
                    raise TraceDoesNotFit("apply_to_schedule", position, problem)
                for old, new in zip(inst.outputs, outputs, strict=True):
                    known[id(old)] = new
                task.advance("proof")

        with progress.task("replay", len(insts)) as task:
            sch.replay(replay)

    @staticmethod
    def apply_json_to_schedule(data: str | bytes | Sequence[object], sch: StepRunner) -> None:
        """Do the steps of `as_json` on a schedule, which proves them again: once, at the end."""
        try:
            loaded: Any = read_json(data) if isinstance(data, (str, bytes)) else data
            steps, decisions, *_ = loaded
            chosen = dict(decisions)
            if not isinstance(steps, (list, tuple)):
                raise TypeError
        except NestedTooDeep as error:
            raise BadStepArgument("apply_json_to_schedule", error.problem) from None
        except (TypeError, ValueError):
            raise BadStepArgument("apply_json_to_schedule", "the text is not [steps, decisions]") from None
        sch.replay(lambda: _replay_data(steps, chosen, sch))


def _check_names(position: int, inst: Instruction) -> None:
    """The step is one of the table, and takes the arguments that it has."""
    row = PRIMITIVES.get(inst.kind)
    if row is None:
        raise TraceDoesNotFit("apply_to_schedule", position, f"is of the kind {str(inst.kind)!r}, which there is not")
    given = {**inst.inputs, **inst.attrs}
    unknown = [name for name in given if name not in row.inputs and name not in row.attrs]
    if unknown:
        problem = f"has an argument {unknown[0]!r}, which {row.method} lacks"
        raise TraceDoesNotFit("apply_to_schedule", position, problem)
    lacking = [name for name in row.inputs if name not in given and name in row.required]
    if lacking:
        raise TraceDoesNotFit("apply_to_schedule", position, f"lacks the argument {lacking[0]!r} of {row.method}")


def _replay_data(steps: Sequence[object], decisions: Mapping[object, object], sch: StepRunner) -> None:
    """Do the steps that JSON describes."""
    known: dict[str, Handle] = {}
    for position, step in enumerate(steps):
        if not _is_step(step):
            raise BadStepArgument("apply_json_to_schedule", f"entry {position} is no step: {reprlib.repr(step)}")
        kind, inputs, attrs, outputs = step
        row = PRIMITIVES[kind]
        try:
            given, settings = read_step(kind, inputs, attrs, (row.inputs, row.attrs), known)
        except UnreadableMap:
            raise
        except (KeyError, IndexError, AttributeError, TypeError, ValueError, RecursionError):
            problem = f"entry {position} does not fit {row.method}: {reprlib.repr(step)}"
            raise BadStepArgument("apply_json_to_schedule", problem) from None
        result = sch.run_instruction(kind, given, settings, decisions.get(position))
        if len(result) != len(outputs):
            problem = f"names {len(outputs)} results, but {row.method} gave {len(result)}"
            raise TraceDoesNotFit("apply_json_to_schedule", position, problem)
        known.update(zip(outputs, result, strict=True))


def _is_step(step: object) -> TypeGuard[tuple[str, list[object], list[object], list[str]]]:
    """Whether it is [kind, inputs, attributes, outputs], the outputs being names."""
    if not isinstance(step, (list, tuple)) or len(step) != 4:
        return False
    kind, *parts = step
    is_known = isinstance(kind, str) and kind in PRIMITIVES
    return is_known and all([isinstance(part, (list, tuple)) for part in parts]) and all(map(_is_name, parts[2]))


def _is_name(name: object) -> bool:
    return isinstance(name, str)


def _line(inst: Instruction, names: _Names, decision: object = None) -> str:
    """A step as a line of Python."""
    usual = OURS.get(str(inst.kind), {})
    settings = {name: value for name, value in inst.attrs.items() if name not in usual or value != usual[name]}
    arguments = {**inst.inputs, **settings}
    if decision is not None:
        arguments["decision"] = decision
    call = f"sch.{inst.method}({', '.join([_argument(names, *item) for item in arguments.items()])})"
    outputs = ", ".join([names.define(handle) for handle in inst.outputs])
    if inst.several and len(inst.outputs) == 1:
        outputs += ","
    return f"{outputs} = {call}" if outputs else call


_ONE_BY_ONE = ("loops", "ordered_loops")  # fuse, reorder and merge take their loops as arguments of their own


def _argument(names: _Names, name: str, value: Any) -> str:
    """An argument by keyword; the loops of fuse, reorder and merge stand one by one."""
    if name in _ONE_BY_ONE:
        return ", ".join(names.text(item) for item in value)
    return f"{name}={names.text(value)}"


class _Names:
    """b0, l1, v2: handles numbered in the order they are made; by id, as samples are ints that may be equal."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def define(self, handle: Handle) -> str:
        letter = "b" if isinstance(handle, BlockRV) else "l" if isinstance(handle, LoopRV) else "v"
        return self.names.setdefault(id(handle), f"{letter}{len(self.names)}")

    def text(self, value: object) -> str:
        if isinstance(value, (BlockRV, LoopRV, ExprRV, Var)):
            return self.names.get(id(value)) or (repr(int(value)) if isinstance(value, ExprRV) else self.define(value))
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self.text(item) for item in value)}]"
        if isinstance(value, Mapping):
            return f"{{{', '.join([f'{self.text(key)}: {self.text(item)}' for key, item in value.items()])}}}"
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


class _Blanks(_Names):
    """No names at all: a step alone does not say what its handles are called."""

    def define(self, handle: Handle) -> str:
        return "_"


def _translated(value: object, known: Mapping[int, Handle]) -> object:
    if isinstance(value, (list, tuple)):
        return [_translated(item, known) for item in value]
    if isinstance(value, Mapping):
        return {key: _translated(item, known) for key, item in value.items()}
    return known.get(id(value), value)
