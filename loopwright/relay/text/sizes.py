"""Types and sizes as text: `Tensor[(n, ?), float32]`, every size variable under a name of its own.

A variable is written with its type where it first stands, unless that is int32: `Tensor[(n: int64, 3), float32]`.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Node, post_order_visit, substitute
from loopwright.ir import Var as SizeVariable
from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import TypeData
from loopwright.relay.types import Dim, FuncType, IncompleteType, RefType, TensorType, TypeCall

RESERVED: Final = frozenset(
    [*keyword.kwlist, "T", "Tensor", "fn", "let", "ref", "meta", "size", "inff", "nanf", "max", "min", "_"]
)


class SizeNames:
    """The names of the size variables of one function."""

    def __init__(self) -> None:
        self.names: dict[SizeVariable, str] = {}
        self.taken: set[str] = set()
        self.declared: set[SizeVariable] = set()

    def dim(self, size: Dim) -> str:
        """One size; also a number or an expression inside an attribute."""
        if not isinstance(size, PrimExpr):
            return str(size)
        variables: dict[SizeVariable, PrimExpr] = {}
        post_order_visit(size, lambda node: self._meet(node, variables))
        text = str(substitute(size, {var: new for var, new in variables.items() if new is not var}))
        for var in variables:
            if var not in self.declared:
                self.declared.add(var)
                if var.dtype != "int32":
                    name = self.names[var]
                    text = re.sub(rf"\b{name}\b", f"{name}: {var.dtype}", text, count=1)
        return text

    def _meet(self, node: Node, variables: dict[SizeVariable, PrimExpr]) -> None:
        if isinstance(node, SizeVariable):
            name = self._name(node)
            variables[node] = node if name == node.name else SizeVariable(name, node.dtype)

    def _name(self, var: SizeVariable) -> str:
        if var not in self.names:
            base = re.sub(r"\W", "_", var.name) or "n"
            base = f"n{base}" if base[0].isdigit() or base in RESERVED else base
            name, count = base, 0
            while name in self.taken:
                count += 1
                name = f"{base}_{count}"
            self.taken.add(name)
            self.names[var] = name
        return self.names[var]

    def type(self, of: Type | None) -> str:
        """A type, as the parser reads it."""
        if isinstance(of, TensorType):
            if not of.shape:
                return str(of.dtype)
            return f"Tensor[({', '.join([self.dim(size) for size in of.shape])}), {of.dtype}]"
        if isinstance(of, TupleType):
            inner = ", ".join([self.type(field) for field in of.fields])
            return f"({inner}{',' if len(of.fields) == 1 else ''})"
        if isinstance(of, FuncType):
            names = f"[{', '.join([self.type(param) for param in of.type_params])}]" if of.type_params else ""
            return f"fn {names}({', '.join([self.type(part) for part in of.arg_types])}) -> {self.type(of.ret_type)}"
        if isinstance(of, RefType):
            return f"ref({self.type(of.value)})"
        if isinstance(of, TypeCall):
            return of.func.name_hint + (f"[{', '.join([self.type(part) for part in of.args])}]" if of.args else "")
        return "_" if of is None or isinstance(of, IncompleteType) else repr(of)


def type_data_text(data: TypeData) -> list[str]:
    """The lines that define a data type."""
    names = SizeNames()
    given = f"[{', '.join([names.type(var) for var in data.type_vars])}]" if data.type_vars else ""
    cases = []
    for case in data.constructors:
        fields = ", ".join([names.type(part) for part in case.inputs])
        cases.append(f"  {case.name_hint}({fields})," if fields else f"  {case.name_hint},")
    return [f"type {data.header.name_hint}{given} {{", *cases, "}"]
