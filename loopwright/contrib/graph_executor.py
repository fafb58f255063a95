"""graph_executor: a compiled model with its inputs set one by one.

    model = GraphModule(lib["default"](lw.cpu()))
    model.set_input("data", x)
    model.run()
    y = model.get_output(0)

`set_input` copies; an output is overwritten by the next run. Where neither is wanted, call the model itself: `lib(x)`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import array_of
from loopwright.model.library_model import LibraryModel
from loopwright.runtime.dtype import DataType
from loopwright.runtime.module import Module
from loopwright.runtime.params import load_param_dict
from loopwright.runtime.tensor import array as tensor
from loopwright.runtime.timing import BenchmarkResult, time_evaluator

if TYPE_CHECKING:
    from collections.abc import Sequence


def create(graph_json_str: object, libmod: object, device: object) -> GraphModule:
    """A model by its parts, as `relay.build` handed them out: graph, library, device. A built model needs no graph."""
    return GraphModule(libmod if isinstance(libmod, Module) or hasattr(libmod, "program") else graph_json_str)


class GraphModule:
    """A model, the inputs that it will run with, and the outputs of its last run."""

    def __init__(self, module: object) -> None:
        built: Any = getattr(module, "built", None) or module
        if isinstance(built, Module) and built.description is not None:
            built = LibraryModel(built)
        elif not hasattr(built, "input_names"):
            raise BadModelInput(
                f'GraphModule takes lib["default"](device) of a model that relay.build made, not {module!r:.60}'
            )
        self.module = built
        self._inputs: dict[str, np.ndarray | None] = dict.fromkeys(built.input_names)
        self._outputs: list[np.ndarray] = []
        self._given: dict[int, np.ndarray] = {}
        self._constants: dict[str, np.ndarray] | None = None  # by name, once somebody gives one

    def set_input(self, key: str | int | None = None, value: object = None, **params: object) -> None:
        """Set inputs by name or position, converted to their types; names that the model lacks are passed over."""
        if key is not None:
            name = self._name(key)
            self._inputs[name] = self._copied(name, value)
        for name, one in params.items():
            if name in self._inputs:
                self._inputs[name] = self._copied(name, one)
            else:
                self._check_constant(name, one)

    def _check_constant(self, name: str, value: object) -> None:
        """Weights are compiled into the model: the value it has changes nothing, and another one is refused."""
        if self._constants is None:
            self._constants = self.module.get_params() if hasattr(self.module, "get_params") else {}
        known = self._constants.get(name)
        if known is not None and not np.array_equal(known, _array(value), equal_nan=known.dtype.kind == "f"):
            raise BadModelInput(
                f"{name!r} is a constant of the model, compiled into it; its value cannot be replaced",
                hint="build the model again with the new params, or without them: then they are inputs",
            )

    def _copied(self, name: str, value: object) -> np.ndarray:
        """A copy in the element type of that input: the executor's memory has it, whatever is copied into it."""
        wanted = next(one.dtype for one in self._specs("inputs") if one.name == name)
        return _array(value).astype(DataType(wanted).numpy())

    def set_input_zero_copy(self, key: str | int, value: object = None, **params: object) -> None:
        """The same without a copy: what stands in the array when the model runs is the input."""
        every: list[tuple[str | int, object]] = [(key, value), *params.items()]
        for name, one in every:
            self._inputs[self._name(name)] = _array(one)

    def set_output_zero_copy(self, key: int, value: object) -> None:
        """Have the next runs write output `key` into this array."""
        self._given[int(key)] = _array(value)

    def run(self, **inputs: Any) -> None:
        """Run the model with the inputs that are set, and those given here."""
        if inputs:
            self.set_input(**inputs)
        self._require_inputs()
        values = self.module.arguments((), self._inputs)
        outputs = self.module(*values)
        self._outputs = list(outputs) if isinstance(outputs, list) else [outputs]
        for location, into in self._given.items():
            np.copyto(into, self._outputs[location])
            self._outputs[location] = into

    def _require_inputs(self) -> None:
        missing = [name for name, value in self._inputs.items() if value is None]
        if missing:
            raise BadModelInput(f"input {missing[0]!r} is not set; set_input({missing[0]!r}, array) sets it")

    def get_num_outputs(self) -> int:
        return len(self._specs("outputs"))

    def _specs(self, which: str) -> Sequence[Any]:
        """The inputs or outputs as they are declared."""
        result: Sequence[Any] = getattr(getattr(self.module, "program", self.module), which)
        return result

    def get_num_inputs(self) -> int:
        return len(self._inputs)

    def get_input(self, index: int | str, out: object = None) -> Any:
        """An input as it is set."""
        value = self._inputs[self._name(index)]
        if out is not None and value is not None:
            np.copyto(_array(out), value)
            return out
        return tensor(value) if value is not None else None

    def get_input_index(self, name: str) -> int:
        """The position of an input; -1 where there is none of that name."""
        names = list(self._inputs)
        return names.index(name) if name in names else -1

    def get_input_info(self) -> tuple[dict[str, tuple[object, ...]], dict[str, str]]:
        """Shapes and element types of the inputs by name."""
        values = self._specs("inputs")
        shapes = {value.name: tuple(map(_number, value.shape)) for value in values}
        return shapes, {value.name: str(value.dtype) for value in values}

    def get_input_name(self, index: int) -> str:
        """The name of an input."""
        return list(self._inputs)[index]

    def get_output(self, index: int, out: object = None) -> Any:
        """Output `index` of the last run; copied into `out` if that is given."""
        if not self._outputs:
            raise BadModelInput("there are no outputs yet: run() makes them")
        count = len(self._outputs)
        if not isinstance(index, (int, np.integer)) or not -count <= index < count:
            raise BadModelInput(f"there is no output {index!r}; the model has {count}, from 0 on")
        value = self._outputs[index]
        if out is not None:
            np.copyto(_array(out), value)
            return out
        return tensor(value)

    def debug_get_output(self, node: str | int, out: object = None) -> Any:
        """The value that a launch made, in a run with these inputs; by the name of the launch or its position."""
        self._require_inputs()
        profile = self.module.compiled.profile(*self.module.arguments((), self._inputs))
        names = [row.name for row in profile.rows]
        if node not in names and not (isinstance(node, int) and -len(names) <= node < len(names)):
            raise KeyError(f"no launch is called {node!r}; the model runs {', '.join(names)}")
        launch = profile.rows[node if isinstance(node, int) else names.index(node)].launch
        result, part = launch.written[0], launch.part(len(launch.inputs))
        outputs = dict(zip(self.module.program.outputs, profile.outputs, strict=True))
        value = profile.by_value[result] if result in profile.by_value else outputs[result]
        value = value if part is None else part.of(value)
        if out is not None:
            np.copyto(_array(out), value)
            return out
        return tensor(value)

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Set inputs from what `relay.save_param_dict` wrote."""
        self.set_input(None, None, **load_param_dict(params_bytes))

    def share_params(self, other: GraphModule, params_bytes: bytes | bytearray) -> None:
        """Use the arrays that `other` has for these names."""
        for name in load_param_dict(params_bytes):
            if name in self._inputs:
                self._inputs[name] = other._inputs[name]

    def benchmark(
        self,
        device: object = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **inputs: Any,
    ) -> BenchmarkResult:
        """How long a run takes; with `end_to_end`, setting inputs and taking outputs included."""
        self.run(**inputs)
        arrays = list(self._inputs.values())
        compiled = self.module.compiled
        outputs = [np.empty_like(value) for value in self._outputs]
        timed = time_evaluator(
            compiled,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms or 0,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
        )
        return timed(*arrays, *outputs)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def _name(self, key: str | int) -> str:
        names = list(self._inputs)
        if isinstance(key, int) and -len(names) <= key < len(names):
            return names[key]
        if not isinstance(key, str) or key not in self._inputs:
            has = ", ".join(names) or "none"
            raise BadModelInput(f"could not find {key!r} in the inputs of the model; it has {has}")
        return str(key)


class AotModule(GraphModule):
    """The same surface under the name that the ahead-of-time executor has: every model is compiled ahead of time.

    It refuses names of inputs that the model does not have, and takes them as they are in C, too.
    """

    def set_input(self, key: str | int | None = None, value: object = None, **params: object) -> None:
        """Set inputs by name or position."""
        named = {self._name(name): one for name, one in params.items()}
        super().set_input(None if key is None else self._name(key), value, **named)

    def get_input_index(self, name: str) -> int:
        """The position of an input."""
        return list(self._inputs).index(self._name(name))

    def _name(self, key: str | int) -> str:
        names = list(self._inputs)
        if isinstance(key, str) and key not in self._inputs:
            in_c = {re.sub(r"[^0-9A-Za-z_]", "_", name): name for name in names}
            if key not in in_c:
                raise BadModelInput(f"Invalid input name. {key!r} is no input of the model; it has {', '.join(names)}")
            return in_c[key]
        return super()._name(key)


def _number(size: object) -> object:
    """A size as a number where it is one: of a library it is known as text."""
    return int(size) if isinstance(size, str) and size.isdigit() else size


def _array(value: object) -> np.ndarray:
    """An array that shares its memory: what is written into it is written into the tensor."""
    return array_of(value, "an input", shared=True)


__all__ = ["AotModule", "GraphModule", "create"]
