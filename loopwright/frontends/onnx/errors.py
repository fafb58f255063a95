"""What may be wrong with an ONNX model, and with the way it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.runtime.errors import LoopwrightError


class UnreadableModel(LoopwrightError, ValueError):
    """What was given is no ONNX model: not a file, cut off, or something else altogether.

    For example:

        from loopwright.frontends import from_onnx

        from_onnx(b"these bytes are no model")
    """

    code = "LW1301"

    def __init__(self, source: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot read {source} as an ONNX model: {problem}", hint=hint, fields={"source": source})


class BrokenGraph(LoopwrightError, ValueError):
    """The graph of a model contradicts itself: a tensor that nothing makes, one that two nodes make, a cycle.

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) { y = Add(x, weight) }'
        from_onnx(parser.parse_model(text))
    """

    code = "LW1302"

    def __init__(self, problem: str, *, why: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"the graph is broken: {problem}", why=why, hint=hint)


class BadNode(LoopwrightError, ValueError):
    """A node of the model cannot be what it says: its inputs or attributes do not fit its operator.

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, float[4] y) => (float[N] z) { z = Add(x, y) }'
        from_onnx(parser.parse_model(text))
    """

    code = "LW1303"

    def __init__(self, node: str, op: str, problem: str, *, why: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"node {node!r} ({op}): {problem}", why=why, hint=hint, fields={"node": node, "op": op})


class UnknownInput(LoopwrightError, KeyError, AssertionError):
    """A shape, an element type or a value was given for an input that the model does not have.

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
        from_onnx(parser.parse_model(text), shape={"data": (3,)})
    """

    code = "LW1305"

    def __init__(self, what: str, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"{what} is given for {name!r}, which is no input of the model",
            hint=f"its inputs are {', '.join(known) or 'none'}",
            fields={"name": name, "inputs": list(known)},
        )

    __str__ = LoopwrightError.__str__  # KeyError's would quote it


class BadInputShape(LoopwrightError, ValueError, TypeError):
    """The shape that was given for an input contradicts the one that the model declares, or is none.

    Sizes that the model leaves open may be given; its rank and its sizes that are numbers stay (unless it
    declares a scalar).

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }'
        from_onnx(parser.parse_model(text), shape={"x": (3, 5)})
    """

    code = "LW1314"

    def __init__(self, problem: str, hint: str | None = None, **fields: object) -> None:
        super().__init__(problem, hint=hint, fields=fields)


class BadTensor(LoopwrightError, ValueError):
    """A tensor that is stored in the model does not hold what its shape and element type say.

    For example:

        from onnx import TensorProto, helper

        from loopwright.frontends import from_onnx

        w = helper.make_tensor("w", TensorProto.FLOAT, [4], [1, 2, 3, 4])
        del w.float_data[2:]
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
        from_onnx(helper.make_model(helper.make_graph([helper.make_node("Relu", ["w"], ["y"])], "g", [], [y], [w])))
    """

    code = "LW1306"

    def __init__(self, name: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"tensor {name!r}: {problem}", hint=hint, fields={"tensor": name})


class DataOutsideFolder(LoopwrightError, ValueError):
    """The model says that weights are in a file outside its own folder. Such a file is not read.

    A model from somewhere else could have any file of this machine read, and handed out as its weights.

    For example:

        from onnx import TensorProto, helper

        from loopwright.frontends import from_onnx

        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="../secrets.bin")
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
        model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["w"], ["y"])], "g", [], [y], [w]))
        with open("model.onnx", "wb") as file:
            file.write(model.SerializeToString())
        from_onnx("model.onnx")
    """

    code = "LW1307"

    def __init__(self, name: str, location: str) -> None:
        super().__init__(
            f"the data of tensor {name!r} is said to be in {location!r}, which is outside the folder of the model",
            hint="put the file beside the model, and save the model with its plain name as the location",
            fields={"tensor": name, "location": location},
        )


class AbsurdSize(LoopwrightError, ValueError):
    """A size in the model is negative, or a tensor would be larger than any machine's memory.

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[9999, 99999999999] x) => (float[N] y) { y = Relu(x) }'
        from_onnx(parser.parse_model(text))
    """

    code = "LW1308"

    def __init__(self, what: str, shape: Sequence[object], problem: str) -> None:
        text = ", ".join(map(str, shape))
        super().__init__(f"{what} has shape ({text}): {problem}", fields={"shape": [str(size) for size in shape]})


class UnsupportedType(LoopwrightError, TypeError):
    """The model has a tensor of elements that we do not compute with: texts, complex numbers.

    For example:

        from onnx import parser

        from loopwright.frontends import from_onnx

        text = '<ir_version: 8, opset_import: ["" : 17]> g (string[3] x) => (string[3] y) { y = Identity(x) }'
        from_onnx(parser.parse_model(text))
    """

    code = "LW1309"

    def __init__(self, what: str, kind: str, why: str | None = None) -> None:
        super().__init__(f"{what} is of type {kind}, which is not supported", why=why, fields={"type": kind})


class ShapeNeeded(LoopwrightError, ValueError):
    """An input of the model does not say how many dimensions it has, or sizes that are needed; `shape=` has to.

    `lw.compile("model.onnx")` compiles such a model for the shapes of each call.

    For example:

        from onnx import TensorProto, helper

        from loopwright.frontends import from_onnx

        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        from_onnx(helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])))
    """

    code = "LW1310"

    def __init__(self, name: str, problem: str = "does not say how many dimensions it has") -> None:
        super().__init__(
            f"the input {name!r} {problem}",
            hint=f"give its shape: from_onnx(model, shape={{{name!r}: (…)}})",
            fields={"input": name},
        )


class InputMismatch(LoopwrightError, ValueError, TypeError):
    """A compiled model was called with inputs that are not those of the model.

    For example:

        from onnx import parser

        from loopwright.frontends.onnx import CompiledModel

        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) { y = Relu(x) }'
        CompiledModel(parser.parse_model(text))([1.0, 2.0])
    """

    code = "LW1311"

    def __init__(self, problem: str, *, hint: str | None = None, fields: Mapping[str, object] | None = None) -> None:
        super().__init__(problem, hint=hint, fields=fields)
