"""programs: what a Python file defines that Loopwright can show and run.

The file is executed (its `if __name__ == "__main__":` part is not), and its top-level names are looked at: functions
under `@T.prim_func`, modules, schedules, and te tensors that no other tensor of the file reads. A Python function that
is asked for by name is called. `T` and `I` are known without imports, so that text which `show` or `script()` printed
is a file like any other.
"""

from __future__ import annotations

import importlib
import inspect
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from loopwright.cli.model_files import is_model_file, is_package
from loopwright.ir import IRModule, PrimFunc
from loopwright.runtime.errors import LoopwrightError, with_article

if TYPE_CHECKING:
    from loopwright.codegen.llvm.native_module import CompiledModule
    from loopwright.te import Operation, Tensor


class NoSuchFile(LoopwrightError, FileNotFoundError):
    """The file that a command was given does not exist, is no regular file, or is a directory.

    For example:

        from loopwright.cli.programs import load_file

        load_file("nowhere.py")
    """

    code = "LW0021"

    def __init__(self, path: Path) -> None:
        what = "is a directory" if path.is_dir() else "is not a regular file" if path.exists() else "does not exist"
        folder = path.parent
        near = get_close_matches(path.name, [one.name for one in folder.iterdir()], 1, 0.75) if folder.is_dir() else []
        super().__init__(
            f"{path} {what}",
            hint=f"did you mean {folder / near[0]}?"
            if near and not path.exists()
            else "give the path of a Python file",
            fields={"path": str(path)},
        )


class ModelNotProgram(LoopwrightError, ValueError):
    """A command that reads a Python file was given a model, or something compiled from one.

    For example:

        from pathlib import Path
        from loopwright.cli.programs import load_file

        Path("model.onnx").write_bytes(b"")
        load_file("model.onnx")
    """

    code = "LW0056"

    def __init__(self, path: str) -> None:
        compiled = "" if is_package(path) else f"; loopwright compile {path} -o model.tar compiles it"
        super().__init__(
            f"{path} is {'a compiled model' if is_package(path) else 'a model'}, and no Python file",
            hint=f"loopwright inspect {path} shows its operators and shapes, loopwright run {path} runs it{compiled}",
            fields={"path": path},
        )


class NoProgram(LoopwrightError, ValueError):
    """The file defines nothing at its top level that could be shown or run.

    Programs are functions under `@T.prim_func`, modules under `@I.ir_module`, schedules, and te tensors. Those made
    inside a function are not seen: give them a name at the top level of the file.

    For example:

        from loopwright.cli.programs import choose

        choose({}, None, "empty.py")
    """

    code = "LW0022"

    def __init__(self, file: str, functions: Sequence[str] = ()) -> None:
        hint = "define one with @T.prim_func, or give the result of te.create_prim_func a name"
        if functions:
            name = functions[0]
            hint = f"if {name}() returns one, ask for {file}:{name}, or name its result: program = {name}(…)"
        super().__init__(
            f"{file} defines no program",
            why="no top-level name is a function of the program, a module, a schedule or a te tensor",
            hint=hint,
        )


class NoSuchProgram(LoopwrightError, LookupError):
    """A file was asked for a program that it does not define.

    For example:

        from loopwright.cli.programs import choose
        from loopwright.script import from_source

        func = from_source("@T.prim_func\\ndef add(n: T.int32):\\n    T.evaluate(n)")
        choose({"add": func}, "ad", "file.py")
    """

    code = "LW0023"

    def __init__(self, file: str, name: str, names: Sequence[str]) -> None:
        near = get_close_matches(name, names, 1)
        super().__init__(
            f"{file} defines no program {name!r}; it defines {', '.join(names)}",
            hint=f"did you mean {near[0]!r}?" if near else None,
            fields={"name": name, "candidates": list(names)},
        )


class FunctionNotProgram(LoopwrightError, TypeError):
    """A file was asked for a program, and what has that name is a Python function.

    One that can be called without arguments is called, and its result is the program. One that needs arguments, or
    that returns something else, is not: give its result a name at the top level of the file.

    For example:

        from loopwright.cli.programs import choose

        def kernel(n):
            return n

        choose({"kernel": kernel}, "kernel", "file.py")
    """

    code = "LW0028"

    def __init__(self, file: str, name: str, needed: Sequence[str], result: object) -> None:
        why = f"it needs {', '.join(needed)}" if needed else f"it returned {with_article(type(result).__name__)}"
        super().__init__(
            f"{name} of {file} is a Python function, not a program",
            why=why,
            hint=f"name its result at the top level of the file: program = {name}({', '.join(needed)})"
            if needed
            else f"return a PrimFunc, an IRModule, a schedule or te tensors from {name}",
            fields={"name": name, "parameters": list(needed)},
        )


class Program(NamedTuple):
    """A program under the name that the file gives it."""

    name: str
    module: IRModule
    explained: str = ""  # why it is scheduled as it is, when the rules did that


def compiled(module: IRModule, target: str, autosched: bool = False) -> CompiledModule:
    """The native code of a program. A command stands where a user stands: it takes the public `build`."""
    return importlib.import_module("loopwright").build(module, target=target, autosched=autosched)


