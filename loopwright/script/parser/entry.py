"""The decorators `@T.prim_func`, `@T.macro`, `@I.ir_module`, and `from_source` for text."""

from __future__ import annotations

import ast
import importlib
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any, ClassVar, Final, TypeVar, overload

from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.diagnostics import report
from loopwright.runtime.errors import DiagnosticError
from loopwright.script.parser.directives import Macro, reading
from loopwright.script.parser.errors import BadModule, NoSource, NotAFunction, UnsupportedStatement
from loopwright.script.parser.functions import FunctionParser, is_private, parse_function, parse_module
from loopwright.script.parser.scopes import Environment, Scopes, closure_of
from loopwright.script.parser.source import Source, class_source, function_source, text_source

Result = TypeVar("Result")


@overload
def prim_func(function: FunctionType) -> PrimFunc: ...
@overload
def prim_func(
    *, private: bool = False, check_well_formed: bool = True
) -> Callable[[FunctionType], PrimFunc]: ...
def prim_func(function: object = None, *, private: bool = False, check_well_formed: bool = True) -> Any:
    """Read the decorated function as a program; it is never run as Python.

    Whatever `check_well_formed` says, what the text does not decide is checked when the program is scheduled or built.

    `private=True` leaves it without a global symbol: only other functions of its module can call it. Inside a class
    that `@I.ir_module` decorates, reading waits for the whole class.
    """
    if function is None:
        frame = sys._getframe(1)
        return lambda decorated: _read_function(decorated, frame, private)
    return _read_function(function, sys._getframe(1), private)


def _read_function(function: object, frame: FrameType, private: bool) -> PrimFunc | FunctionType:
    if not inspect.isfunction(function):
        raise NotAFunction("@T.prim_func", "a function", function)
    if _inside_module_class(function, frame):
        return function
    environment = Environment(closure_of(function), frame.f_locals, function.__globals__)
    return _brief(lambda: parse_function(*function_source(function), environment, private))


def _brief(parse: Callable[[], Result]) -> Result:
    """What `parse` returns. The place is in the message of a diagnostic; the parser's own frames would bury it."""
    reading.depth += 1
    try:
        return parse()
    except DiagnosticError as error:
        failure = error.with_traceback(None)
    finally:
        reading.depth -= 1
    report(failure)
    raise failure


prim_func.defines_function = True  # type: ignore[attr-defined]


def _inside_module_class(function: FunctionType, frame: FrameType) -> bool:
    """Whether the function is being defined in the body of a class that a line above decorates with ir_module."""
    code = frame.f_code
    owner = function.__qualname__.rpartition(".")[0]
    if not owner or owner.endswith("<locals>") or frame.f_locals.get("__qualname__") != owner:
        return False
    # The code of a class body starts at its first decorator, or at the class statement; decorators stand above.
    line = code.co_firstlineno
    texts = []
    while line > 1 and linecache.getline(code.co_filename, line - 1).lstrip().startswith("@"):
        line -= 1
    while (text := linecache.getline(code.co_filename, line).strip()).startswith("@"):
        texts.append(text)
        line += 1
    return any("ir_module" in text for text in texts)


@overload
def macro(function: FunctionType) -> Macro: ...
@overload
def macro(*, hygienic: bool = True) -> Callable[[FunctionType], Macro]: ...
def macro(function: object = None, *, hygienic: bool = True) -> Macro | Callable[[FunctionType], Macro]:
    """Make the decorated function a body of statements that scripts splice in where they call it."""
    if function is None:
        frame = sys._getframe(1)
        return lambda decorated: _read_macro(decorated, frame, hygienic)
    return _read_macro(function, sys._getframe(1), hygienic)


def _read_macro(function: object, frame: FrameType, hygienic: bool) -> Macro:
    if not inspect.isfunction(function):
        raise NotAFunction("@T.macro", "a function", function)
    source, node = function_source(function)
    environment = Environment(closure_of(function), frame.f_locals, function.__globals__)
    return Macro(node, source, environment, hygienic, function)


def ir_module(cls: object = None, *, check_well_formed: bool = True) -> Any:
    """Read the decorated class as a module; its functions may call each other as `Module.function(...)`.

    `check_well_formed` is that of `prim_func`.
    """
    frame = sys._getframe(1)
    if cls is None:
        return lambda decorated: _read_class(decorated, frame)
    return _read_class(cls, frame)


