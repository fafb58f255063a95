"""What one step of a scan runs: the computes between the states and the updates, and which of their axes is time.

An intermediate stage is computed in the loop over time, one step of it an iteration:

    for t in range(1, m):
        gates[t, …] = … S[t - 1, …] …          a stage: read at step t, so time is its axis 0
        S[t, …] = … gates[t, …] …              the update

A stage that is also read at an earlier step (`gates[t - 1, …]`) needs its steps from before the loop as well: its
`lag` says how many. A stage that is read without time (`scale[i]`) must not depend on a step that is yet to come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IntImm, ProducerLoad, Visitor
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.operation import ComputeOp
from loopwright.te.order import dependencies, in_order
from loopwright.te.tensor import Operation, Tensor


class NotAScanStage(LoopwrightError, ValueError):
    """Between a state and its update stands something that cannot run one step at a time.

    The stages of a scan are computes. A scan, an extern or a hybrid function works on whole tensors, and a whole state
    exists only when the scan is done.

    For example:

        from loopwright import te
        S = te.placeholder((4, 3), name="S")
        first = te.compute((1, 3), lambda _, i: te.const(0.0, "float32"))
        whole = te.extern((4, 3), [S], lambda ins, outs: te.const(0), dtype="float32")
        te.scan(first, te.compute((4, 3), lambda t, i: whole[t, i]), S)
    """

    code = "LW0432"

    def __init__(self, name: str, op: Operation, state: str) -> None:
        super().__init__(
            f"te.scan {name}: {op!r} reads the state {state}, but is no te.compute",
            why="a step of a scan runs its stages one step at a time, and the whole state exists only at the end",
            hint="write the stage as te.compute, or apply it to the result of the scan",
            fields={"name": name, "stage": op.name},
        )


class NotAnEarlierStep(LoopwrightError, ValueError):
    """A step of a scan reads a step that is not there yet, or one that cannot be told to be there.

    Step t of an update may read the states at earlier steps (`S[t - 1, …]`, `S[t - 2, …]`, `S[0, …]`). A stage between
    the states and the update is computed step by step together with it, so it is read at step t or a fixed number of
    steps before.

    For example:

        from loopwright import te
        S = te.placeholder((4, 3), name="S")
        first = te.compute((1, 3), lambda _, i: te.const(0.0, "float32"))
        te.scan(first, te.compute((4, 3), lambda t, i: S[t, i] + 1), S)
    """

    code = "LW0433"

    def __init__(self, name: str, problem: str, hint: str) -> None:
        super().__init__(f"te.scan {name}: {problem}", hint=hint, fields={"name": name})


class Stage(NamedTuple):
    """A compute of a scan's step. `time` is its axis that is time (None: it is computed once, before the loop)."""

    op: ComputeOp
    time: int | None
    lag: int  # how many steps before the first one its readers need
    valid_from: int = 0  # the first step at which everything it reads is there


class ScanBody(NamedTuple):
    """The stages in the order in which they run, updates included, and the tensors they read from outside."""

    stages: tuple[Stage, ...]
    inputs: tuple[Tensor, ...]


def read_scan_body(name: str, updates: Sequence[Tensor], states: Sequence[Tensor], start: Expr, end: Expr) -> ScanBody:
    """The body of the scan with these `updates`; refuses one that cannot run step by step."""
    order = in_order([tensor.op for tensor in updates], dependencies)
    inside = _depending_on(name, order, states)
    final = {tensor.op for tensor in updates if isinstance(tensor.op, ComputeOp)}
    ops = [op for op in order if isinstance(op, ComputeOp) and (op in inside or op in final)]
    reader = _Reader(name, states, start, end)
    stages: dict[ComputeOp, Stage] = {op: Stage(op, 0, 0) for op in ops if op in final}
    for op in reversed(ops):  # readers come before what they read
        if op not in stages:
            stages[op] = reader.stage(op)
        reader.read(stages[op], ops, final)
    for op in ops:  # what is read comes before its readers
        stages[op] = stages[op]._replace(valid_from=reader.valid_from(op, stages))
    members = set(ops)
    inputs: dict[Tensor, None] = dict.fromkeys(
        [tensor for op in ops for tensor in op.input_tensors if tensor.op not in members and tensor not in states]
    )
    inputs.update(dict.fromkeys([tensor for tensor in updates if tensor.op not in members]))
    return ScanBody(tuple([stages[op] for op in ops]), tuple(inputs))


