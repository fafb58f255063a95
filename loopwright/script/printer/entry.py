"""The entries of the printer, and the hooks through which nodes reach it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loopwright.ir import Buffer, Expr, IRModule, MatchBufferRegion, Node, PrimFunc, Stmt, deep
from loopwright.ir.sharing import bind_large
from loopwright.runtime.shown import SCRIPT_PACKAGE
from loopwright.script.printer.functions import FunctionPrinter, module_functions, result_dtype
from loopwright.script.printer.marks import add_marks, finish
from loopwright.script.printer.names import identifier
from loopwright.script.printer.options import Options, make_options
from loopwright.script.printer.scopes import EnoughLines, Learned

_EXCERPT_LINES: Final = 8


@deep
def script_text(obj: object, **options: object) -> str:
    """`obj` as Python text; functions and modules parse back to the same program."""
    return _print(obj, make_options(obj, options), declarations=True)


@deep
def render(obj: object) -> str:
    """What `repr` shows: the script, without the declarations that a fragment would need to be parsed."""
    try:
        return _print(obj, Options(), declarations=False)
    except Exception as error:  # a broken node must still be showable, in a debugger above all
        return f"<{type(obj).__name__} at {id(obj):#x}, which cannot be printed: {error}>"


@deep
def render_node(obj: object) -> str:
    """A node in an error message: its first lines, the first one marked."""
    if not isinstance(obj, (Node, IRModule)):
        return str(obj)
    if type(obj).__repr__ not in (Node.__repr__, IRModule.__repr__) or getattr(obj, "_form", lambda: None)():
        lines = repr(obj).splitlines()[:_EXCERPT_LINES]  # of a layer above, with a text of its own
    else:
        lines = _print(obj, Options(max_lines=_EXCERPT_LINES), declarations=False).splitlines()
    return "\n".join([f"  > {lines[0]}", *lines[1:]]) if lines else ""


def _print(obj: object, options: Options, declarations: bool) -> str:
    if isinstance(obj, IRModule):
        lines, metadata = _module_lines(obj, options)
    elif isinstance(obj, PrimFunc):
        lines, metadata = _function_lines(obj, options)
    elif isinstance(obj, Stmt):
        lines, metadata = _statement_lines(obj, options, declarations)
    else:
        lines, metadata = _expression_lines(obj, options, declarations)
    return finish([*lines, *metadata], options)


def _printer(options: Options, learned: Learned) -> FunctionPrinter:
    printer = FunctionPrinter(options, learned)
    add_marks(printer, options)
    return printer


def _run(printer: FunctionPrinter, write: Callable[[], None]) -> None:
    """Print, or as much of it as an excerpt may have."""
    try:
        write()
    except EnoughLines:
        printer.lines.append("…")


def _function_printer(
    func: PrimFunc, name: str, options: Options, functions: dict[str, tuple[str, str]]
) -> FunctionPrinter:
    learned = Learned()
    while True:
        before = learned.size
        printer = _printer(options, learned)
        printer.functions = functions
        _run(printer, lambda: printer.function(func, name))  # noqa: B023
        if learned.size == before:
            return printer


def _function_lines(func: PrimFunc, options: Options) -> tuple[list[str], list[str]]:
    name = identifier(options.name or str(func.attrs.get("global_symbol") or "main"), "main")
    printer = _function_printer(func, name, options, {})
    header = _header(options, uses_ir=printer.uses_ir_prefix, uses_tir=True)
    return [*header, *printer.lines], printer.metadata_lines()


def _module_lines(module: IRModule, options: Options) -> tuple[list[str], list[str]]:
    class_name = identifier(options.name or "Module", "Module")
    functions = module_functions(module)
    names = {
        original: (f"{options.module_alias or class_name}.{identifier(original, 'main')}", result_dtype(func))
        for original, func in module.functions_items()
    }
    indent = " " * options.indent_spaces
    lines = [f"@{options.ir_prefix}.ir_module", f"class {class_name}:"]
    metadata: list[str] = []
    if module.attrs:
        attrs = _printer(options, Learned()).mapping_text(module.attrs)
        lines.append(f"{indent}{options.ir_prefix}.module_attrs({attrs})")
    for name, func in functions:
        printer = _function_printer(func, name, options, names)
        if not lines[-1].startswith("class "):
            lines.append("")
        lines += [indent + line for line in printer.lines]
        metadata = metadata or printer.metadata_lines()
    if not functions and not module.attrs:
        lines.append(f"{indent}pass")
    return [*_header(options, uses_ir=True, uses_tir=bool(functions)), *lines], metadata


def _statement_lines(stmt: Stmt, options: Options, declarations: bool) -> tuple[list[str], list[str]]:
    learned = Learned()
    while True:
        before = learned.size
        printer = _printer(options, learned)
        _run(printer, lambda: printer.statement(stmt, last=False))  # noqa: B023
        if learned.size == before:
            break
    lines = [*printer.top, *printer.lines] if declarations else printer.lines
    return lines, printer.metadata_lines()


def _expression_lines(obj: Any, options: Options, declarations: bool) -> tuple[list[str], list[str]]:
    printer = _printer(options, Learned())
    if isinstance(obj, Expr):
        obj = bind_large(obj)
    if isinstance(obj, Buffer):
        name = printer.undefined(obj)
        wanted = f"{name} = "
        lines = [line for line in printer.top if options.verbose_expr or line.startswith(wanted)]
        return [*lines, name] if options.verbose_expr and declarations else lines, []
    if isinstance(obj, MatchBufferRegion):
        source = printer.text(obj.source)
        shown = printer.top if options.verbose_expr and declarations else []
        printer.declare_buffer(
            obj.buffer, "match_buffer", source, show_dtype=obj.source.buffer.dtype is not obj.buffer.dtype
        )
        return [*shown, *printer.lines], printer.metadata_lines()
    text = printer.text(obj)
    shown = printer.top if options.verbose_expr and declarations else []
    return [*shown, text], printer.metadata_lines()


def _header(options: Options, uses_ir: bool, uses_tir: bool) -> list[str]:
    if options.max_lines is not None:
        return []
    package = SCRIPT_PACKAGE[0]
    lines = [f"# from {package}.script import ir as {options.ir_prefix}"] if uses_ir else []
    if uses_tir:
        lines.append(f"# from {package}.script import tir as {options.tir_prefix}")
    return [*lines, ""]