def _read_class(cls: object, frame: FrameType) -> IRModule:
    if not inspect.isclass(cls):
        raise NotAFunction("@I.ir_module", "a class", cls)
    # While decorators are applied, the running line is that of a decorator or of the class statement itself.
    file, line = frame.f_code.co_filename, frame.f_lineno
    environment = Environment(frame.f_locals, frame.f_globals)
    module = _brief(lambda: parse_module(*class_source(cls, file, line), environment, _closures(cls)))
    module.__name__ = cls.__name__  # as of the class that it stands for
    return module


def _closures(cls: type) -> dict[str, dict[str, object]]:
    return {name: closure_of(value) for name, value in vars(cls).items() if inspect.isfunction(value)}


def from_source(
    program: str | Callable[..., Any] | type,
    extra_vars: Mapping[str, object] | None = None,
    check_well_formed: bool = True,
) -> Any:
    """The function or module that a text, a Python function or a class defines.

    `check_well_formed` is that of `prim_func`.
    In text `T`, `I`, `tir`, `ir` and `tvm` are known without imports; `extra_vars` adds names.
    """
    if isinstance(program, str):
        text = program
        return _brief(lambda: _read_text(text, extra_vars or {}))
    if inspect.isfunction(program):
        environment = Environment(extra_vars or {}, closure_of(program), program.__globals__)
        function = program
        return _brief(lambda: parse_function(*function_source(function), environment))
    if inspect.isclass(program):
        return _brief(lambda: _read_given_class(program, extra_vars or {}))
    raise NotAFunction("from_source", "a text, a function or a class", program)


def _read_given_class(cls: type, extra_vars: Mapping[str, object]) -> IRModule:
    try:
        file, (_, line) = inspect.getfile(cls), inspect.getsourcelines(cls)
    except (OSError, TypeError):
        raise NoSource(f"class {cls.__name__!r}", cls.__module__) from None
    environment = Environment(extra_vars, vars(sys.modules[cls.__module__]))
    return parse_module(*class_source(cls, file, line), environment, _closures(cls))


def _read_text(text: str, extra_vars: Mapping[str, object]) -> PrimFunc | IRModule:
    source, module = text_source(text)
    imported: dict[str, object] = {}
    environment = Environment(extra_vars, imported, _PREDEFINED)
    parser = FunctionParser(source, Scopes(environment), {})
    result: PrimFunc | IRModule | None = None
    for statement in module.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            _import(statement, imported, source)
        elif isinstance(statement, ast.FunctionDef):
            private = any(is_private(parser, one) for one in statement.decorator_list if isinstance(one, ast.Call))
            imported[statement.name] = result = parse_function(source, statement, environment, private)
        elif isinstance(statement, ast.ClassDef):
            imported[statement.name] = result = parse_module(source, statement, environment, {})
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            raise UnsupportedStatement(
                f"{type(statement).__name__} outside a function",
                "define functions and classes only",
                source.place(statement),
            )
    if result is None:
        raise BadModule("the text defines no function and no class", source.place(ast.Pass(**_FIRST)))
    return result


_FIRST = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 1}


class _Predefined(Mapping[str, ModuleType]):
    """The names that text may use without importing them; each loads when it is used (they stand on the parser)."""

    modules: ClassVar[dict[str, str]] = {
        "T": "loopwright.script.tir",
        "I": "loopwright.script.ir",
        "tir": "loopwright.tir",
        "ir": "loopwright.ir",
        "tvm": "loopwright",
        "loopwright": "loopwright",
    }

    def __getitem__(self, name: str) -> ModuleType:
        return importlib.import_module(self.modules[name])

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


_PREDEFINED: Final = _Predefined()


def _import(statement: ast.Import | ast.ImportFrom, names: dict[str, object], source: Source) -> None:
    """The imports that scripts begin with; those of the script namespaces mean ours, whatever package they name."""
    for alias in statement.names:
        name = alias.asname or alias.name.partition(".")[0]
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").endswith("script"):
            space = _PREDEFINED.get({"tir": "T", "ir": "I"}.get(alias.name, ""))
        elif isinstance(statement, ast.Import):
            space = _PREDEFINED["tvm"] if alias.name in ("tvm", "loopwright") else sys.modules.get(alias.name)
        else:
            space = _PREDEFINED.get(alias.name) if statement.module in ("tvm", "loopwright") else None
        if space is None:
            raise UnsupportedStatement(
                f"import of {alias.name}", "pass what it gives in extra_vars", source.place(statement)
            )
        names[name] = space
