"""What can be wrong with a model whichever front end reads it."""

from __future__ import annotations

from collections.abc import Sequence

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


class ValueNeeded(LoopwrightError, ValueError):
    """The graph cannot be made without the elements of a tensor, and they are known only when the model runs.

    Axes, shapes, counts and pads are inputs in ONNX. Where they are computed from constants and from the shapes of
    other tensors they are known when the model is imported; where they come from an input of the model, most operators
    find them when the model runs. A few cannot, such as a transform that halves whichever axis an input names. Then the
    value can be given: `from_onnx(model, values={"axis": 1})`. `lw.compile("model.onnx")` does that by itself, at the
    first call and again for other values.

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        graph = "g (float[1, 4, 6, 1] x, int64 k) => (float[1, A, B, 2] y) { y = DFT <onesided = 1> (x, , k) }"
        from_onnx(parser.parse_model('<ir_version: 9, opset_import: ["" : 20]> ' + graph))
    """

    code = "LW1304"

    def __init__(self, node: str, op: str, tensor: str, sources: Sequence[str]) -> None:
        listed = ", ".join(map(repr, sources))
        super().__init__(
            f"node {node!r} ({op}) needs the value of {tensor!r}, which is known only when the model runs",
            why=f"it depends on the model's input{'s' if len(sources) > 1 else ''} {listed}" if sources else None,
            hint=f"give the value: from_onnx(model, values={{{sources[0]!r}: …}})" if sources else None,
            fields={"node": node, "op": op, "tensor": tensor, "sources": list(sources)},
        )
        self.sources = tuple(sources)


class BadModelName(LoopwrightError, TypeError):
    """The native function of a model has a name, which is a text that is not empty.

    For example:

        import loopwright

        loopwright.compile("model.onnx", name="")
    """

    code = "LW1313"

    def __init__(self, name: object) -> None:
        super().__init__(f"{name!r} cannot name a model", hint='give a text, such as name="digits", or leave name out')


class NotOneLibrary(LoopwrightError, ValueError):
    """The one native function of a model was asked for, and there is none: the model is compiled call by call.

    That is so where the values of inputs decide the graph (a shape that comes in as an input), or where it holds
    something that one function cannot (a loop whose value grows).

    For example:

        from onnx import parser

        import loopwright

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[6] x, int64[2] s) => (float[a, b] y)'
        loopwright.compile(parser.parse_model(text + "{ y = Reshape(x, s) }")).library
    """

    code = "LW1312"

    def __init__(self, names: Sequence[str], why_not: LoopwrightError | None = None) -> None:
        text = f"it is made for the values of {', '.join(map(repr, names))}" if names else "it is compiled call by call"
        hint = "relay.vm.compile(mod).save() gives a graph with its weights as bytes"
        super().__init__(
            f"the model is not one native function: {text}",
            why=why_not.problem if why_not is not None else None,
            hint=f"say what they are: from_onnx(model, values={{{names[0]!r}: …}})" if names else hint,
        )


class NoDatabase(LoopwrightError, TypeError):
    """`lw.compile` was given a database that is none: not a path, a URL or an open database of `lw.tune`.

    For example:

        import loopwright
        from loopwright import relay

        x = relay.var("x", shape=(4,))
        loopwright.compile(loopwright.IRModule.from_expr(relay.Function([x], x + x)), database=5)
    """

    code = "LW1315"

    def __init__(self, given: object) -> None:
        said = " ".join(repr(given).split())[:80]
        wanted = "a path, a URL or an open database"
        super().__init__(f"the database {said} is not {wanted}", hint=f"give {wanted}")
