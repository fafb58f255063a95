"""Walks over types, as `visitor.py` walks over expressions.

    class _Halved(TypeMutator):
        def visit_tensor_type(self, of): return TensorType(of.shape, "float16")

`TypeVisitor` looks, `TypeMutator` rebuilds (what is unchanged comes back as the same object).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic
from typing import TypeVar as Parameter

from loopwright.ir.types import TupleType, Type
from loopwright.relay.types import FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TypeCall, TypeVar

R = Parameter("R")  # what a functor computes


class TypeFunctor(Generic[R]):
    """Compute something of a type by the method of its class."""

    def visit(self, of: Type) -> R:
        method: Callable[[Type], R] = getattr(self, _METHODS.get(type(of), "visit_other"))
        return method(of)

    def visit_other(self, of: Type) -> R:
        raise NotImplementedError(f"{type(self).__name__} has no rule for {type(of).__name__}")

    if TYPE_CHECKING:  # a method of each takes its own class

        def visit_tensor_type(self, of: TensorType) -> R: ...
        def visit_tuple_type(self, of: TupleType) -> R: ...
        def visit_func_type(self, of: FuncType) -> R: ...
        def visit_ref_type(self, of: RefType) -> R: ...
        def visit_type_var(self, of: TypeVar) -> R: ...
        def visit_incomplete_type(self, of: IncompleteType) -> R: ...
        def visit_type_call(self, of: TypeCall) -> R: ...
        def visit_global_type_var(self, of: GlobalTypeVar) -> R: ...
    else:
        visit_tensor_type = visit_tuple_type = visit_func_type = visit_ref_type = visit_type_var = visit_other
        visit_incomplete_type = visit_type_call = visit_global_type_var = visit_other


class TypeVisitor(TypeFunctor[None]):
    """Meet every type; override the methods of those of interest."""

    def _each(self, types: Sequence[Type]) -> None:
        for of in types:
            self.visit(of)

    def visit_tuple_type(self, of: TupleType) -> None:
        self._each(of.fields)

    def visit_func_type(self, of: FuncType) -> None:
        self._each([*of.type_params, *of.arg_types, of.ret_type])

    def visit_ref_type(self, of: RefType) -> None:
        self.visit(of.value)

    def visit_type_call(self, of: TypeCall) -> None:
        self._each([of.func, *of.args])

    def visit_tensor_type(self, of: TensorType) -> None:
        return None

    def visit_type_var(self, of: TypeVar) -> None:
        return None

    def visit_incomplete_type(self, of: IncompleteType) -> None:
        return None

    def visit_global_type_var(self, of: GlobalTypeVar) -> None:
        return None


class TypeMutator(TypeFunctor[Type]):
    """Rebuild a type."""

    def _each(self, types: Sequence[Type]) -> tuple[tuple[Type, ...], bool]:
        result = tuple([self.visit(of) for of in types])
        return result, all([new is old for new, old in zip(result, types, strict=True)])

    def visit_tuple_type(self, of: TupleType) -> Type:
        fields, same = self._each(of.fields)
        return of if same else TupleType(fields)

    def visit_func_type(self, of: FuncType) -> Type:
        params, same_params = self._each(of.type_params)
        (*args, result), same = self._each([*of.arg_types, of.ret_type])
        return of if same and same_params else FuncType(args, result, params, of.type_constraints)

    def visit_ref_type(self, of: RefType) -> Type:
        value = self.visit(of.value)
        return of if value is of.value else RefType(value)

    def visit_type_call(self, of: TypeCall) -> Type:
        args, same = self._each(of.args)
        return of if same else TypeCall(of.func, args)

    def visit_tensor_type(self, of: TensorType) -> Type:
        return of

    def visit_type_var(self, of: TypeVar) -> Type:
        return of

    def visit_incomplete_type(self, of: IncompleteType) -> Type:
        return of

    def visit_global_type_var(self, of: GlobalTypeVar) -> Type:
        return of


_METHODS = {
    TensorType: "visit_tensor_type",
    TupleType: "visit_tuple_type",
    FuncType: "visit_func_type",
    RefType: "visit_ref_type",
    TypeVar: "visit_type_var",
    IncompleteType: "visit_incomplete_type",
    TypeCall: "visit_type_call",
    GlobalTypeVar: "visit_global_type_var",
}
