"""vm: a module of any shapes and control flow, compiled as it is called.

    exe = relay.vm.compile(mod, "llvm", params=params)
    vm = relay.vm.VirtualMachine(exe, lw.cpu())
    y = vm.run(x)                             or vm.set_input("main", x); vm.run()

    code, lib = exe.save()                    the model as bytes: a graph with its weights
    exe = relay.vm.Executable.load_exec(code, lib)

There is no byte code here. Where sizes are numbers or names, the module is one native function. Where the values decide
what runs, it is compiled for the shapes that it is called with, each once; what no function can hold is interpreted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import TensorLike
from loopwright.model.library_model import LibraryModel
from loopwright.relay.build_module import bind_params_by_name, build, require_graph
from loopwright.relay.built import BuiltModule, Params, as_array
from loopwright.relay.errors import CannotCompile
from loopwright.relay.executors import ExecutorOfModule, run_built, tuple_of
from loopwright.relay.expr import Constant, Function
from loopwright.relay.graph_functions import graph_function, graph_functions
from loopwright.relay.infer_type import infer_module
from loopwright.relay.interpreter import RunValue
from loopwright.relay.visitor import post_order
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import read_json
from loopwright.runtime.module import Module
from loopwright.runtime.tensor import NDArray
from loopwright.runtime.tensor import array as tensor
from loopwright.runtime.timing import BenchmarkResult, time_evaluator
from loopwright.target import Target, TargetLike

_MAGIC: Final = b"loopwright vm 1\n"
MEMORY: Final = ("naive", "pooled")


class NotAnExecutable(LoopwrightError, ValueError):
    """`load_exec` was given bytes that `Executable.save` did not write, or that were cut.

    For example:

        from loopwright import relay

        relay.vm.Executable.load_exec(b"some bytes", None)
    """

    code = "LW1228"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="give the bytes of exe.save()[0] as they are")


class Executable:
    """A module that is ready to run: its functions with their weights, and what has been compiled of them.

    `lib` is what `relay.build` made of `main`; None where it is compiled call by call, and `why_not` says why.
    """

    def __init__(self, module: IRModule, target: Target) -> None:
        self.ir_mod = infer_module(module)
        self.target = target
        self.lib: BuiltModule | None = None
        self.why_not: CannotCompile | None = None
        try:
            self.lib = build(module, target)
            self.lib.executable = self
        except CannotCompile as reason:
            self.why_not = reason

    def save(self) -> tuple[bytearray, BuiltModule | None]:
        """The model as bytes, and its library (None where there is none): what `load_exec` takes."""
        from loopwright.ir import save_json

        head = json.dumps({"target": str(self.target)}).encode()
        body = save_json(self.ir_mod).encode()
        return bytearray(_MAGIC + len(head).to_bytes(4, "little") + len(body).to_bytes(8, "little") + head + body), (
            self.lib
        )

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: object = None) -> Executable:
        """What `save` wrote; kernels come from the cache, or are compiled again."""
        from loopwright.ir import load_json

        if not isinstance(bytecode, (bytes, bytearray, memoryview)):
            raise NotAnExecutable(f"a model is bytes, not {type(bytecode).__name__}")
        data = bytes(bytecode)
        start = len(_MAGIC) + 12
        if not data.startswith(_MAGIC) or len(data) < start:
            raise NotAnExecutable("these bytes are no model of relay.vm")
        head = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 4], "little")
        body = int.from_bytes(data[len(_MAGIC) + 4 : start], "little")
        if len(data) != start + head + body:
            raise NotAnExecutable(f"the model has {start + head + body} bytes, and {len(data)} are given")
        try:
            target = Target(read_json(data[start : start + head])["target"])
            text = data[start + head :].decode()
        except (ValueError, KeyError, TypeError) as problem:
            raise NotAnExecutable("the head of the model is damaged") from problem
        return Executable(load_json(text), target)

    @property
    def module(self) -> BuiltModule | None:
        return self.lib

    @property
    def mod(self) -> BuiltModule | None:
        return self.lib

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [var.name for var in self.ir_mod.get_global_vars()]

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the kernels."""
        return [] if self.lib is None else list(self.lib.function_metadata)

    @property
    def constants(self) -> str:
        """The constants in words, one a line."""
        result = dict.fromkeys(
            one
            for function in graph_functions(self.ir_mod).values()
            for one in post_order(function)
            if isinstance(one, Constant)
        )
        return "\n".join(f"constant {k}: {one.checked_type}" for k, one in enumerate(result))

    @property
    def stats(self) -> str:
        """In words: functions, kernels, and whether there is one library."""
        how = "one native function"
        if self.why_not is not None:
            how = f"compiled call by call: {self.why_not.problem}"
        return f"functions: {', '.join(self.globals)}\nkernels: {len(self.primitive_ops)}\nmain: {how}"

    @property
    def bytecode(self) -> str:
        """The functions in the text form: there is no byte code."""
        return str(self.ir_mod)

    def get_function_params(self, func_name: str) -> list[str]:
        """The names of the parameters of a function."""
        return [param.name_hint for param in self._function(func_name).params]

    def export_library(self, path: str, **options: Any) -> str:
        """Write the library of `main`, if there is one; else the reason is raised, and nothing is written."""
        if self.lib is None:
            assert self.why_not is not None
            raise CannotCompile(
                f"the model cannot be written as one library: {self.why_not.problem}",
                hint="exe.save() gives the whole model as bytes, and Executable.load_exec reads them",
            )
        return self.lib.export_library(path, **options)

    def _function(self, name: str) -> Function:
        if name not in self.ir_mod:
            raise KeyError(f"there is no function {name!r}; the model has {', '.join(self.globals)}")
        return graph_function(self.ir_mod, name)


