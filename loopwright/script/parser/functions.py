"""Functions and modules: from a definition in the user's source to a PrimFunc or an IRModule."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    GlobalVar,
    IRModule,
    PrimFunc,
    PrimType,
    Rewriter,
    Stmt,
    Type,
    Var,
    const,
    deep,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser import directives as d
from loopwright.script.parser.errors import (
    BadAttributes,
    BadModule,
    BadParameter,
    InvalidSyntax,
    MissingAnnotation,
    UnknownAttribute,
    describe,
)
from loopwright.script.parser.frames import FunctionFrame
from loopwright.script.parser.scopes import Environment, Scopes
from loopwright.script.parser.source import Source
from loopwright.script.parser.statements import StatementParser


class FunctionParser(StatementParser):
    """Parse one function; `declared` holds the result types of the functions of its module."""

    def __init__(self, source: Source, scopes: Scopes, declared: Mapping[str, DataType]) -> None:
        super().__init__(source, scopes)
        self.declared = declared

    def result_dtype(self, function: GlobalVar) -> DataType:
        return self.declared.get(function.name, DataType("void"))

    def parse(self, node: ast.FunctionDef, private: bool) -> PrimFunc:
        frame = FunctionFrame("directly inside the function", node.name)
        self.frames.append(frame)
        self.scopes.enter()
        frame.ret_type = self._result_type(node)
        self._parameters(node, frame)
        self.scopes.enter()
        body = self.with_root(self.body(node.body), frame)
        attrs = dict(frame.attrs or {})
        if not private:
            attrs.setdefault("global_symbol", node.name)
        elif "global_symbol" in attrs:
            raise BadAttributes(
                f"function {node.name!r} is private, but has the global symbol {attrs['global_symbol']!r}",
                self.place(node.body[0]),
                "drop private=True, or the global_symbol",
            )
        return PrimFunc(frame.params, body, frame.ret_type, frame.buffer_map, attrs, span=self._header(node))

    def _header(self, node: ast.FunctionDef) -> SourceLine:
        return self.place(node)._replace(end_column=None)

    def _result_type(self, node: ast.FunctionDef) -> Type | None:
        if node.returns is None:
            return None
        value = self.evaluate(node.returns)
        return None if value is None else self.as_type(value, node.returns)

    def _parameters(self, node: ast.FunctionDef, frame: FunctionFrame) -> None:
        arguments = node.args
        for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
            if extra is not None:
                raise BadParameter(
                    f"parameter {extra.arg!r} must be an ordinary one",
                    self.place(extra),
                    "drop the star in the signature",
                )
        if arguments.defaults:
            raise BadParameter("parameters have no default values", self.place(arguments.defaults[0]))
        for argument in (*arguments.posonlyargs, *arguments.args):
            self._parameter(argument, frame)

    def _parameter(self, argument: ast.arg, frame: FunctionFrame) -> None:
        name, annotation = argument.arg, argument.annotation
        if annotation is None:
            raise MissingAnnotation(name, self.place(argument))
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                text = ast.parse(annotation.value.strip(), mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise InvalidSyntax(f"the annotation of {name} is none ({error})", self.place(annotation)) from None
            for part in ast.walk(text):
                ast.copy_location(part, annotation)
            annotation = text
        value = self.evaluate(annotation)
        if isinstance(value, (d.BufferSpec, Buffer)):
            # A buffer that was made outside is the pattern of this one.
            spec = d.spec_like(value) if isinstance(value, Buffer) else value
            buffer = self._buffer(spec, name, annotation)
            handle = Var(f"{name}_handle", "handle")
            frame.params.append(handle)
            frame.buffer_map[handle] = buffer
            self.scopes.define(name, buffer, lambda: self.place(argument))
            return
        try:
            result = value() if callable(value) and not isinstance(value, (Type, Expr)) else value
        except Exception as error:
            raise self.failed(error, annotation) from error
        kind = type(result) if isinstance(result, Var) else Var
        var = kind(name, self.as_type(result, annotation), span=self.place(argument))
        frame.params.append(var)
        self.scopes.define(name, var, lambda: self.place(argument))

    def with_root(self, body: Stmt, frame: FunctionFrame) -> Stmt:
        """The body under a root block, where the program has blocks and no root of its own."""
        is_root = isinstance(body, BlockRealize) and not body.block.iter_vars and not frame.root_allocations
        if self.deferred and not (is_root and isinstance(body, BlockRealize) and body.block in self.deferred):
            body = _complete(body, self.deferred)
        if not frame.has_blocks and not frame.root_allocations:
            return body
        if is_root or (isinstance(body, Block) and not frame.root_allocations):
            return body
        root = Block._make((), (), (), "root", body, None, tuple(frame.root_allocations), span=body.span)
        return BlockRealize._make((), const(True), root, span=body.span)


class _Complete(Rewriter):
    def __init__(self, blocks: Mapping[Block, Callable[[], Block]]) -> None:
        self.blocks = blocks

    def visit_Block(self, block: Block) -> Block:
        complete = self.blocks.get(block)
        return block if complete is None else complete()

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr


@deep
def _complete(body: Stmt, blocks: Mapping[Block, Callable[[], Block]]) -> Stmt:
    result: Stmt = _Complete(blocks).visit(body)
    return result


@deep
def parse_function(
    source: Source,
    node: ast.FunctionDef,
    environment: Environment,
    private: bool = False,
    declared: Mapping[str, DataType] | None = None,
) -> PrimFunc:
    """The function that `node` defines, its free names meaning what they mean in `environment`."""
    return FunctionParser(source, Scopes(environment), declared or {}).parse(node, private)


class ModuleNames:
    """What `Module` means inside its own functions: its attributes are the functions."""

    def __init__(self, name: str, functions: Mapping[str, GlobalVar]) -> None:
        self.__dict__.update(functions)
        self._name = name

    def __repr__(self) -> str:
        return f"module {self._name}"


def _is_old_metadata(statement: ast.stmt) -> bool:
    """`__tvm_meta__ = None`, which printers of scripts once put at the end of a module."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none and isinstance(target, ast.Name) and target.id == "__tvm_meta__"


