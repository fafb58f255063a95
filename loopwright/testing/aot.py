"""testing.aot: models compiled ahead of time, run from a C program of their own, and held against reference outputs.

    model = AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs, params), params=params)
    compile_and_run(model, AOTTestRunner(), "c", use_unpacked_api=True)

The program calls the model by its C function, with the inputs written into it, and compares every element.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.relay.built import BuiltModule
from loopwright.runtime.dtype import DataType
from loopwright.runtime.link import create_executable

_C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double"}


class AOTTestModel(NamedTuple):
    """A model, what goes in, and what has to come out; integers exactly, others within the tolerance."""

    module: IRModule
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    output_tolerance: float | Mapping[str, float] | None = None
    name: str = "default"
    params: Mapping[str, np.ndarray] | None = None
    extra_memory_in_bytes: int = 0


class AOTTestRunner(NamedTuple):
    """How the program is made: what stands before and after the calls, and how the compiler is called."""

    makefile: str = "default"
    prologue: str = ""
    epilogue: str = ""
    includes: Sequence[str] = ()
    parameters: Mapping[str, str] = {}
    pass_config: Mapping[str, Any] = {}


@dataclass
class AOTCompiledTestModel:
    """A model and what `relay.build` made of it."""

    model: AOTTestModel
    executor_factory: BuiltModule
    attrs: dict[str, object] = field(default_factory=dict)


def generate_ref_data(
    mod: IRModule | relay.Function,
    input_data: Mapping[str, np.ndarray],
    params: Mapping[str, np.ndarray] | None = None,
    target: str = "llvm",
) -> dict[str, np.ndarray]:
    """The outputs of a model, by name, from an executor of this process."""
    module = mod if isinstance(mod, IRModule) else relay.IRModule.from_expr(mod)
    main: Any = module["main"]
    result = relay.create_executor("graph", mod=module, target=target, params=params or {}).evaluate()(**input_data)
    arrays = _flat(result)
    names = main.attrs.get("output_tensor_names")
    if names is None:
        names = ["output"] if len(arrays) == 1 else [f"output{k}" for k in range(len(arrays))]
    return dict(zip(map(str, names), arrays, strict=True))


def _flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [array for one in value for array in _flat(one)]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]


def compile_models(
    models: AOTTestModel | Sequence[AOTTestModel],
    interface_api: str = "packed",
    use_unpacked_api: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    enable_op_fusion: bool = True,
    pass_config: Mapping[str, Any] | None = None,
    use_runtime_executor: bool = True,
    target: object = "llvm",
    workspace_memory_pools: object = None,
    constant_memory_pools: object = None,
    schedule_name: str | None = None,
    runtime: object = None,
) -> list[AOTCompiledTestModel]:
    """The models built; an interface is an option that our libraries need not be told: they have both."""
    options = {"interface-api": interface_api, "unpacked-api": use_unpacked_api}
    executor = relay.backend.Executor("aot", options)
    config = {"tir.disable_vectorize": True, **dict(pass_config or {})}
    disabled = [] if enable_op_fusion else ["FuseOps"]
    result = []
    for model in [models] if isinstance(models, AOTTestModel) else models:
        with PassContext(opt_level=3, config=config, disabled_pass=disabled):
            built = relay.build(
                model.module,
                target if target is not None else "llvm",
                executor=executor,
                runtime=runtime,
                params=model.params,
                mod_name=model.name,
            )
        result.append(AOTCompiledTestModel(model, built))
    return result


def compile_and_run(
    models: AOTTestModel | Sequence[AOTTestModel],
    runner: AOTTestRunner,
    interface_api: str = "packed",
    use_unpacked_api: bool = False,
    debug_calculated_workspaces: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    enable_op_fusion: bool = True,
    data_linkage: object = None,
    use_runtime_executor: bool = True,
    target: object = "llvm",
    target_opts: object = None,
    test_dir: str | None = None,
    verbose: bool = False,
    schedule_name: str | None = None,
    debug_last_error: bool = False,
    checkpoint: object = None,
) -> bool:
    """Build models, run each in a C program, and compare: an error says which output differs, and where."""
    compiled = compile_models(
        models,
        interface_api,
        use_unpacked_api,
        enable_op_fusion=enable_op_fusion,
        pass_config=runner.pass_config,
        target=target,
    )
    return run_and_check(compiled, runner, interface_api, test_dir=test_dir)


def run_and_check(
    models: AOTCompiledTestModel | Sequence[AOTCompiledTestModel],
    runner: AOTTestRunner,
    interface_api: str = "packed",
    debug_calculated_workspaces: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    data_linkage: object = None,
    test_dir: str | None = None,
    verbose: bool = False,
    use_workspace_io: bool = False,
    debug_last_error: bool = False,
    checkpoint: object = None,
) -> bool:
    """Run built models, each in a C program, and compare."""
    with tempfile.TemporaryDirectory(prefix="loopwright-aot-") as text:
        for one in [models] if isinstance(models, AOTCompiledTestModel) else models:
            run_model(one, runner, Path(test_dir or text))
    return True


def run_model(compiled: AOTCompiledTestModel, runner: AOTTestRunner, folder: Path) -> None:
    """One model in a C program of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    model, built = compiled.model, compiled.executor_factory
    library, header = folder / f"lib{model.name}.so", folder / f"{model.name}.h"
    built.export_library(str(library))
    built.export_library(str(header))
    source = folder / f"{model.name}_test.c"
    source.write_text(_program(model, built, runner, header.name))
    program = str(folder / f"{model.name}_test")
    create_executable(program, [str(source), str(library)], [f"-I{folder}", f"-Wl,-rpath,{folder}"])
    done = subprocess.run([program], check=False, capture_output=True, text=True, timeout=300)
    if done.returncode != 0 or "AOT_TEST_SUCCESS" not in done.stdout:
        raise AssertionError(f"the model {model.name} ended with {done.returncode}: {done.stdout}{done.stderr}")