def scheduled(program: Program, target: str) -> Program:
    """The program scheduled by rule, with the reasons."""
    from loopwright.autosched import apply

    plan = apply(program.module, target)
    return Program(program.name, plan.mod, plan.explain() or "nothing was scheduled: rules are for blocks (T.block)")


def split_name(argument: str) -> tuple[str, str | None]:
    """`FILE:NAME` taken apart; NAME is None when there is none."""
    path, colon, name = argument.rpartition(":")
    if not colon or not name.replace(".", "_").isidentifier() or Path(argument).exists():
        return argument, None
    return path, name


def load_file(file: str, run_name: str = "__loopwright__") -> dict[str, Any]:
    """The names that the file defines, after executing it; its folder is on the path, as for a script."""
    from loopwright.script import ir, tir

    path = Path(file)
    if not path.is_file():
        raise NoSuchFile(path)
    if is_model_file(file):
        raise ModelNotProgram(file)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        return runpy.run_path(str(path), {"T": tir, "I": ir}, run_name)
    finally:
        sys.path.remove(folder)


def choose(names: Mapping[str, Any], wanted: str | None, file: str) -> list[Program]:
    """The programs among `names`: all, or the one wanted (`NAME`, or `MODULE.FUNCTION`)."""
    programs = find_programs(names)
    if wanted is None:
        if not programs:
            raise NoProgram(file, _functions_of(names))
        return programs
    result = {program.name: program.module for program in programs}
    if wanted not in result and wanted in names and _is_tensor(names[wanted]):
        return [Program(wanted, _tensor_module(names[wanted], wanted))]
    owner, _, function = wanted.partition(".")
    if wanted in result:
        return [Program(wanted, result[wanted])]
    if function and owner in result and function in result[owner]:
        return [Program(wanted, IRModule({function: result[owner][function]}))]
    if inspect.isfunction(names.get(wanted)):
        return [_result_of(names[wanted], wanted, file)]
    if not result:
        raise NoProgram(file, _functions_of(names))
    raise NoSuchProgram(file, wanted, list(result))


def _functions_of(names: Mapping[str, object]) -> list[str]:
    """The Python functions that the file itself defines."""
    return [
        name
        for name, value in names.items()
        if inspect.isfunction(value) and value.__module__ == names.get("__name__") and name != "main"
    ]


def _result_of(function: Callable[..., object], name: str, file: str) -> Program:
    """The program that a Python function returns."""
    parameters = inspect.signature(function).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in variadic]
    if needed:
        raise FunctionNotProgram(file, name, needed, None)
    result = function()
    module = _as_module(result, name)
    if module is None and _is_tensor(result):
        module = _tensor_module(result, name)
    elif module is None and isinstance(result, (list, tuple)) and result and all([_is_tensor(one) for one in result]):
        from loopwright import te

        module = IRModule({name: te.create_prim_func(result).with_attr("global_symbol", name)})
    if module is None:
        raise FunctionNotProgram(file, name, (), result)
    return Program(name, module)


def find_programs(names: Mapping[str, object]) -> list[Program]:
    """Every program among the top-level names of a file, in the order they were defined."""
    result: list[Program] = []
    seen: set[int] = set()
    for name, value in names.items():
        module = _as_module(value, name)
        if module is not None and not name.startswith("_") and id(value) not in seen:
            seen.add(id(value))
            result.append(Program(name, module))
    return result or _tensor_programs(names)


def _as_module(value: object, name: str) -> IRModule | None:
    if isinstance(value, PrimFunc):
        return IRModule({value.name if "global_symbol" in value.attrs else name: value})
    if isinstance(value, IRModule):
        return value
    scheduled = getattr(value, "mod", None) if type(value).__name__ == "Schedule" else None
    return scheduled if isinstance(scheduled, IRModule) else None


def _is_tensor(value: object) -> TypeGuard[Tensor]:
    if "loopwright.te" not in sys.modules:
        return False
    from loopwright.te import Tensor

    return isinstance(value, Tensor)


def _tensor_programs(names: Mapping[str, object]) -> list[Program]:
    """The te tensors that no other one reads, each with the placeholders it needs as a function."""
    tensors = {name: value for name, value in names.items() if _is_tensor(value) and not name.startswith("_")}
    read = {source.op for tensor in tensors.values() for source in tensor.op.input_tensors}
    return [
        Program(name, _tensor_module(tensor, name))
        for name, tensor in tensors.items()
        if tensor.op.input_tensors and tensor.op not in read
    ]


def _tensor_module(tensor: Tensor, name: str) -> IRModule:
    from loopwright import te

    placeholders: dict[Tensor, None] = {}
    pending: list[Tensor] = [tensor]
    seen: set[Operation] = set()
    while pending:
        one = pending.pop(0)
        if one.op in seen:
            continue
        seen.add(one.op)
        if not one.op.input_tensors:
            placeholders[one] = None
        pending += one.op.input_tensors
    func = te.create_prim_func([*placeholders, tensor])
    return IRModule({name: func.with_attr("global_symbol", name)})
