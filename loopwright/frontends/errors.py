"""What is wrong with a model before any front end has looked at it."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError, with_article


class UnknownModel(LoopwrightError, TypeError):
    """`lw.compile` was given something that is no model.

    For example:

        import loopwright

        loopwright.compile(42)
    """

    code = "LW1300"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"cannot compile {with_article(type(given).__name__)}: it is no model",
            hint="give the path of an ONNX file, a torch module with example inputs, or a relay module; "
            "a program of your own is built with loopwright.build",
            fields={"given": type(given).__name__},
        )
