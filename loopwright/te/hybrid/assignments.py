"""Reading what a hybrid function assigns: elements, scalars, names, and the memory it makes."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from typing import Final

from loopwright.ir import Expr, ProducerLoad, ProducerStore, Stmt, cast, const, match_types
from loopwright.script.parser.source import Source
from loopwright.te.hybrid.builtins import STORAGE, WrongCall, number, type_named
from loopwright.te.hybrid.errors import HybridCallError, HybridError, HybridNameError, HybridTypeError
from loopwright.te.hybrid.expressions import ExpressionReader, has_load
from loopwright.te.hybrid.symbols import Meaning, Reading, Scalar, Scope, Value
from loopwright.te.operation import check_shape, placeholder
from loopwright.te.tensor import Tensor

_SCOPES: Final = ("global", "shared", "local")


class AssignmentReader(ExpressionReader):
    """Reads assignments; what they do goes to the list of statements of the scope that is being read."""

    def __init__(
        self,
        function: types.FunctionType,
        source: Source,
        scope: Scope,
        reading: Reading,
        statements: list[Stmt],
        is_called: bool,
    ) -> None:
        super().__init__(function, source, scope)
        self.reading = reading
        self.statements = statements
        self.is_called = is_called  # from another hybrid function, rather than as an operation of its own
        self.outputs: dict[Tensor, None] = {}  # made by output_tensor
        self.returned: list[Tensor] | None = None
        self.nesting: list[ast.AST] = []  # loops and conditions around the current statement
        self.regions: list[Sequence[ast.stmt]] = []  # the source of each scope, innermost last

    # --- assignments ----------------------------------------------------------------------------------------------

    def do_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise HybridError("a value is assigned to several targets", self.place(node), "write one a line")
        (target,) = node.targets
        if isinstance(target, ast.Subscript):
            self._store_element(target, self.number(node.value, "the value"))
        elif isinstance(target, ast.Name):
            self._assign(target, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, node)
        else:
            raise HybridError("this cannot be assigned", self.place(target), "assign names and elements")

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        raise HybridError("annotations have no meaning here", self.place(node), "write a plain assignment")

    def _unpack(self, target: ast.Tuple | ast.List, node: ast.Assign) -> None:
        values = self.read(node.value)
        if not isinstance(values, tuple) or len(values) != len(target.elts):
            count = len(values) if isinstance(values, tuple) else 1
            raise HybridError(
                f"{count} value{'s' * (count != 1)} cannot be given to {len(target.elts)} names", self.place(node)
            )
        for name, value in zip(target.elts, values, strict=True):
            if isinstance(name, ast.Subscript) and isinstance(value, Expr):
                self._store_element(name, value)
            elif not isinstance(name, ast.Name):
                raise HybridError("this cannot be assigned", self.place(name), "assign names and elements")
            elif isinstance(value, Expr):
                self._store_scalar(name, value)
            else:
                self._define(name, value)

    def _assign(self, target: ast.Name, node: ast.Assign) -> None:
        value = node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in STORAGE:
            self._new_memory(target, value, value.func.id)
            return
        result = self.read(value)
        if isinstance(result, (Tensor, tuple, str)) and not (isinstance(result, Tensor) and not result.shape):
            self._define(target, result)
            return
        try:
            self._store_scalar(target, number(result, "the value"))
        except WrongCall as error:
            raise HybridError(error.problem, self.place(value), error.hint) from None

    def _define(self, target: ast.Name, value: Meaning) -> None:
        """A name for something that is not a number."""
        self._refuse_loop_variable(target)
        self.scope.names[target.id] = Value(value)

    def _refuse_loop_variable(self, target: ast.Name) -> None:
        result = self.scope.find(target.id)
        if isinstance(result, Value) and result.is_loop:
            raise HybridNameError(
                f"the loop variable {target.id} is assigned", self.place(target), "use another name for the new value"
            )

    def _store_scalar(self, target: ast.Name, value: Expr) -> None:
        self._refuse_loop_variable(target)
        result = self.scope.find(target.id)
        if isinstance(result, Value):
            raise HybridNameError(
                f"{target.id} stands for something else already", self.place(target), "use another name for the number"
            )
        if result is None:
            # A name for what does not change (literals, sizes, loop variables) needs no memory.
            if not has_load(value) and _stores_of(target.id, self.regions[-1]) == 1:
                self.scope.names[target.id] = Value(value)
                return
            if self.scope.in_threads:
                raise HybridError(
                    f"the scalar {target.id} is made inside a loop bound to threads",
                    self.place(target),
                    f'use memory of the thread: {target.id} = allocate((1,), "{value.dtype}", "local")',
                )
            cell = placeholder((1,), value.dtype, target.id)
            self.scope.memory.append((cell, "global"))
            result = self.scope.names[target.id] = Scalar(cell)
        self._store_cell(target, result, value)

    def _store_cell(self, target: ast.AST, scalar: Scalar, value: Expr) -> None:
        dtype = scalar.cell.dtype
        if match_types(const(0, dtype), const(0, value.dtype))[0].dtype is not dtype and not value.dtype.is_bool:
            raise HybridTypeError(
                f"{scalar.cell.name} is {dtype}, as its first value says, and cannot hold a {value.dtype}",
                self.place(target),
                f"start it as {value.dtype}: {scalar.cell.name} = {value.dtype}(0)",
            )
        self.statements.append(ProducerStore(scalar.cell, cast(value, dtype), (const(0),)))

    def _store_element(self, target: ast.Subscript, value: Expr) -> None:
        holder, indices = self.element(target)
        if not isinstance(holder, Tensor):
            raise HybridError("an entry of a tuple is assigned", self.place(target), "only tensors have elements")
        if len(indices) != holder.ndim:
            raise HybridError(
                f"{holder.name} has {holder.ndim} dimensions, but {len(indices)} are indexed",
                self.place(target),
                "assign one element",
            )
        self.statements.append(ProducerStore(holder, cast(value, holder.dtype), indices))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        value = self.number(node.value, "the value")
        target = node.target
        if isinstance(target, ast.Subscript):
            holder, indices = self.element(target)
            if not isinstance(holder, Tensor):
                raise HybridError("an entry of a tuple is assigned", self.place(target), "only tensors have elements")
            self._store_element(target, self.combine(node.op, holder(*indices), value, node))
        elif isinstance(target, ast.Name):
            self._refuse_loop_variable(target)
            result = self.scope.find(target.id)
            if not isinstance(result, Scalar):
                raise HybridNameError(
                    f"{target.id} is changed before it has a value",
                    self.place(node),
                    f"assign it first: {target.id} = …",
                )
            old = ProducerLoad(result.cell, (const(0),))
            self._store_cell(node, result, self.combine(node.op, old, value, node))
        else:
            raise HybridError("this cannot be assigned", self.place(target), "assign names and elements")

    # --- memory ---------------------------------------------------------------------------------------------------

    def _new_memory(self, target: ast.Name, call: ast.Call, word: str) -> None:
        self._refuse_loop_variable(target)
        names = ["shape", "dtype", "scope"][: 2 if word == "output_tensor" else 3]
        given: dict[str, Meaning] = {}
        for position, arg in enumerate(call.args):
            if position >= len(names):
                raise HybridCallError(
                    f"{word} takes {', '.join(names)}", self.place(call), f"leave out the arguments after {names[-1]}"
                )
            given[names[position]] = self.read(arg)
        for keyword in call.keywords:
            if keyword.arg not in names or keyword.arg in given:
                raise HybridCallError(
                    f"{word} takes {', '.join(names)} (each once), not {keyword.arg}", self.place(call)
                )
            given[keyword.arg] = self.read(keyword.value)
        if "shape" not in given or (word == "output_tensor" and "dtype" not in given):
            raise HybridCallError(f"{word} needs a shape and a type", self.place(call), f'{word}((n, m), "float32")')
        try:
            dtype = type_named(given.get("dtype", "float32"))
        except WrongCall as error:
            raise HybridTypeError(error.problem, self.place(call), error.hint) from None
        storage = given.get("scope", "global")
        if storage not in _SCOPES:
            raise HybridCallError(f"{storage!r} is no scope", self.place(call), f"the scopes are {', '.join(_SCOPES)}")
        shape = given["shape"] if isinstance(given["shape"], tuple) else (given["shape"],)
        tensor = placeholder(check_shape(shape, f"{word} {target.id}"), dtype, target.id)
        if word == "output_tensor":
            if self.nesting:
                raise HybridCallError(
                    "output_tensor stands inside a loop or condition",
                    self.place(call),
                    "make outputs at the start of the function; allocate makes memory inside",
                )
            self.outputs[tensor] = None
        if word == "allocate" or self.is_called:
            self.scope.memory.append((tensor, str(storage)))
        self.scope.names[target.id] = Value(tensor)


def _stores_of(name: str, body: Sequence[ast.stmt]) -> int:
    """How often the name is assigned in these statements."""
    count = 0
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                count += 1
    return count
