"""Walks over types, as `visitor.py` walks over expressions.

    class _Halved(TypeMutator):
        def visit_tensor_type(self, of): return TensorType(of.shape, "float16")

`TypeVisitor` looks, `TypeMutator` rebuilds (what is unchanged comes back as the same object).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.ir.types import TupleType, Type
from loopwright.relay.types import FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TypeCall, TypeVar


class TypeFunctor:
    """Compute something of a type by the method of its class."""

    def visit(self, of: Any) -> Any:
        return getattr(self, _METHODS.get(type(of), "visit_other"))(of)

    def visit_other(self, of: Any) -> Any:
        raise TypeError(f"{type(self).__name__} has no rule for {type(of).__name__}")

    visit_tensor_type = visit_tuple_type = visit_func_type = visit_ref_type = visit_type_var = visit_other
    visit_incomplete_type = visit_type_call = visit_global_type_var = visit_other


class TypeVisitor(TypeFunctor):
    """Meet every type; override the methods of those of interest."""

    def _each(self, types: Sequence[Type]) -> None:
        for of in types:
            self.visit(of)

    def visit_tuple_type(self, of: TupleType) -> Any:
        self._each(of.fields)

    def visit_func_type(self, of: FuncType) -> Any:
        self._each([*of.type_params, *of.arg_types, of.ret_type])

    def visit_ref_type(self, of: RefType) -> Any:
        self.visit(of.value)

    def visit_type_call(self, of: TypeCall) -> Any:
        self._each([of.func, *of.args])

    def visit_tensor_type(self, of: TensorType) -> Any:
        return None

    def visit_type_var(self, of: TypeVar) -> Any:
        return None

    def visit_incomplete_type(self, of: IncompleteType) -> Any:
        return None

    def visit_global_type_var(self, of: GlobalTypeVar) -> Any:
        return None


class TypeMutator(TypeFunctor):
    """Rebuild a type."""

    def _each(self, types: Sequence[Type]) -> tuple[tuple[Any, ...], bool]:
        result = tuple([self.visit(of) for of in types])
        return result, all([new is old for new, old in zip(result, types, strict=True)])

    def visit_tuple_type(self, of: TupleType) -> Any:
        fields, same = self._each(of.fields)
        return of if same else TupleType(fields)

    def visit_func_type(self, of: FuncType) -> Any:
        params, same_params = self._each(of.type_params)
        (*args, result), same = self._each([*of.arg_types, of.ret_type])
        return of if same and same_params else FuncType(args, result, params, of.type_constraints)

    def visit_ref_type(self, of: RefType) -> Any:
        value = self.visit(of.value)
        return of if value is of.value else RefType(value)

    def visit_type_call(self, of: TypeCall) -> Any:
        args, same = self._each(of.args)
        return of if same else TypeCall(of.func, args)

    def visit_tensor_type(self, of: TensorType) -> Any:
        return of

    def visit_type_var(self, of: TypeVar) -> Any:
        return of

    def visit_incomplete_type(self, of: IncompleteType) -> Any:
        return of

    def visit_global_type_var(self, of: GlobalTypeVar) -> Any:
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
