"""te.scan: a recurrence over time. Each step of a state is computed from the steps before it.

    X = te.placeholder((m, n), name="X")
    S = te.placeholder((m, n), name="S")                                    stands for the result, while it grows
    init = te.compute((1, n), lambda _, i: X[0, i])                         the first step (or the first few)
    update = te.compute((m, n), lambda t, i: S[t - 1, i] + X[t, i])         step t, from earlier steps
    total = te.scan(init, update, S)                                        all m steps: a running sum

Axis 0 is time. An update may go through other computes (several stages), look back several steps, and read other
states when lists are given for several states. See `scan_body.py` for what lies between the states and the updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IntImm, IterType, IterVar, Range, Var
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.operation import PlaceholderOp
from loopwright.te.scan_body import ScanBody, read_scan_body
from loopwright.te.tags import resolve_tag
from loopwright.te.tensor import Operation, Tensor, dim_text, shape_text


class BadScanArgument(LoopwrightError, ValueError, TypeError):
    """An argument of `te.scan` is not what it should be, or the lists for several states do not fit together.

    `te.scan(init, update, state_placeholder)` takes one tensor each, or lists of equal length with one entry a state.

    For example:

        from loopwright import te
        S = te.placeholder((4, 3), name="S")
        first = te.compute((1, 3), lambda _, i: te.const(0.0, "float32"))
        te.scan([first], [], [S])
    """

    code = "LW0430"

    def __init__(self, name: str, problem: str, hint: str, **fields: object) -> None:
        super().__init__(f"te.scan {name}: {problem}", hint=hint, fields={"name": name, **fields})


class StateMismatch(LoopwrightError, ValueError):
    """The first steps, the update and the placeholder of a state differ in type or shape.

    All three have one type. The update and the placeholder have the shape of the whole result: axis 0 is time, and the
    rest is one step. The first steps have as many rows as there are of them, and the same shape behind axis 0.

    For example:

        from loopwright import te
        S = te.placeholder((4, 3), name="S")
        first = te.compute((1, 2), lambda _, i: te.const(0.0, "float32"))
        update = te.compute((4, 3), lambda t, i: S[t - 1, i] + 1)
        te.scan(first, update, S)
    """

    code = "LW0431"

    def __init__(self, name: str, state: str, problem: str, hint: str) -> None:
        super().__init__(f"te.scan {name}: state {state}: {problem}", hint=hint, fields={"name": name, "state": state})


class ScanOp(Operation):
    """The states of a recurrence, all their steps. `scan_axis` is time, from the first step that is updated on."""

    __slots__ = ("body", "init", "inputs", "scan_axis", "spatial_axis_", "state_placeholder", "update")

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, object] | None,
        scan_axis: IterVar,
        init: Sequence[Tensor],
        update: Sequence[Tensor],
        state_placeholder: Sequence[Tensor],
        inputs: Sequence[Tensor],
        body: ScanBody,
    ) -> None:
        self.scan_axis = scan_axis
        self.init, self.update = tuple(init), tuple(update)
        self.state_placeholder, self.inputs = tuple(state_placeholder), tuple(inputs)
        self.body = body
        self.spatial_axis_ = tuple(
            [
                IterVar(Range(extent), Var(f"{name}.out{k}.i{d}", extent.dtype), IterType.Opaque)
                for k, state in enumerate(self.state_placeholder)
                for d, extent in enumerate(state.shape[1:], 1)
            ]
        )
        super().__init__(name, tag, attrs)

    @property
    def num_outputs(self) -> int:
        return len(self.state_placeholder)

    @property
    def input_tensors(self) -> list[Tensor]:
        return [*self.init, *self.update]

    @property
    def dependencies(self) -> list[Tensor]:
        return list(dict.fromkeys([*self.init, *self.body.inputs]))

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.state_placeholder[index].shape

    def output_dtype(self, index: int) -> DataType:
        return self.state_placeholder[index].dtype


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any:
    """All steps of the recurrence whose first steps are `init` and whose step t is row t of `update`.

    `state_placeholder` stands for the result where `update` reads earlier steps; its shape is the result's. With lists
    there is one state an entry, and one tensor a state comes back. `inputs` only names what the updates read.
    """
    tag = resolve_tag(name, tag)
    inits = _tensors(name, "init", init)
    updates = _tensors(name, "update", update)
    states = _tensors(name, "state_placeholder", state_placeholder)
    read = [] if inputs is None else _tensors(name, "inputs", inputs, empty=True)
    if not len(inits) == len(updates) == len(states):
        raise BadScanArgument(
            name,
            f"init has {len(inits)} tensors, update {len(updates)}, state_placeholder {len(states)}",
            "give one of each for every state",
            init=len(inits),
            update=len(updates),
            state_placeholder=len(states),
        )
    for k, state in enumerate(states):
        if not isinstance(state.op, PlaceholderOp):
            raise BadScanArgument(
                name,
                f"the state {state.name} is computed by {state.op!r}",
                "make the state with te.placeholder: it stands for the result inside the update",
            )
        if any(state is other for other in states[:k]):
            raise BadScanArgument(name, f"the state {state.name} is given twice", "give each state its own placeholder")
    prove = Analyzer()
    for first, step, state in zip(inits, updates, states, strict=True):
        _check_state(name, first, step, state, prove)
        for other, what, tensor in ((inits[0], "init", first), (updates[0], "update", step)):
            if not _equal(prove, other.shape[0], tensor.shape[0]):
                counts = f"{dim_text(tensor.shape[0])} and {dim_text(other.shape[0])}"
                raise StateMismatch(
                    name,
                    state.name,
                    f"its {what} and that of state {states[0].name} have different numbers of steps ({counts})",
                    "all states begin and end together: give each the same number of steps",
                )
    start, end = inits[0].shape[0], updates[0].shape[0]
    axis = IterVar(Range.from_min_extent(start, end - start), Var(f"{name}.idx", end.dtype), IterType.Ordered)
    body = read_scan_body(name, updates, states, start, end)
    op = ScanOp(name, tag, attrs, axis, inits, updates, states, read, body)
    outputs = [op.output(k) for k in range(op.num_outputs)]
    return outputs if len(outputs) > 1 else outputs[0]


def _tensors(name: str, what: str, given: object, empty: bool = False) -> list[Tensor]:
    listed: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    for k, item in enumerate(listed):
        if not isinstance(item, Tensor):
            where = f"entry {k} of {what}" if isinstance(given, (list, tuple)) else what
            raise BadScanArgument(
                name,
                f"{where} is {type(item).__name__} {item!r}",
                "give te tensors, or lists of them for several states",
            )
    if not listed and not empty:
        raise BadScanArgument(name, f"{what} is empty", "give one tensor for every state")
    return listed


def _check_state(name: str, first: Tensor, step: Tensor, state: Tensor, prove: Analyzer) -> None:
    for what, tensor in (("init", first), ("update", step)):
        if tensor.dtype is not state.dtype:
            raise StateMismatch(
                name,
                state.name,
                f"{what} {tensor.name} has type {tensor.dtype}, the placeholder {state.dtype}",
                "give the placeholder that dtype, or convert with .astype",
            )
        if tensor.ndim != state.ndim or not state.ndim:
            raise StateMismatch(
                name,
                state.name,
                f"{what} {tensor.name} has shape {shape_text(tensor.shape)}, the placeholder {shape_text(state.shape)}",
                "both have time as axis 0, and the shape of one step behind it",
            )
        for axis in range(1 if what == "init" else 0, state.ndim):
            if not _equal(prove, tensor.shape[axis], state.shape[axis]):
                raise StateMismatch(
                    name,
                    state.name,
                    f"dimension {axis} of {what} {tensor.name} is {dim_text(tensor.shape[axis])}, that of the "
                    f"placeholder {dim_text(state.shape[axis])}",
                    f"{what} has shape {shape_text(tensor.shape)}, the placeholder {shape_text(state.shape)}: "
                    "let them agree behind axis 0" + (" and in axis 0" if what == "update" else ""),
                )
    start, end = first.shape[0], state.shape[0]
    if isinstance(start, IntImm) and isinstance(end, IntImm) and start.value > end.value:
        raise StateMismatch(
            name,
            state.name,
            f"init {first.name} gives {start.value} steps, but the whole result has {end.value}",
            "give fewer first steps, or more steps in all",
        )


def _equal(prove: Analyzer, a: Expr, b: Expr) -> bool:
    return a is b or (a.dtype is b.dtype and prove.can_prove_equal(a, b))
