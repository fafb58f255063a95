"""combine_parallel: what the passes share that make one large operator of several beside each other.

    %0 = nn.dense(%x, w0) + b0;          →    %0 = nn.dense(%x, concatenate((w0, w1))) + concatenate((b0, b1));
    %1 = nn.dense(%x, w1) + b1;               strided_slice(%0, …), strided_slice(%0, …)

Branches begin at operators with the same data; each pass says which belong together, how their weights are joined and
along which axis their results lie. Element-wise operators that follow in every branch alike are joined as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, Var
from loopwright.relay.op.registry import Kind, Op, make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_constant
from loopwright.relay.types import TensorType, same_dim
from loopwright.relay.visitor import parts, post_order


class Siblings:
    """What one kind of operator says of branches; see the passes."""

    operator: str

    def key(self, call: Call, data: TensorType, weight: TensorType) -> object | None:
        """What must be the same of all branches; None for a call that takes no part."""
        raise NotImplementedError

    def axis(self, call: Call, result: TensorType) -> int:
        """The axis of the result along which branches lie one after another."""
        raise NotImplementedError

    def joined(self, calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Expr:
        """One call for all of them."""
        raise NotImplementedError


@dataclass
class _Group:
    calls: list[Call]
    chains: list[list[Call]]  # for each branch, what follows it and is joined too
    axis: int
    sizes: list[int]
    made: list[Expr] | None = None


class _Combine(TypedRewrite):
    def __init__(self, mod: IRModule, root: Expr, siblings: Siblings, least: int) -> None:
        super().__init__(mod)
        self.siblings = siblings
        self.users = _users(root)
        self.places: dict[Expr, tuple[_Group, int]] = {}
        for group in self._groups(root):
            if len(group.calls) >= least:
                self._follow(group)
                for branch, chain in enumerate(group.chains):
                    self.places[(chain or [group.calls[branch]])[-1]] = (group, branch)

    def _groups(self, root: Expr) -> list[_Group]:
        result: dict[object, list[Call]] = {}
        for call in post_order(root):
            if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name != self.siblings.operator:
                continue
            data, weight = self.tensor_type(call.args[0]), self.tensor_type(call.args[1])
            # Weights that depend on the data could depend on another branch.
            if data is None or weight is None or not (isinstance(call.args[1], Var) or is_constant(call.args[1])):
                continue
            key = self.siblings.key(call, data, weight)
            of = self.tensor_type(call)
            if key is None or of is None or not isinstance(of.shape[self.siblings.axis(call, of)], int):
                continue
            result.setdefault((call.args[0], key), []).append(call)
        groups = []
        for calls in result.values():
            types = [self.type_of_tensor(call) for call in calls]
            axis = self.siblings.axis(calls[0], types[0])
            groups.append(_Group(calls, [[] for _ in calls], axis, [of.concrete_dim(axis) for of in types]))
        return groups

    def _follow(self, group: _Group) -> None:
        """Lengthen the branches by what follows all of them alike."""
        while True:
            ends = [(chain or [call])[-1] for call, chain in zip(group.calls, group.chains, strict=True)]
            users = [self.users.get(end, []) for end in ends]
            if any(len(result) != 1 for result in users):
                return
            follow = [result[0] for result in users if isinstance(result[0], Call)]
            if len(set(follow)) < len(users) or not self._alike(group, ends, follow):
                return
            for chain, user in zip(group.chains, follow, strict=True):
                chain.append(user)

    def _alike(self, group: _Group, ends: Sequence[Expr], follow: Sequence[Call]) -> bool:
        first = follow[0]
        if not isinstance(first.op, Op) or first.attrs.kind > Kind.BROADCAST or first.attrs.stateful:
            return False
        location = next(k for k, arg in enumerate(first.args) if arg is ends[0])
        for branch, user in enumerate(follow):
            own = self.tensor_type(user)
            before = self.tensor_type(ends[branch])
            if own is None or before is None or not user.attrs.same(first.attrs) or user.op is not first.op:
                return False
            if len(user.args) != len(first.args) or user.args[location] is not ends[branch]:
                return False
            if len(own.shape) != len(before.shape) or not all(map(same_dim, own.shape, before.shape)):
                return False
            for k, arg in enumerate(user.args):
                if k != location and (arg is ends[branch] or not self._joinable(group, branch, arg, len(own.shape))):
                    return False
            if user.op.name in ("nn.bias_add", "nn.prelu") and user.attrs.axis % len(own.shape) != group.axis:
                return False
        return all(
            len({len(self.type_of_tensor(user.args[k]).shape) for user in follow}) == 1
            for k in range(len(first.args))
            if k != location
        )

    def _joinable(self, group: _Group, branch: int, arg: Expr, rank: int) -> bool:
        """Whether another operand has one number a channel (or one in all)."""
        of = self.tensor_type(arg)
        if of is None or not (isinstance(arg, Var) or is_constant(arg)):
            return False
        wide = [axis for axis, size in enumerate(of.shape) if not same_dim(size, 1)]
        after = rank - 1 - group.axis
        if len(of.shape) == 1 and wide == [0]:  # the bias of nn.bias_add, or the last axis
            return same_dim(of.shape[0], group.sizes[branch])
        return wide == [len(of.shape) - 1 - after] and same_dim(of.shape[wide[0]], group.sizes[branch])

    def visit_call(self, call: Call) -> Expr:
        result = self.places.get(call)
        if result is None:
            return super().visit_call(call)
        group, branch = result
        if group.made is None:
            group.made = self._made(group)
        return group.made[branch]

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        result = self.places.get(expression)
        if result is None:
            return super().first(expression)
        group, _ = result
        return (group.calls[0].args[0], *[call.args[1] for call in group.calls])

    def _made(self, group: _Group) -> list[Expr]:
        weights = [self.visit(call.args[1]) for call in group.calls]
        current = self.siblings.joined(group.calls, self.visit(group.calls[0].args[0]), weights)
        ends: list[Expr] = list(group.calls)
        for step in zip(*group.chains, strict=True):
            args = []
            for k in range(len(step[0].args)):
                if step[0].args[k] is ends[0]:
                    args.append(current)
                    continue
                own = [user.args[k] for user in step]
                of = self.type_of_tensor(own[0])
                axis = next((a for a, size in enumerate(of.shape) if not same_dim(size, 1)), 0)
                args.append(join(own, axis))
            current = Call(step[0].op, args, step[0].attrs)
            ends = list(step)
        return self._parts(group, current)

    def _parts(self, group: _Group, whole: object) -> list[Expr]:
        ends = np.cumsum(group.sizes).tolist()
        return [
            make("strided_slice", whole, begin=(end - size,), end=(end,), strides=(1,), axes=(group.axis,))
            for end, size in zip(ends, group.sizes, strict=True)
        ]


def join(values: Sequence[Expr], axis: int) -> Expr:
    """Tensors one after another; constants at once."""
    constants = [value.data for value in values if isinstance(value, Constant)]
    if len(constants) == len(values):
        return Constant(np.concatenate(constants, axis))
    return make("concatenate", list(values), axis=axis)


def _users(root: Expr) -> dict[Expr, list[Expr]]:
    """Who uses each expression."""
    users: dict[Expr, list[Expr]] = {}
    for expression in post_order(root):
        for part in parts(expression):
            users.setdefault(part, []).append(expression)
    return users


def combine_pass(siblings: Callable[[], Siblings], name: str, min_num_branches: int) -> GraphPass:
    """The pass that combines branches of one kind."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        if "Primitive" in function.attrs:
            return function
        return _Combine(mod, function, siblings(), min_num_branches).apply(function)

    return GraphPass(change, PassInfo(4, name))