def _depending_on(name: str, order: Sequence[Operation], states: Sequence[Tensor]) -> set[Operation]:
    """The operations among `order` that read a state, directly or through others."""
    sources = {state.op: state.name for state in states}
    result: dict[Operation, str] = {}
    for op in order:
        for tensor in op.dependencies:
            state = sources.get(tensor.op) or result.get(tensor.op)
            if state is not None and op not in result:
                result[op] = state
                if not isinstance(op, ComputeOp):
                    raise NotAScanStage(name, op, state)
    return set(result)


class _Loads(Visitor, memo=True):
    def __init__(self) -> None:
        self.found: list[ProducerLoad] = []

    def visit_ProducerLoad(self, load: ProducerLoad) -> None:
        self.found.append(load)
        self.visit_children(load)


class _Reader:
    """Looks at what each stage reads, readers first, and so finds the time axis and the lag of the stages read."""

    def __init__(self, name: str, states: Sequence[Tensor], start: Expr, end: Expr) -> None:
        self.name = name
        self.states = {state: state.name for state in states}
        self.start, self.end = start, end
        self.reads: dict[Operation, list[tuple[Stage, ProducerLoad]]] = {}
        self.state_steps: dict[Operation, int] = {}  # how many steps back a stage reads states, at most

    def read(self, stage: Stage, ops: Sequence[ComputeOp], final: set[ComputeOp]) -> None:
        loads = _Loads()
        for value in stage.op.body:
            loads.visit(value)
        for load in loads.found:
            producer = load.producer
            if not isinstance(producer, Tensor):
                continue
            if producer in self.states:
                self._check_state_read(stage, load)
            elif producer.op in final and producer.op is not stage.op:
                if self._steps_back(stage, load.indices[0]) != 0:
                    raise NotAnEarlierStep(
                        self.name,
                        f"{stage.op.name} reads the update {producer.name} at another step than its own",
                        "read earlier steps from the state's placeholder",
                    )
            elif producer.op in ops:
                self.reads.setdefault(producer.op, []).append((stage, load))

    def stage(self, op: ComputeOp) -> Stage:
        """A stage whose readers are all known."""
        reads = self.reads.get(op, [])
        for axis in range(len(op.axis)):
            back = [(stage, self._steps_back(stage, load.indices[axis])) for stage, load in reads]
            if any(steps is None for _, steps in back):
                continue
            lag = 0
            for stage, steps in back:
                assert steps is not None
                if steps < 0:
                    raise NotAnEarlierStep(
                        self.name,
                        f"{stage.op.name} reads {op.name} {-steps} step{'s' * (steps != -1)} ahead",
                        "a step may use what it and the steps before it computed",
                    )
                lag = max(lag, stage.lag + steps)
            return Stage(op, axis, lag)
        return Stage(op, None, 0)

    def valid_from(self, op: ComputeOp, stages: Mapping[ComputeOp, Stage]) -> int:
        """The first step of `op` that reads only steps which exist, given that of the stages it reads."""
        first = self.state_steps.get(op, 0)
        for source, reads in self.reads.items():
            for stage, load in reads:
                read = stages[source]  # type: ignore[index]
                if stage.op is op and read.time is not None:
                    first = max(first, read.valid_from + (self._steps_back(stage, load.indices[read.time]) or 0))
        return first

    def _steps_back(self, stage: Stage, index: Expr) -> int | None:
        """How many steps before its own `stage` reads, if that is a fixed number."""
        if stage.time is None:
            return None
        gap = Analyzer().simplify(stage.op.axis[stage.time].var - index)
        return gap.value if isinstance(gap, IntImm) else None

    def _check_state_read(self, stage: Stage, load: ProducerLoad) -> None:
        """Refuse a read of a step that is certainly not there."""
        analyzer = Analyzer()
        row = load.indices[0]
        for axis in (*stage.op.axis, *stage.op.reduce_axis):
            if axis.dom is not None:
                analyzer.bind(axis.var, axis.dom)
        state = self.states[load.producer]  # type: ignore[index]
        if stage.time is None:
            if not analyzer.can_prove(row < self.start):
                raise NotAnEarlierStep(
                    self.name,
                    f"{stage.op.name} reads the state {state}, but is itself read without a step",
                    f"let {stage.op.name} have time as one of its axes, and read it at [t, …]",
                )
            return
        time = stage.op.axis[stage.time].var
        back = self._steps_back(stage, row)
        self.state_steps[stage.op] = max(self.state_steps.get(stage.op, 0), back or 0)
        if analyzer.can_prove(row >= time):
            gap = Analyzer().simplify(row - time)
            which = "the step it computes" if isinstance(gap, IntImm) and gap.value == 0 else "a later step"
            raise NotAnEarlierStep(
                self.name,
                f"{stage.op.name} reads the state {state} at {which}",
                f"read an earlier step, such as {state}[{time.name} - 1, …]",
            )
