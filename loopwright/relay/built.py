"""BuiltModule: what `relay.build` returns: a model that runs, is saved, and shows what it is made of.

lib(x, y)                        run it: the output, or a list of them
lib["default"](lw.cpu())         what graph_executor.GraphModule takes
lib.export_library("model.so")   a library, an archive, an object
print(lib.plan)                  the memory it needs, beside the least that any plan would
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.model.direct_call import DirectCall, ElementType, Empty, direct_call, in_order, no_direct_call
from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import TensorLike, array_of
from loopwright.model.kernel_table import KernelRow
from loopwright.model.model import NativeModel
from loopwright.model.plan import Plan
from loopwright.model.program import Launch, Program, Value, View, walk
from loopwright.relay.backend.options import Executor
from loopwright.relay.expr import Constant
from loopwright.relay.found_sizes import FoundSizes
from loopwright.runtime.dtype import DataType
from loopwright.runtime.upper_layers import from_upper_layer
from loopwright.target import Target

if TYPE_CHECKING:  # loaded when a model is profiled
    from loopwright.model.profile import Profile

Params: TypeAlias = Mapping[str, TensorLike | Constant]  # the parameters of a model, by name


class BuiltModule:
    """A compiled model and everything about it."""

    executable: object = None  # of the virtual machine, whose library it is

    def __init__(
        self,
        ir_mod: IRModule,
        program: Program,
        compiled: NativeModel,
        parameter_names: Sequence[str],
        mod_name: str,
        executor: Executor | None,
        params: Params,
        external: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.ir_mod = ir_mod
        self.program = program
        self.compiled = compiled
        compiled.built = self  # graph_executor.create(graph, lib, device) is given the library alone
        self.libmod_name = mod_name
        self.executor = executor
        self.input_names = [value.name for value in program.inputs]
        self.parameter_names = list(parameter_names)
        self._params = dict(params)
        self._external = dict(external or {})  # constants of parts that other compilers took over
        self._found = FoundSizes(program)
        self.direct_call = self.direct_call_with()

    # Running it.

    def __call__(self, *args: TensorLike, **named: TensorLike) -> Any:
        """The output for these inputs, by position or by name; a list where there are several."""
        ordered = in_order(self.input_names, args, named) if named else args
        if ordered is not None:
            direct = self.direct_call(*ordered)
            if direct is not None:
                return direct
        given = zip(self.arguments(args, named), self.program.inputs, strict=True)
        outputs = self.run([as_array(value, spec) for value, spec in given])
        return outputs[0] if len(outputs) == 1 else outputs

    def direct_call_with(self, empty: Empty = np.empty, element_type: ElementType = DataType.numpy) -> DirectCall:
        """The call for arrays that are just what the model takes; outputs are made by `empty`, in its own types."""
        if empty is not np.empty:
            taken = not self._found
            return direct_call(self.program, self.compiled.function, empty, element_type) if taken else no_direct_call
        call = self.compiled.direct_call
        if not self._found:
            return call

        def cut(*arrays: Any) -> Any:
            outputs = call(*arrays)  # several: those that hold the sizes are among them
            results = None if outputs is None else self._found.cut(outputs, arrays)
            return results[0] if results is not None and len(results) == 1 else results

        return cut

    def __tvm_ffi_object__(self) -> Any:
        return self.compiled.__tvm_ffi_object__()

    def arguments(self, args: Sequence[TensorLike], named: Mapping[str, TensorLike]) -> list[TensorLike]:
        names = self.input_names
        if len(args) > len(names):
            raise BadModelInput(f"{len(args)} inputs are given, and the model has {len(names)}: {', '.join(names)}")
        unknown = [name for name in named if name not in names]
        if unknown:
            raise BadModelInput(
                f"the model has no input {unknown[0]!r}", f"its inputs are {', '.join(names) or 'none'}"
            )
        given = dict(zip(names, args, strict=False))
        twice = [name for name in named if name in given]
        if twice:
            raise BadModelInput(f"input {twice[0]!r} is given twice, by position and by name")
        given.update(named)
        missing = [name for name in names if name not in given]
        if missing:
            raise BadModelInput(f"input {missing[0]!r} is not given", f"its inputs are {', '.join(names)}")
        return [given[name] for name in names]

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs, in new arrays."""
        return self.cut(self.compiled.run(*arrays), arrays)

    def cut(self, outputs: list[np.ndarray], arrays: Sequence[Any]) -> list[np.ndarray]:
        """What the native function gave for these inputs, as the model has it: in the sizes that the run decided."""
        return self._found.cut(outputs, arrays) if self._found else outputs

    def profile(self, *args: TensorLike, repeat: int = 5, **named: TensorLike) -> Profile:
        """What each layer takes for these inputs, how near the roofline it is, and why not nearer; printed, a table."""
        given = zip(self.arguments(args, named), self.program.inputs, strict=True)
        return self.compiled.profile(*[as_array(value, spec) for value, spec in given], repeat=repeat)

    # What it is made of.

    @property
    def plan(self) -> Plan:
        """Where values are while the model runs; printed, the memory it needs beside the least possible."""
        return self.compiled.plan

    @property
    def kernels(self) -> list[KernelRow]:
        """What is known of each kernel."""
        return self.compiled.kernels

    @property
    def timings(self) -> Mapping[str, float]:
        """How long each stage of compiling took, in seconds."""
        return self.compiled.timings

    @property
    def module(self) -> NativeModel:
        return self.compiled

    def get_lib(self) -> NativeModel:
        return self.compiled

    @property
    def lib(self) -> NativeModel:
        return self.compiled

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self.compiled.target

    @property
    def function_metadata(self) -> dict[str, Launch]:
        """The launches of the model by the names of their kernels."""
        return {launch.func.name: launch for launch in self.program.launches()}

    def get_params(self) -> dict[str, np.ndarray]:
        """The constants of the model, as `p0`, `p1`, …; none where the executor has the option `link-params`."""
        if self.executor is not None and self.executor.attrs.get("link-params"):
            return {}
        return {f"p{k}": np.asarray(array) for k, array in enumerate(self.program.constants.values())} | self._external

    @property
    def params(self) -> dict[str, np.ndarray]:
        return self.get_params()

    def get_graph_json(self) -> str:
        """The launches as a graph in JSON: nodes, what they read, shapes, types."""
        return json.dumps(graph_json(self.program), indent=2)

    graph_json = property(get_graph_json)

    def export_library(self, path: str, fcompile: object = None, addons: object = None, **options: Any) -> str:
        """Write a library (.so), an archive (.tar), an object (.o) or a C header, by the ending of the name."""
        return self.compiled.export_library(path, fcompile=fcompile, addons=addons, **options)

    def save(self, path: str) -> str:
        return self.export_library(path)

    # What `graph_executor` asks for.

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name == "remove_params":
            return lambda: self  # they are in the library, and nowhere else
        if name in (self.libmod_name, "default"):
            return lambda *devices: from_upper_layer("executor")(self).module
        if name == "debug_create":
            return lambda name, *devices: from_upper_layer("debug executor")(self).module
        if name == "get_graph_json":
            return self.get_graph_json
        raise KeyError(f"a built model has {self.libmod_name!r} and 'debug_create', not {name!r}")

    def __iter__(self) -> Iterator[object]:
        warnings.warn(
            "a built model is one object now: use it instead of (graph, lib, params)", DeprecationWarning, stacklevel=2
        )
        return iter((self.get_graph_json(), self.compiled, self.get_params()))