class VMCompiler:
    """The steps of `compile` one by one: `set_params`, `lower`, `get_exec`."""

    def __init__(self) -> None:
        self._params: dict[str, TensorLike | Constant] = {}
        self._made: Executable | None = None

    def set_params(self, params: Params) -> None:
        """Parameters of `main` that become constants, by name."""
        self._params.update(params)

    def get_params(self) -> dict[str, TensorLike | Constant]:
        return dict(self._params)

    def lower(self, mod: IRModule | Function, target: TargetLike | None = None, target_host: object = None) -> None:
        """Compile a module."""
        if isinstance(mod, Function):
            mod = IRModule.from_expr(mod)
        require_graph(mod)
        bound = mod.copy()
        bound["main"] = bind_params_by_name(graph_function(bound), self._params)  # type: ignore[assignment]
        chosen = target if target is not None else Target.current(allow_none=True) or Target("llvm")
        self._made = Executable(bound, Target(chosen))

    def codegen(self) -> None:
        """Nothing is left to do: kernels are compiled by `lower`."""

    def get_exec(self) -> Executable:
        if self._made is None:
            raise RuntimeError("there is no executable yet: lower(mod, target) makes it")
        return self._made

    def optimize(
        self,
        mod: IRModule,
        target: TargetLike | None = None,
        target_host: object = None,
        params: Params | None = None,
    ) -> tuple[IRModule, dict[str, TensorLike | Constant]]:
        """The module after the passes of `relay.build`, and the parameters that are left."""
        from loopwright.relay.build_module import optimize

        return optimize(mod, target, {**self._params, **(params or {})})


def compile(
    mod: IRModule | Function,
    target: TargetLike | None = None,
    target_host: object = None,
    params: Params | None = None,
) -> Executable:
    """A module as an executable; `params` become constants."""
    compiler = VMCompiler()
    compiler.set_params(params or {})
    compiler.lower(mod, target, target_host)
    return compiler.get_exec()