@deep
def parse_module(
    source: Source, node: ast.ClassDef, environment: Environment, closures: Mapping[str, Mapping[str, object]]
) -> IRModule:
    """The module that the class `node` defines; `closures` are the free variables of each function."""
    parser = FunctionParser(source, Scopes(environment), {})
    parser.frames.append(FunctionFrame("in the module"))
    parser.scopes.enter()
    functions: dict[str, ast.FunctionDef] = {}
    attrs: dict[str, object] = {}
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name in functions:
                raise BadModule(
                    f"module {node.name!r} already has a function {statement.name!r}", parser.place(statement)
                )
            functions[statement.name] = statement
            continue
        if isinstance(statement, ast.Pass) or _is_old_metadata(statement):
            continue
        value = parser.evaluate(statement.value) if isinstance(statement, ast.Expr) else None
        if isinstance(value, d.AttributesSpec) and value.function == "module_attrs":
            attrs.update(value.attributes)
        elif not isinstance(value, str):
            raise BadModule(
                "a module holds functions and I.module_attrs({...}) only", parser.place(statement), "move it outside"
            )
    names = {name: GlobalVar(name) for name in functions}
    declared = {name: _declared_dtype(parser, function) for name, function in functions.items()}
    inside = {node.name: ModuleNames(node.name, names), "cls": ModuleNames(node.name, names)}
    module = IRModule(attrs=attrs)
    for name, function in functions.items():
        private = _is_private(parser, function)
        scope = Environment(inside, closures.get(name, {}), *environment.layers[:-1])
        module[names[name]] = parse_function(source, function, scope, private, declared)
    return module


def _declared_dtype(parser: FunctionParser, function: ast.FunctionDef) -> DataType:
    result = parser._result_type(function)
    return result.dtype if isinstance(result, PrimType) else DataType("void")


def _is_private(parser: FunctionParser, function: ast.FunctionDef) -> bool:
    """What the decorator of a function in a module says."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call):
            target = parser.evaluate(decorator.func)
        else:
            target = parser.evaluate(decorator)
        if not getattr(target, "defines_function", False):
            raise BadModule(
                f"function {function.name!r} of a module has the decorator {describe(target)}",
                parser.place(decorator),
                "use @T.prim_func",
            )
        if isinstance(decorator, ast.Call):
            return is_private(parser, decorator)
        return False
    raise BadModule(f"function {function.name!r} has no decorator", parser.place(function), "use @T.prim_func")


def is_private(parser: StatementParser, decorator: ast.Call) -> bool:
    """The value of `private=` in a decorator."""
    private = False
    for keyword in decorator.keywords:
        if keyword.arg != "private":
            raise UnknownAttribute("T.prim_func", keyword.arg or "**", ["private"], parser.place(decorator))
        private = bool(parser.evaluate(keyword.value))
    return private