def as_array(value: object, wanted: Value) -> np.ndarray:
    """An input as the array the model takes: its type must be right; a layout that is not row-major is copied."""
    array = array_of(value, f"input {wanted.name!r}")
    kind = wanted.dtype.numpy()
    if array.dtype != kind:
        python_number = not isinstance(value, np.ndarray) and not hasattr(value, "numpy")
        if not python_number:
            raise BadModelInput(
                f"input {wanted.name!r} has dtype {array.dtype}, expected {wanted.dtype}",
                f"convert it: x.astype({str(kind)!r})",
            )
        array = array.astype(kind)
    if array.ndim != len(wanted.shape):
        raise BadModelInput(
            f"input {wanted.name!r} has {array.ndim} dimensions {array.shape}, expected "
            f"{len(wanted.shape)}: ({', '.join(map(str, wanted.shape))})"
        )
    for index, (given, size) in enumerate(zip(array.shape, wanted.shape, strict=True)):
        if isinstance(size, int) and given != size:
            raise BadModelInput(
                f"input {wanted.name!r} has shape {array.shape}, expected "
                f"({', '.join(map(str, wanted.shape))}): dimension {index} is {given}, not {size}"
            )
    return np.ascontiguousarray(array).reshape(array.shape)


def graph_json(program: Program) -> dict[str, object]:
    """The program as nodes: inputs and constants first, then launches; views share the storage of what they view."""
    nodes: list[dict[str, object]] = []
    entry: dict[Value, tuple[int, int]] = {}
    shapes: list[list[int | str]] = []
    kinds: list[str] = []

    def add(node: dict[str, object], values: Sequence[Value]) -> None:
        nodes.append(node)
        for index, value in enumerate(values):
            entry[value] = (len(nodes) - 1, index)
            shapes.append([size if isinstance(size, int) else str(size) for size in value.shape])
            kinds.append(str(value.dtype))

    constants = {value: f"p{k}" for k, value in enumerate(program.constants)}
    for value in (*program.inputs, *program.constants):
        add({"op": "null", "name": constants.get(value, value.name), "inputs": []}, [value])
    first = len(nodes)
    row = list(range(first + 1))
    for step in walk(program.body):
        if isinstance(step, Launch):
            attrs = {
                "func_name": step.func.name,
                "num_inputs": str(len(step.inputs)),
                "num_outputs": str(step.outputs),
                "flatten_data": "0",
            }
            inputs = [[*entry[value], 0] for value in step.inputs if value in entry]
            add({"op": "tvm_op", "name": step.name or step.func.name, "attrs": attrs, "inputs": inputs}, step.written)
        elif isinstance(step, View) and step.of in entry:
            attrs = {"func_name": "__nop", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}
            add({"op": "tvm_op", "name": "reshape", "attrs": attrs, "inputs": [[*entry[step.of], 0]]}, [step.value])
        else:
            continue
        row.append(len(shapes))
    return {
        "nodes": nodes,
        "arg_nodes": list(range(first)),
        "heads": [[*entry[value], 0] for value in program.outputs if value in entry],
        "attrs": {"shape": ["list_shape", shapes], "dltype": ["list_str", kinds]},
        "node_row_ptr": row,
    }