class VirtualMachine:
    """Runs the functions of an executable; results are tensors, lists of them where a function returns tuples."""

    NAIVE_ALLOCATOR, POOLED_ALLOCATOR = 1, 2

    def __init__(
        self, exe: Executable | BuiltModule | Module, device: object = None, memory_cfg: object = None
    ) -> None:
        if isinstance(exe, BuiltModule) and isinstance(exe.executable, Executable):
            exe = exe.executable  # scripts give the library of an executable: exe.mod
        self._library: LibraryModel | None = None
        if isinstance(exe, Module):  # what `exe.export_library` wrote, loaded: main alone
            self._library = LibraryModel(exe)
        elif not isinstance(exe, Executable):
            raise TypeError(f"VirtualMachine takes what relay.vm.compile makes, not {type(exe).__name__}")
        kinds = memory_cfg.values() if isinstance(memory_cfg, Mapping) else [memory_cfg]
        for kind in kinds:
            if kind is not None and kind not in MEMORY:
                raise ValueError(f"memory_cfg is {kind!r}; there are {', '.join(MEMORY)}")
        self.exec: Any = exe  # an Executable, or a library of one
        self.device = device
        if isinstance(exe, Executable):
            self._executor = ExecutorOfModule("vm", exe.ir_mod, device, exe.target, None)
        self._inputs: dict[str, dict[str, object]] = {}
        self._outputs: list[RunValue] = []

    @cached_property
    def module(self) -> Module:
        """The functions by name, for `module["invoke"]("main")` and `module.time_evaluator("invoke", device)("main")`.

        Results are those of the methods of the same names.
        """
        names = "invoke invoke_stateful set_input set_one_input get_input_index get_num_outputs get_output".split()
        return Module({name: getattr(self, name) for name in names}, type_key="VirtualMachine")

    def set_input(self, func_name: str, *args: object, **named: object) -> None:
        """Set the inputs of a function, by position or by name."""
        given = self._given(func_name, args, named)
        self._check(func_name, given)
        self._inputs[func_name] = given

    def set_one_input(self, func_name: str, *args: object, **named: object) -> None:
        """Set one input: `("main", 0, x)`, `("main", "x", x)` or `("main", x=x)`."""
        names = self._params(func_name)
        if args:
            key, value = args
            named = {names[key] if isinstance(key, int) else str(key): value}
        given = self._given(func_name, (), named)
        self._check(func_name, given)
        self._inputs.setdefault(func_name, {}).update(given)

    def run(self, *args: object, **named: object) -> Any:
        """Run `main` on these inputs, or on those that were set."""
        return self.invoke("main", *args, **named)

    def invoke(self, func_name: str, *args: object, **named: object) -> Any:
        """What a function returns for these inputs, or for those that were set."""
        return _tensors(self._call(func_name, args, named))

    def invoke_stateful(self, func_name: str, *args: object, **named: object) -> None:
        """Run a function, and keep what it returns for `get_outputs`."""
        self._outputs = _flat(self._call(func_name, args, named))

    def get_outputs(self) -> list[NDArray]:
        """What the last `invoke_stateful` returned, tuples taken apart."""
        return [tensor(value) for value in self._outputs]

    def get_num_outputs(self) -> int:
        """How many tensors the last `invoke_stateful` returned."""
        return len(self._outputs)

    def get_output(self, index: int) -> NDArray:
        """One of them."""
        return tensor(self._outputs[index])

    def invoke_with_outputs(
        self, func_name: str, input_args: Mapping[str, object] | Iterable[object], output_args: object
    ) -> None:
        """Run a function, and copy what it returns into tensors that are there."""
        named, args = (input_args, ()) if isinstance(input_args, Mapping) else ({}, tuple(input_args))
        result = _flat(self._call(func_name, args, named))
        into = list(output_args) if isinstance(output_args, (list, tuple)) else [output_args]
        if len(into) != len(result):
            raise BadModelInput(f"{func_name} returns {len(result)} tensors, and {len(into)} are given for them")
        for value, location in zip(result, into, strict=True):
            np.copyto(np.asarray(location), np.asarray(value))

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The position of a parameter; -1 where there is none of that name."""
        names = self._params(func_name)
        return names.index(input_name) if input_name in names else -1

    def benchmark(
        self,
        device: object,
        *args: object,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **named: object,
    ) -> BenchmarkResult:
        """How long a call of a function takes; the first call, which may compile, is not counted.

        Arguments go in and results come out in every call, so `end_to_end` changes nothing.
        """
        self._call(func_name, args, named)
        timed = time_evaluator(
            lambda: self._call(func_name, args, named),
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms or 0,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
        )
        return timed()

    def _given(self, func_name: str, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        names = self._params(func_name)
        if len(args) > len(names):
            raise BadModelInput(f"{len(args)} inputs are given, and {func_name} has {len(names)}: {', '.join(names)}")
        unknown = [name for name in named if name not in names]
        if unknown:
            raise BadModelInput(f"{func_name} has no input {unknown[0]!r}", f"its inputs are {', '.join(names)}")
        return {**dict(zip(names, args, strict=False)), **named}

    def _check(self, func_name: str, given: Mapping[str, object]) -> None:
        """Shapes and element types of what is set for `main` as one native function: before it runs."""
        lib = self.exec.lib if isinstance(self.exec, Executable) else None
        if func_name == "main" and lib is not None:
            for wanted in lib.program.inputs:
                if wanted.name in given:
                    as_array(given[wanted.name], wanted)

    def _call(self, func_name: str, args: tuple[object, ...], named: Mapping[str, object]) -> RunValue:
        given = self._given(func_name, args, named) if args or named else self._inputs.get(func_name, {})
        missing = [name for name in self._params(func_name) if name not in given]
        if missing:
            raise BadModelInput(
                f"input {missing[0]!r} of {func_name} is not given",
                f"give it, or set it: vm.set_input({func_name!r}, …)",
            )
        if self._library is not None:
            made: RunValue = self._library(**given)  # type: ignore[arg-type]
            return made
        assert isinstance(self.exec, Executable)
        if func_name == "main" and self.exec.lib is not None:
            return run_built(self.exec.lib, self.exec._function("main"), given)
        result: RunValue = self._executor.evaluate(self.exec._function(func_name))(**given)
        return result

    def _params(self, func_name: str) -> list[str]:
        """The names of the inputs of a function."""
        if isinstance(self.exec, Executable):
            return self.exec.get_function_params(func_name)
        if func_name != "main" or self._library is None:
            raise KeyError(f"there is no function {func_name!r}; a library of a model has main")
        return self._library.input_names


def _tensors(value: RunValue) -> object:
    if isinstance(value, list):
        return tuple_of(value, _tensors)
    return tensor(value) if isinstance(value, np.ndarray) else value


def _flat(value: RunValue) -> list[RunValue]:
    return [tensor for one in value for tensor in _flat(one)] if isinstance(value, list) else [value]


__all__ = ["Executable", "VMCompiler", "VirtualMachine", "compile"]
