"""Assignments: a store into a buffer, a name for a directive's result, or a value bound for the rest of the body."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    LetStmt,
    PointerType,
    PrimType,
    Stmt,
    StringImm,
    Type,
    Var,
    as_expr,
)
from loopwright.ir.tensor_copy_intrinsics import type_of_value
from loopwright.runtime.dtype import DataType
from loopwright.script.parser import directives as d
from loopwright.script.parser.blocks import BlockStatements, Wrap
from loopwright.script.parser.errors import (
    BadValueType,
    LossyStore,
    Rebinding,
    UnsupportedStatement,
    WrongTargets,
    count,
    describe,
)
from loopwright.script.parser.expressions import BINARY, stored_value
from loopwright.script.parser.long_chains import PREFIX
from loopwright.script.parser.memory import Part


class Assignments(BlockStatements):
    """`A[i] = v`, `x = v`, `x: T.int32 = v`, `a, b = v`, `A[i] += v`."""

    def assign(self, node: ast.Assign) -> Part | list[Part] | None:
        if len(node.targets) != 1:
            raise UnsupportedStatement("a chained assignment", "write one assignment a line", self.place(node))
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return self._store(target, self.value(node.value), node)
        value: Any = self.assigned(node.value)
        if isinstance(target, ast.Name):
            return self.bind(target, value, node.value)
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, d.RemapSpec):
                axes = self.remap(value, self._target_names(target), node.value)
                self.unpack(target, axes, self.define)
                return None
            try:
                values = list(value)
            except TypeError as error:
                raise WrongTargets(f"{describe(value)} cannot be unpacked", self.place(target)) from error
            result: list[Part] = []

            def bind(name: ast.Name, part: object) -> None:
                bound = self.bind(name, part, node.value)
                if bound is not None:
                    result.append(bound)

            self.unpack(target, values, bind)
            return result
        raise UnsupportedStatement("assignment to an attribute", "assign to a name or a buffer", self.place(target))

    def _target_names(self, target: ast.Tuple | ast.List) -> list[str] | None:
        return [one.id for one in target.elts if isinstance(one, ast.Name)]

    def unpack(
        self, target: ast.Tuple | ast.List, values: Sequence[Any], bind: Callable[[ast.Name, object], None]
    ) -> None:
        stars = [k for k, one in enumerate(target.elts) if isinstance(one, ast.Starred)]
        names, given = len(target.elts), len(values)
        if len(stars) > 1 or (given < names - 1 if stars else given != names):
            raise WrongTargets(f"{count(given, 'value')} for {count(names, 'name')}", self.place(target))
        parts = list(values)
        if stars:
            spread = given - names + 1
            parts[stars[0] : stars[0] + spread] = [d.MetaVar(parts[stars[0] : stars[0] + spread])]
        for one, part in zip(target.elts, parts, strict=True):
            if isinstance(one, ast.Starred):
                assert isinstance(one.value, ast.Name)
                self.define(one.value, [item.value if isinstance(item, d.MetaVar) else item for item in part.value])
            elif isinstance(one, ast.Name):
                bind(one, part)
            elif isinstance(one, (ast.Tuple, ast.List)):
                self.unpack(one, part, bind)
            else:
                raise WrongTargets("only names can be unpacked into", self.place(one))

    def bind(self, target: ast.Name, value: object, node: ast.expr) -> Wrap | None:
        """`target = value`: name a directive's result, or bind an expression for the rest of the body."""
        name = target.id
        opener = self.openers.get(type(value))
        if opener is not None:
            bound, wrap = opener(self, value, name, node)
            self.define(target, value if bound is None else bound)
            return wrap
        namer = self.namers.get(type(value))
        if namer is not None:
            self.define(target, namer(self, value, name, node))
            return None
        if isinstance(value, Var) and value.name == "":
            self.define(target, type(value)(name, value.type_annotation, span=self.place(target)))
            return None
        if isinstance(value, Var) and isinstance(node, ast.Call) and not self.scopes.has(value):
            self.define(target, value)  # T.Var("n", "int32"): a new variable with a name of its own
            return None
        if name.startswith(PREFIX):  # the beginning of a long sum, not a name of the user's
            self.define(target, value)
            return None
        if isinstance(value, (Expr, int, float)) or hasattr(value, "as_expr"):
            if self.scopes.is_defined_here(name):
                if self.scopes.get(name) is value:
                    return None
                raise Rebinding(name, self.scopes.frames[-1][name][1], self.place(target))
            return self._let(target, as_expr(value), None)
        if isinstance(value, Buffer) and isinstance(self.scopes.get(name), Buffer) and self.scopes.get(name) != value:
            # A second name for a buffer is fine; the name of another buffer is nearly always meant as a copy.
            box = ", ".join([f"0:{extent!r}" for extent in value.shape])
            raise Rebinding(
                name, None, self.place(target), f"to copy the elements, write {name}[{box}] = {value.name}[{box}]"
            )
        self.define(target, value)
        return None

    def _let(self, target: ast.Name, value: Expr, annotation: Type | None) -> Wrap:
        if isinstance(value, StringImm):
            raise BadValueType("a text cannot be bound in the program", self.place(target), "use T.meta_var(text)")
        if annotation is None:
            annotation = type_of_value(value)
        span = self.place(target)
        var = Var(target.id, annotation, span=span)
        self.define(target, var)
        return lambda body: LetStmt._make(var, value, body, span=span)

    def annotated(self, node: ast.AnnAssign) -> Wrap | None:
        if not isinstance(node.target, ast.Name):
            raise WrongTargets("an annotation belongs to a name", self.place(node.target))
        annotation = self.type_of(node.annotation)
        if node.value is None:
            self.define(node.target, Var(node.target.id, annotation, span=self.place(node.target)))
            return None
        value = self.value(node.value)
        if isinstance(value, (d.AllocateSpec, d.AllocateConstSpec)):
            return self.bind(node.target, value._replace(type=annotation), node.value)
        expected = annotation.dtype if isinstance(annotation, PrimType) else DataType("handle")
        try:
            number = isinstance(value, (bool, int, float))
            result = stored_value(value, expected) if number and expected != "handle" else as_expr(value)
        except Exception as error:
            raise self.failed(error, node.value) from error
        if result.dtype is not expected:
            raise BadValueType(
                f"{node.target.id} is annotated as {expected}, but its value is {result.dtype}",
                self.place(node.value),
                f"convert the value with .astype({str(expected)!r})" if expected != "handle" else None,
            )
        if isinstance(annotation, PointerType) and isinstance(result, Var) and result.name == "":
            self.define(node.target, Var(node.target.id, annotation))
            return None
        return self._let(node.target, result, annotation)

    def _store(self, target: ast.Subscript, value: object, node: ast.Assign | ast.AugAssign) -> Stmt:
        buffer = self.evaluate(target.value)
        if not isinstance(buffer, Buffer):
            raise BadValueType(
                f"only elements of buffers can be assigned, got {describe(buffer)}", self.place(target.value)
            )
        indices = self.store_indices(buffer, self.indices(target), target)
        return self._stored(buffer, indices, value, node)

    def _stored(
        self, buffer: Buffer, indices: tuple[Expr, ...], value: object, node: ast.Assign | ast.AugAssign
    ) -> Stmt:
        lanes = buffer.dtype.lanes
        for index in indices:
            lanes *= index.dtype.lanes
        expected = buffer.dtype.with_lanes(lanes)
        given = getattr(value, "dtype", None)
        if isinstance(given, DataType) and given is not expected:
            if given.lanes not in (1, lanes):
                raise BadValueType(
                    f"a vector of {given.lanes} lanes cannot be stored where {count(lanes, 'lane')} "
                    f"of {buffer.name} {'is' if lanes == 1 else 'are'} addressed",
                    self.place(node.value),
                    "use a slice of that length as the index",
                )
            self._warn_when_lossy(buffer, given, node)
        try:
            return BufferStore(buffer, stored_value(value, expected), indices, span=self.place(node))
        except Exception as error:
            raise self.failed(error, node.value) from error

    def _warn_when_lossy(self, buffer: Buffer, given: DataType, node: ast.stmt) -> None:
        lossy = given.is_float and not buffer.dtype.is_float
        if lossy or "handle" in (given.kind, buffer.dtype.kind):
            location = self.place(node)
            text = f"a {given} value is stored in {buffer.name}, which holds {buffer.dtype}; convert it with .astype"
            warnings.warn_explicit(text, LossyStore, location.file, location.line)

    def augmented(self, node: ast.AugAssign) -> Stmt:
        target = node.target
        if isinstance(target, ast.Name):
            raise Rebinding(target.id, None, self.place(target))
        if not isinstance(target, ast.Subscript):
            raise UnsupportedStatement("assignment to an attribute", "assign to a buffer", self.place(target))
        buffer = self.evaluate(target.value)
        if not isinstance(buffer, Buffer):
            raise BadValueType(f"only elements of buffers change, got {describe(buffer)}", self.place(target.value))
        indices = self.store_indices(buffer, self.indices(target), target)
        value = self.value(node.value)
        try:
            combined = BINARY[type(node.op)](BufferLoad(buffer, indices), value)
        except Exception as error:
            raise self.failed(error, node) from error
        return self._stored(buffer, indices, combined, node)
