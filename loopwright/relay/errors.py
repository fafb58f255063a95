"""The mistakes one can make with graphs: values that are no expressions, types that do not fit, operators unknown."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from loopwright.runtime.errors import DiagnosticError, LoopwrightError, with_article


class NotAName(LoopwrightError, TypeError):
    """The first argument of `relay.var` is no text.

    For example:

        from loopwright import relay

        relay.var((3,))
    """

    code = "LW1260"

    def __init__(self, given: object) -> None:
        shape = given if isinstance(given, (list, tuple)) else (3, 4)
        super().__init__(
            f"relay.var: the name is {with_article(type(given).__name__)}, not a text: {given!r:.80}",
            hint=f'the name comes first: relay.var("x", shape={tuple(shape)!r:.80}, dtype="float32")',
            fields={"given": type(given).__name__},
        )


class NotAnExpression(LoopwrightError, TypeError):
    """Something else was given where a graph needs one of its expressions.

    Numbers and arrays become expressions by `relay.const`.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3,))
        x + 1
    """

    code = "LW1201"

    def __init__(self, given: object, what: str) -> None:
        hint = "relay.const makes an expression of a number or an array"
        if isinstance(given, (list, tuple)):
            hint = "relay.Tuple makes one expression of several"
        super().__init__(
            f"{what} is {with_article(type(given).__name__)}, not an expression: {given!r:.80}",
            hint=hint,
            fields={"given": type(given).__name__},
        )


class NotInferred(LoopwrightError, ValueError):
    """The type of an expression was asked for before it was inferred.

    For example:

        from loopwright import relay

        relay.var("x", shape=(3,)).checked_type
    """

    code = "LW1202"

    def __init__(self, expression: object) -> None:
        super().__init__(
            f"the type of this {type(expression).__name__} has not been inferred: checked_type is found by InferType",
            hint="put it into a module and run it: mod = relay.transform.InferType()(relay.IRModule.from_expr(e))",
        )


class UnknownOperator(LoopwrightError, AttributeError, ValueError):
    """A graph names an operator that is not registered.

    For example:

        from loopwright import relay

        relay.op.get("nn.sotfmax")
    """

    code = "LW1203"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, 3)
        super().__init__(
            f"no operator is called {name!r}",
            hint=f"did you mean {', '.join(near)}?" if near else "relay.op.list_op_names() has them all",
            fields={"name": name},
        )


class BadAttribute(LoopwrightError, TypeError):
    """An operator was given a parameter that it does not have, or lacks one that it needs.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3,))
        relay.nn.softmax(x, axes=1)
    """

    code = "LW1204"

    def __init__(self, name: str, problem: str, names: Sequence[str]) -> None:
        super().__init__(f"{name}: {problem}", hint=f"it takes {', '.join(names) or 'no parameters'}")


class TypeMismatch(DiagnosticError, ValueError, TypeError):
    """The types of a graph do not fit together; the message says which operator is unable to take what it is given.

    Shapes are matched as numpy matches them, element types must be the same: nothing is converted unasked.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3, 4))
        y = relay.var("y", shape=(3, 5))
        relay.transform.InferType()(relay.IRModule.from_expr(x + y))
    """

    code = "LW1205"

    def __init__(self, problem: str, *, at: object = None, why: str | None = None, hint: str | None = None) -> None:
        super().__init__(problem, at=at, why=why, hint=hint)


class CannotCompile(LoopwrightError, ValueError):
    """A graph holds something that one native function cannot: sizes that nobody knows before it runs, cells, closures.

    Sizes that the values decide are no such thing as long as a largest one is known (`argwhere`, `unique`). The
    interpreter (`relay.create_executor("debug")`) runs every graph as it is.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(2,))
        times = relay.var("times", shape=(1,), dtype="int64")
        relay.build(relay.IRModule.from_expr(relay.Function([x, times], relay.tile(x, times))), target="llvm")
    """

    code = "LW1206"

    def __init__(self, problem: str, *, at: object = None, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class NothingMatches(LoopwrightError, ValueError):
    """A value came to a match none of whose patterns it fits: the head of an empty list, for example.

    For example:

        from loopwright import relay

        mod = relay.IRModule()
        prelude = relay.Prelude(mod)
        nil = mod.get_type("List")[2]
        relay.create_executor("debug", mod).evaluate(prelude.hd(nil()))
    """

    code = "LW1229"

    def __init__(self, value: object, patterns: Sequence[object]) -> None:
        super().__init__(
            f"{value!r:.80} fits no pattern of a match: {', '.join(map(repr, patterns))}",
            hint="add a clause with the pattern _, which takes everything",
        )


class NotAGraph(LoopwrightError, ValueError):
    """`relay.build` was given something that is no module with a graph function called main.

    For example:

        from loopwright import relay

        relay.build("model.onnx", target="llvm")
    """

    code = "LW1207"

    def __init__(self, given: object) -> None:
        kind = type(given).__name__
        hint = "give relay.IRModule.from_expr(function)"
        if isinstance(given, str):
            hint = 'a model in a file is read first: lw.compile("model.onnx"), or relay.frontend.from_onnx'
        elif hasattr(given, "functions"):
            kind = "a module without a graph function called main"
        super().__init__(f"relay.build compiles a module with a graph function called main, and not {kind}", hint=hint)


class NameOfSeveral(LoopwrightError, ValueError):
    """A value is given by the name of a parameter, and several parameters have that name.

    For example:

        from loopwright import relay

        one, other = relay.var("a", shape=(1,)), relay.var("a", shape=(1,))
        relay.build_module.bind_params_by_name(relay.Function([one, other], one + other), {"a": [1.0]})
    """

    code = "LW1257"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"several parameters are called {name!r}, so the name does not say which one is meant",
            hint="relay.bind replaces variables by the objects themselves",
        )


class DevicesDisagree(LoopwrightError, ValueError):
    """A value has to be on two devices at once, so there is no plan.

    `on_device(x, device)` says where x is computed; what uses x may be elsewhere. Two of them on the same x, with
    different devices, or a function that is given a value of another device than that of its parameter, disagree.

    For example:

        from loopwright import relay
        from loopwright.target import make_compilation_config

        x = relay.var("x", shape=(3,))
        two = relay.annotation.on_device(x, "cpu:0") + relay.annotation.on_device(x, "cpu:1")
        config = make_compilation_config(relay.transform.PassContext(), "llvm")
        relay.transform.PlanDevices(config)(relay.IRModule.from_expr(relay.Function([x], two)))
    """

    code = "LW1258"

    def __init__(self, expression: object, one: str, other: str) -> None:
        what = type(expression).__name__
        name = getattr(expression, "name_hint", None) or getattr(getattr(expression, "op", None), "name", None)
        super().__init__(
            f"{what}{f' {name}' if name else ''} cannot be on two devices: {one}, and {other}",
            hint="on_device(…, constrain_body=False) around a value allows a copy there",
            fields={"devices": [one, other]},
        )


class NeedsOtherDevice(LoopwrightError, ValueError):
    """A program is to be built that names a device which is no CPU, or a memory that a CPU does not have.

    `PlanDevices` plans for devices of all kinds; what is built here runs on CPUs.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3,))
        relay.build(relay.IRModule.from_expr(relay.Function([x], relay.annotation.on_device(x + x, "cuda"))))
    """

    code = "LW1259"

    def __init__(self, device: str) -> None:
        super().__init__(
            f"the program names {device}, and models are built for CPUs",
            hint="name CPUs in on_device and device_copy, or leave them out",
            fields={"device": device},
        )