def _program(model: AOTTestModel, built: BuiltModule, runner: AOTTestRunner, header: str) -> str:
    said = built.compiled.description.functions[0]
    outputs = list(model.outputs.items())
    written = [argument for argument in said.arguments if argument.is_written]
    lines, given, checks = [], [], []
    for k, argument in enumerate(said.arguments):
        kind = c_type(argument.dtype)
        if not argument.is_written:
            array = np.ascontiguousarray(model.inputs[argument.name]).astype(DataType(argument.dtype).numpy())
            lines.append(f"static {kind} input{k}[] = {{{c_numbers(array)}}};")
            given.append(f"input{k}")
    for k, (argument, (name, array)) in enumerate(zip(written, outputs, strict=True)):
        kind, size = c_type(argument.dtype), max(1, array.size)
        wanted = np.ascontiguousarray(array).astype(DataType(argument.dtype).numpy())
        lines += [f"static {kind} output{k}[{size}];", f"static const {kind} wanted{k}[] = {{{c_numbers(wanted)}}};"]
        given.append(f"output{k}")
        allowed = model.output_tolerance
        tolerance = (allowed.get(name) if isinstance(allowed, Mapping) else allowed) or 0
        if tolerance == 0 and np.issubdtype(wanted.dtype, np.floating):
            tolerance = 1e-5  # relative: other compilers round otherwise
        checks.append(
            f"  for (int k = 0; k < {array.size}; ++k) if (!(fabs((double)output{k}[k] - (double)wanted{k}[k]) <= "
            f"{tolerance} * (1 + fabs((double)wanted{k}[k]))))\n"
            f'    return printf("output {name}[%d] is %g, expected %g\\n", k, (double)output{k}[k], '
            f"(double)wanted{k}[k]), 1;"
        )
    includes = "".join(f'#include "{one}"\n' for one in runner.includes if Path(one).is_absolute())
    call = f"{said.c_name}({', '.join(given)})"
    return (
        f'#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include "{header}"\n{includes}'
        + "\n".join(lines)
        + f'\nint main(void) {{\n  if ({call} != 0) return printf("the call failed\\n"), 1;\n'
        + "\n".join(checks)
        + '\n  return printf("AOT_TEST_SUCCESS\\n"), 0;\n}\n'
    )


def c_type(dtype: str) -> str:
    """The C type of elements."""
    return _C_TYPES.get(dtype, f"{dtype}_t")


def c_numbers(array: np.ndarray) -> str:
    """The elements as C writes them."""
    if array.dtype.kind == "f":
        return ", ".join(float(value).hex() for value in array.reshape(-1)) or "0"
    ending = {"u": "ull", "i": "ll"}.get(array.dtype.kind, "")
    return ", ".join(f"{int(value)}{ending}" for value in array.reshape(-1)) or "0"
