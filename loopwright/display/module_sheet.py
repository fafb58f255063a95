"""What a compiled module shows of itself: its functions and their arguments, what it was made for, what that took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopwright.display.sheet import Code, Lines, Sheet, Span, Table, heading
from loopwright.runtime.description import Argument, FunctionDescription

if TYPE_CHECKING:
    from loopwright.runtime.module import Module

LANGUAGES: Final = {"ll": "llvm", "asm": "gas", "s": "gas", "c": "c", "h": "c"}  # forms of source → Pygments' names


def module_sheet(module: Module) -> Sheet:
    """The module at a glance."""
    about = module.description
    title = heading(f"Module ({module.type_key})", about.target if about is not None else "")
    if about is None:
        rows = [(name, "") for name in module.function_names]
        functions = Table(("function", ""), tuple(rows))
    else:
        described = {one.name: one for one in about.functions}
        rows = [(name, _signature(described.get(name))) for name in module.function_names]
        functions = Table(("function", "arguments"), tuple(rows))
    return Sheet(title, functions, Lines(tuple(_facts(module))))


def source_sheet(module: Module, form: str) -> Sheet:
    """The module's source in one of its forms."""
    return Sheet(Code(module.get_source(form), LANGUAGES.get(form or module.format, "text")))


def _facts(module: Module) -> list[tuple[Span, ...]]:
    facts: list[tuple[Span, ...]] = []
    if module.description is not None:
        proved = Span("every schedule step", "good") if module.is_proved else Span("not every schedule step", "warn")
        facts.append((Span("proved ", "key"), Span("  "), proved))
    if module.source_forms:
        facts.append((Span("sources", "key"), Span(f"  {', '.join(module.source_forms)}: show(form) shows one")))
    timings = getattr(module, "timings", {})
    if timings:
        stages = [f"{stage} {1e3 * seconds:.1f}" for stage, seconds in timings.items() if seconds >= 5e-5]
        message = f"  in {1e3 * sum(timings.values()):.1f} ms ({', '.join(stages)})"
        facts.append((Span("built  ", "key"), Span(message)))
    if module.imported_modules:
        facts.append((Span("imports", "key"), Span(f"  {', '.join([repr(one) for one in module.imported_modules])}")))
    return facts


def _signature(function: FunctionDescription | None) -> str:
    if function is None:
        return ""
    message = ", ".join([_argument(one) for one in function.arguments])
    return f"{message} → {function.result}" if function.result else message


def _argument(argument: Argument) -> str:
    shape = "" if argument.shape is None else f"[{', '.join(argument.shape)}]"
    return f"{argument.name}: {argument.dtype}{shape}{' (written)' * argument.is_written}"
