"""Diagnostics: what is wrong with a text, and where, for programs that show errors in their own way.

    override_renderer(lambda context: show(context.diagnostics))

Errors raise a `DiagnosticError` all the same; before that, the renderer gets a context that holds the diagnostic.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from loopwright.runtime.errors import DiagnosticError, LoopwrightError, SourceLine


class DiagnosticLevel(IntEnum):
    """How bad it is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic(NamedTuple):
    """One problem; `span` is where it stands in the source."""

    level: DiagnosticLevel
    span: SourceLine | None
    message: str


class ReportedProblem(DiagnosticError):
    """A problem that a `DiagnosticContext` was told of, raised when it renders.

    For example:

        from loopwright.ir.diagnostics import Diagnostic, DiagnosticContext, DiagnosticLevel

        context = DiagnosticContext()
        context.emit(Diagnostic(DiagnosticLevel.ERROR, None, "there is no such operator"))
        context.render()
    """

    code = "LW0598"


class DiagnosticContext:
    """The problems of one text."""

    def __init__(self, module: Any = None, renderer: Callable[[DiagnosticContext], None] | None = None) -> None:
        self.module = module
        self.renderer = renderer
        self.diagnostics: list[Diagnostic] = []

    def emit(self, diagnostic: Diagnostic) -> None:
        """Keep a problem."""
        self.diagnostics.append(diagnostic)

    def render(self) -> None:
        """Hand the problems to the renderer; an error among them is raised."""
        renderer = self.renderer or get_renderer()
        if renderer is not None:
            renderer(self)
        errors = [one for one in self.diagnostics if one.level <= DiagnosticLevel.ERROR]
        if errors:
            raise ReportedProblem(errors[0].message, at=errors[0].span)


_renderers: Final[list[Callable[[DiagnosticContext], None]]] = []  # none, or the one that the user chose


def override_renderer(render_func: Callable[[DiagnosticContext], None] | None) -> None:
    """Have `render_func` called with the context of every diagnostic; None goes back to no renderer."""
    _renderers[:] = [] if render_func is None else [render_func]


def get_renderer() -> Callable[[DiagnosticContext], None] | None:
    """The renderer that the user chose."""
    return _renderers[0] if _renderers else None


def report(error: LoopwrightError) -> None:
    """Show `error`, which is about to be raised, to the renderer that the user chose."""
    renderer = get_renderer()
    if renderer is not None:
        context = DiagnosticContext()
        span = error.at if isinstance(error.at, SourceLine) else None
        context.emit(Diagnostic(DiagnosticLevel.ERROR, span, error.problem))
        renderer(context)
