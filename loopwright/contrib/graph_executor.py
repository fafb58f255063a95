"""graph_executor: a compiled model with its inputs set one by one.

    model = GraphModule(lib["default"](lw.cpu()))
    model.set_input("data", x)
    model.run()
    y = model.get_output(0)

`set_input` copies; an output is overwritten by the next run. Where neither is wanted, call the model itself: `lib(x)`.
What `lib["default"](device)` gives has the same functions by name, on the same inputs and outputs: `executor["run"]()`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.contrib.graph_of_functions import GraphOfFunctions
from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import array_of
from loopwright.model.library_model import LibraryModel
from loopwright.runtime.dtype import DataType
from loopwright.runtime.module import Module
from loopwright.runtime.params import load_param_dict
from loopwright.runtime.tensor import array as tensor
from loopwright.runtime.tensor import from_numpy
from loopwright.runtime.timing import BenchmarkResult, time_evaluator

if TYPE_CHECKING:
    from collections.abc import Sequence


def create(graph_json_str: object, libmod: object, device: object) -> GraphModule:
    """A model by its parts, as `relay.build` handed them out: graph, library, device. A built model needs no graph.

    With any other library, the graph says which of its functions run on what.
    """
    is_model = hasattr(libmod, "program") or getattr(getattr(libmod, "description", None), "is_model", False)
    if isinstance(libmod, Module) and isinstance(graph_json_str, str) and not is_model:
        return GraphModule(GraphOfFunctions(graph_json_str, libmod))
    return GraphModule(libmod if isinstance(libmod, Module) or hasattr(libmod, "program") else graph_json_str)


@dataclass
class _State:
    """What a model will run with, and what it last gave; `GraphModule`s of one executor share it."""

    inputs: dict[str, np.ndarray | None]
    owned: dict[str, np.ndarray] = field(default_factory=dict)  # copies that `set_input` made, written again by it
    outputs: list[np.ndarray] = field(default_factory=list)
    given: dict[int, np.ndarray] = field(default_factory=dict)  # where outputs go, by position
    constants: dict[str, np.ndarray] | None = None  # by name, once somebody gives one


class ExecutorModule(Module):
    """The functions of a `GraphModule` by name: what `lib["default"](device)` gives."""

    def __init__(self, executor: GraphModule, type_key: str, names: Sequence[str]) -> None:
        super().__init__({name: getattr(executor, name) for name in names}, type_key=type_key)
        self.executor = executor

    def time_evaluator(self, func_name: str | None = None, dev: object = None, **options: Any) -> Any:
        """The same; of `run`, it times the compiled function alone, with inputs that are not set as zeros."""
        if func_name != "run":
            return super().time_evaluator(func_name, dev, **options)
        return lambda: self.executor._time(options)


class GraphModule:
    """A model, the inputs that it will run with, and the outputs of its last run."""

    type_key = "GraphExecutor"
    # What `module` has by name.
    functions: tuple[str, ...] = (
        "run", "set_input", "set_input_zero_copy", "set_output_zero_copy", "get_output", "get_input", "get_num_outputs",
        "get_num_inputs", "get_input_index", "get_input_name", "get_input_info", "load_params", "share_params",
        "debug_get_output",
    )  # fmt: skip

    def __init__(self, module: object) -> None:
        if isinstance(module, ExecutorModule):
            self._model: Any = module.executor._model
            self._state: _State = module.executor._state
            self.module: ExecutorModule = module
            return
        built: Any = getattr(module, "built", None) or module
        if isinstance(built, Module) and built.description is not None:
            built = LibraryModel(built)
        elif not hasattr(built, "input_names"):
            raise BadModelInput(
                f'GraphModule takes lib["default"](device) of a model that relay.build made, not {module!r:.60}'
            )
        self._model = built
        self._state = _State(dict.fromkeys(built.input_names))
        self.module = ExecutorModule(self, self.type_key, self.functions)

    @property
    def _inputs(self) -> dict[str, np.ndarray | None]:
        return self._state.inputs

    def set_input(self, key: str | int | None = None, value: object = None, **params: object) -> None:
        """Set inputs by name or position, converted to their types; names that the model lacks are passed over."""
        if key is not None:
            self._copy_in(self._name(key), value)
        for name, one in params.items():
            if name in self._inputs:
                self._copy_in(name, one)
            else:
                self._check_constant(name, one)

    def _check_constant(self, name: str, value: object) -> None:
        """Weights are compiled into the model: the value it has changes nothing, and another one is refused."""
        if self._state.constants is None:
            self._state.constants = self._model.get_params() if hasattr(self._model, "get_params") else {}
        known = self._state.constants.get(name)
        if known is not None and not np.array_equal(known, _array(value), equal_nan=known.dtype.kind == "f"):
            raise BadModelInput(
                f"{name!r} is a constant of the model, compiled into it; its value cannot be replaced",
                hint="build the model again with the new params, or without them: then they are inputs",
            )

    def _copy_in(self, name: str, value: object) -> None:
        """Copy into the executor's memory, which has the element type of that input, whatever is copied into it."""
        wanted = self._spec(name)
        array = _array(value, name)
        _require_shape(f"input {name!r}", array, wanted.shape)
        kind = DataType(wanted.dtype).numpy()
        if array.dtype.kind == "c":
            _require_dtype(f"input {name!r}", array, kind)
        held = self._state.owned.get(name)
        if held is None or held.shape != array.shape:
            held = self._state.owned[name] = np.empty(array.shape, kind)
        np.copyto(held, array, casting="unsafe")
        self._inputs[name] = held

    def set_input_zero_copy(self, key: str | int, value: object = None, **params: object) -> None:
        """The same without a copy: what stands in the array when the model runs is the input."""
        every: list[tuple[str | int, object]] = [(key, value), *params.items()]
        for one, given in every:
            name = self._name(one)
            wanted, array = self._spec(name), _array(given, name)
            _require_shape(f"input {name!r}", array, wanted.shape)
            _require_dtype(f"input {name!r}", array, DataType(wanted.dtype).numpy())
            self._inputs[name] = array

    def set_output_zero_copy(self, key: int, value: object) -> None:
        """Have the next runs write output `key` into this array."""
        wanted, array = self._specs("outputs")[key], _array(value)
        _require_shape(f"output {key}", array, wanted.shape)
        _require_dtype(f"output {key}", array, DataType(wanted.dtype).numpy())
        self._state.given[int(key)] = array

    def run(self, **inputs: Any) -> None:
        """Run the model with the inputs that are set, and those given here."""
        if inputs:
            self.set_input(**inputs)
        self._require_inputs()
        values = self._model.arguments((), self._inputs)
        result = self._model(*values)
        outputs = self._state.outputs = list(result) if isinstance(result, list) else [result]
        for location, into in self._state.given.items():
            outputs[location] = _copy_out(outputs[location], into)

    def _require_inputs(self) -> None:
        missing = [name for name, value in self._inputs.items() if value is None]
        if missing:
            raise BadModelInput(f"input {missing[0]!r} is not set; set_input({missing[0]!r}, array) sets it")

    def get_num_outputs(self) -> int:
        return len(self._specs("outputs"))

    def _specs(self, which: str) -> Sequence[Any]:
        """The inputs or outputs as they are declared."""
        result: Sequence[Any] = getattr(getattr(self._model, "program", self._model), which)
        return result

    def _spec(self, name: str) -> Any:
        return next(one for one in self._specs("inputs") if one.name == name)

    def get_num_inputs(self) -> int:
        return len(self._inputs)

    def get_input(self, index: int | str, out: object = None) -> Any:
        """An input, in the executor's memory: what is copied into it is what the next run reads.

        One that was never set is made of zeros; None where its size is not known yet.
        """
        name = self._name(index)
        value = self._inputs[name]
        if value is None:
            value = self._zeros(name)
            if value is None:
                return None
            self._inputs[name] = self._state.owned[name] = value
        if out is not None:
            _copy_out(value, _array(out))
            return out
        return from_numpy(value) if value.flags.writeable else tensor(value)

    def _zeros(self, name: str) -> np.ndarray | None:
        wanted = self._spec(name)
        shape: list[Any] = [_number(size) for size in wanted.shape]
        return np.zeros(shape, DataType(wanted.dtype).numpy()) if all([isinstance(n, int) for n in shape]) else None

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
        if not self._state.outputs:
            raise BadModelInput("there are no outputs yet: run() makes them")
        count = len(self._state.outputs)
        if not isinstance(index, (int, np.integer)) or not -count <= index < count:
            raise BadModelInput(f"there is no output {index!r}; the model has {count}, from 0 on")
        value = self._state.outputs[index]
        if out is not None:
            _copy_out(value, _array(out))
            return out
        return tensor(value)

    def debug_get_output(self, node: str | int, out: object = None) -> Any:
        """The value that a launch made, in a run with these inputs; by the name of the launch or its position."""
        self._require_inputs()
        profile = self._model.compiled.profile(*self._model.arguments((), self._inputs))
        names = [row.name for row in profile.rows]
        if node not in names and not (isinstance(node, int) and -len(names) <= node < len(names)):
            raise KeyError(f"no launch is called {node!r}; the model runs {', '.join(names)}")
        value = self._written(profile, node if isinstance(node, int) else names.index(node))[0]
        if out is not None:
            _copy_out(value, _array(out))
            return out
        return tensor(value)

    def _written(self, profile: Any, row: int) -> list[np.ndarray]:
        """What a launch wrote, in a run that was profiled."""
        launch = profile.rows[row].launch
        arrays = {**dict(zip(self._model.program.outputs, profile.outputs, strict=True)), **profile.by_value}
        result = []
        for number, value in enumerate(launch.written):
            array, part = arrays[value], launch.part(len(launch.inputs) + number)
            result.append(array if part is None else part.of(array))
        return result

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
        """How long a run takes; with `end_to_end`, setting inputs and taking outputs included.

        Inputs that are not set, and not given here, are zeros.
        """
        self.set_input(**inputs)
        options = {
            "number": number,
            "repeat": repeat,
            "min_repeat_ms": min_repeat_ms or 0,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
        }
        return self._time(options, end_to_end)

    def _time(self, options: Mapping[str, Any], end_to_end: bool = False) -> BenchmarkResult:
        for name, value in self._inputs.items():
            if value is None:
                self.get_input(name)
        self.run()
        if not end_to_end:
            arguments = [*self._inputs.values(), *[np.empty_like(value) for value in self._state.outputs]]
            return time_evaluator(self._model.compiled, **options)(*arguments)
        given = {name: value.copy() for name, value in self._inputs.items() if value is not None}

        def whole() -> None:
            self.run(**given)
            for location in range(len(self._state.outputs)):
                self.get_output(location)

        return time_evaluator(whole, **options)()

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


def _array(value: object, name: str | None = None) -> np.ndarray:
    """An array that shares its memory: what is written into it is written into the tensor."""
    return array_of(value, "an input" if name is None else f"input {name!r}", shared=True)


def _require_shape(what: str, array: np.ndarray, shape: Sequence[object]) -> None:
    """Sizes that are not known before a run are compared by it."""
    wanted = [_number(size) for size in shape]
    fits = array.ndim == len(wanted) and all(
        [not isinstance(size, int) or size == given for size, given in zip(wanted, array.shape, strict=True)]
    )
    if not fits:
        raise BadModelInput(f"{what} has shape {array.shape}, expected ({', '.join(map(str, wanted))})")


def _require_dtype(what: str, array: np.ndarray, wanted: np.dtype[Any]) -> None:
    if array.dtype != wanted:
        raise BadModelInput(
            f"{what} has dtype {array.dtype}, expected {wanted}", f"convert it: x.astype({str(wanted)!r})"
        )


def _copy_out(value: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Without broadcasting: a smaller array is a mistake."""
    _require_shape("the array for an output", into, value.shape)
    np.copyto(into, value)
    return into
