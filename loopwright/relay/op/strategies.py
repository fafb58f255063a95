"""Strategies: implementations of an operator that a script offers, of which one computes its calls.

    @relay.op.register_strategy("nn.dense", level=15)
    def dense_strategy(attrs, inputs, out_type, target):
        strategy = relay.op.OpStrategy()
        strategy.add_implementation(my_compute, None, name="mine", plevel=20)
        return strategy

The implementation of the highest level whose condition holds is taken; `my_compute(attrs, inputs, out_type)` gives a
list of tensors. Our own operators have one implementation each, their `compute`, and `register_compute` replaces it.

What an implementation says of its schedule is not used: a kernel may hold several operators, and is scheduled as a
whole by the rules of `autosched`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from loopwright import te
from loopwright.arith import Analyzer
from loopwright.ir import IntImm
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import CannotCompile
from loopwright.relay.nested import Nested, flat
from loopwright.relay.op.registry import Op, Operator, get
from loopwright.relay.types import TensorType, as_dim, dims_differ, type_text
from loopwright.target import Target
from loopwright.te.specialized_condition import SpecializedCondition

Compute = Callable[..., Any]


class ScheduleNotUsed(UserWarning):
    """A schedule was given for an operator whose kernels are scheduled by rule."""


class OpImplementation(NamedTuple):
    """One way to compute an operator."""

    compute: Compute  # of attributes, tensors and the type of the result
    schedule: Compute | None
    name: str
    plevel: int


class OpSpecialization:
    """Implementations for the calls of which a condition holds; None holds always."""

    def __init__(self, condition: SpecializedCondition | None) -> None:
        self.condition = condition
        self.implementations: list[OpImplementation] = []

    def holds(self) -> bool:
        """Whether the condition is known to hold."""
        clauses = self.condition.clauses if self.condition is not None else ()
        known = [Analyzer().simplify(clause) for clause in clauses]
        return all(isinstance(clause, IntImm) and clause.value for clause in known)


class OpStrategy:
    """The implementations of an operator."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(
        self, compute: Compute, schedule: Compute | None, name: str = "default", plevel: int = 10
    ) -> None:
        """Offer one more, for calls of which the current SpecializedCondition holds."""
        if schedule is not None and not getattr(schedule, "by_rule", False):
            _not_used(f"implementation {name}")
        condition = SpecializedCondition.current()
        for known in self.specializations:
            if known.condition is condition:
                break
        else:
            known = OpSpecialization(condition)
            self.specializations.append(known)
        known.implementations.append(OpImplementation(compute, schedule, name, plevel))


def valid_implementations(
    op: Op, attrs: Operator, inputs: Sequence[te.Tensor], out_type: Type, target: Target
) -> list[OpImplementation]:
    """The implementations whose conditions hold."""
    strategy = op.get_attr("FTVMStrategy")
    if strategy is not None:
        with target:
            offered = strategy(attrs, list(inputs), out_type, target)  # type: ignore[operator]
        return [each for one in offered.specializations if one.holds() for each in one.implementations]
    rule = op.get_attr("FTVMCompute") or _own
    return [OpImplementation(rule, None, f"{op.name}.own", 10)]  # type: ignore[arg-type]


def select_implementation(
    op: Op, attrs: Operator, inputs: Sequence[te.Tensor], out_type: Type, target: Target
) -> tuple[OpImplementation, list[te.Tensor]]:
    """The valid implementation of the highest level, the first of several, and what it computes."""
    valid = valid_implementations(op, attrs, inputs, out_type, target)
    if not valid:
        raise CannotCompile(
            f"{op.name}: no implementation of its strategy fits {', '.join(str(tensor.shape) for tensor in inputs)}",
            hint="add one outside of SpecializedCondition, for all other calls",
        )
    best = max(valid, key=lambda one: one.plevel)
    result = best.compute(attrs, list(inputs), out_type)
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    _check(op, best, outputs, out_type)
    return best, outputs


def kernel(op: Op, attrs: Operator, inputs: Sequence[Nested[te.Tensor]], out_type: Type) -> Nested[te.Tensor]:
    """What computes a call: an implementation that somebody offered, or the operator's own."""
    if "FTVMStrategy" not in op.extra and "FTVMCompute" not in op.extra:
        result: Nested[te.Tensor] = attrs.compute(*inputs)
        return result
    tensors = [tensor for given in inputs for tensor in flat(given)]
    target = Target.current(allow_none=True) or Target("llvm")
    outputs = select_implementation(op, attrs, tensors, out_type, target)[1]
    return list(outputs) if isinstance(out_type, TupleType) else outputs[0]


def register_strategy(op_name: str, fstrategy: Compute | None = None, level: int = 10) -> Any:
    """Have a strategy choose how an operator is computed; without one, a decorator."""

    def attach(given: Compute) -> Compute:
        if not callable(given):
            raise TypeError(f"register_strategy: the strategy of {op_name} is a function, and not {given!r:.80}")
        get(op_name).set_attr("FTVMStrategy", given, level)
        return given

    return attach if fstrategy is None else attach(fstrategy)


def register_schedule(op_name: str, schedule: Compute | None = None, level: int = 10) -> Any:
    """Takes a schedule of an operator, and says that it is not used: kernels are scheduled by rule."""

    def attach(given: Compute) -> Compute:
        get(op_name)
        if not getattr(given, "by_rule", False):
            _not_used(op_name)
        return given

    return attach if schedule is None else attach(schedule)


def register_injective_schedule(op_name: str, level: int = 10) -> None:
    """Nothing to do for an operator that exists: the rules schedule injective, broadcast and reducing kernels alike."""
    get(op_name)


register_broadcast_schedule = register_reduce_schedule = register_injective_schedule


def _not_used(what: str) -> None:
    warnings.warn(
        f"the schedule of {what} is not used: kernels are scheduled by rule "
        '("Coming from TVM" in the documentation, section "Where answers differ")',
        ScheduleNotUsed,
        stacklevel=4,
    )


def _own(attrs: Operator, inputs: Sequence[te.Tensor], out_type: Type) -> Any:
    """The compute of the operator itself, whose tuples are lists; scripts have their tensors one after another."""
    return attrs.compute(list(inputs)) if len(attrs.inputs) == 1 and len(inputs) > 1 else attrs.compute(*inputs)


def _check(op: Op, chosen: OpImplementation, outputs: list[te.Tensor], out_type: Type) -> None:
    """A kernel of other sizes than the type of the call would write past the memory that was planned for it."""
    types = out_type.fields if isinstance(out_type, TupleType) else [out_type]
    fits = len(types) == len(outputs)
    for of, tensor in zip(types, outputs, strict=False):
        if isinstance(of, TensorType):
            fits = fits and of.dtype == tensor.dtype and len(of.shape) == len(tensor.shape)
            fits = fits and not any(dims_differ(a, as_dim(b)) for a, b in zip(of.shape, tensor.shape, strict=False))
    if not fits:
        made = ", ".join([f"{tensor.shape} of {tensor.dtype}" for tensor in outputs])
        raise CannotCompile(
            f"{op.name}: implementation {chosen.name} computes {made}, and the call is {type_text(out_type)}",
            hint="compute what the type relation of the operator says",
        )
