"""NativeModel: a compiled program: a runtime Module with one function, and what is known about it.

model(x, y)                     the native function itself: inputs, then outputs
model.run(x)                    fresh outputs, as a list
model.plan, model.kernels       where values are, and the kernels with their sizes and costs
model.profile(x)                what each kernel took, and every intermediate value
model.export_library("m.so")    self-contained; constants="file" keeps the weights in a file beside it
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.codegen.llvm.engine import Compiled
from loopwright.codegen.llvm.load_object import is_runnable, load_objects, require_runnable
from loopwright.model import constants
from loopwright.model.c_example import c_example
from loopwright.model.direct_call import DirectCall, direct_call, native_call
from loopwright.model.kernel import Kernel
from loopwright.model.kernel_table import KernelRow, kernel_rows
from loopwright.model.kernels import Counts
from loopwright.model.machine_limits import Compile
from loopwright.model.plan import Plan
from loopwright.model.program import Launch, Program
from loopwright.model.sizes import as_arrays, output_shapes
from loopwright.runtime import amx, ffi, thread_pool
from loopwright.runtime.c_header import c_header
from loopwright.runtime.c_source import CSourceModule
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.export import export_library, path_text
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.load import ENTRY_PREFIX
from loopwright.runtime.module import Module
from loopwright.target import CpuDescription, Target

if TYPE_CHECKING:
    from loopwright.model.profile import Profile, TimedMain


class NativeModel(Module):
    """A model as one native function."""

    timings: dict[str, float]
    description: ModuleDescription  # which a compiled model always has
    kernel_seconds: dict[str, float]
    counts: Counts
    function: PackedFunction  # inputs, then outputs
    direct_call: DirectCall
    built: object = None  # what a layer above wraps it in (relay's BuiltModule), for who is handed the library alone

    def __init__(
        self,
        program: Program,
        plan: Plan,
        launches: Mapping[Launch, Kernel],
        code: Compiled,
        description: ModuleDescription,
        content: constants.Bytes,
        target: Target,
        compile_program: Compile,
    ) -> None:
        start = perf_counter()
        self.program, self.plan, self.launches, self.code, self.target = program, plan, launches, code, target
        self.constants = content
        self.compile_program = compile_program  # which made it; a profile measures the machine with programs of its own
        self.uses_amx = any(kernel.uses_amx for kernel in launches.values())
        self._extra: list[bytes] | None = None
        self.timed: TimedMain | None = None  # made when it is first profiled
        super().__init__(
            {},
            description.entry,
            {
                "ll": self._ll,
                "asm": code.asm,
                "h": lambda: c_header(description),
                "main.c": lambda: c_example(description, program.name),
                "json": description.to_json,
                "": self._ll,
            },
            description=description,
            object_code=lambda: code.object_bytes,
            extra_objects=self._objects,
        )
        for module in program.modules:
            self.import_module(module)
        if is_runnable(code.cpu):
            address, owner = self._load(code, program.name)
            self.function = ffi.function_from_address(address, owner)
            self.direct_call = native_call(program, address, owner)
        else:
            self.function = self.link(code, program.name)
            self.direct_call = direct_call(program, self.function)
        self.set_functions({program.name: self.function})
        self.timings = {"link": perf_counter() - start}
        self.kernel_seconds = {}
        self.counts = Counts()

    # --- running --------------------------------------------------------------------------------------------------

    def run(self, *inputs: object) -> list[np.ndarray]:
        """The outputs for these inputs, in fresh arrays."""
        direct = self.direct_call(*inputs)
        if direct is not None:
            return direct if isinstance(direct, list) else [direct]
        arrays = as_arrays(self.program, inputs)
        shapes = output_shapes(self.program, arrays)
        dtypes = [value.dtype.numpy() for value in self.program.outputs]
        outputs = [np.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        self(*arrays, *outputs)
        return outputs

    def profile(self, *inputs: object, repeat: int = 1) -> Profile:
        """Run `repeat` times with a clock around every kernel; the intermediate values are those of the last run."""
        from loopwright.model.profile import profile

        return profile(self, inputs, repeat)

    @property
    def kernels(self) -> list[KernelRow]:
        """The distinct kernels, in order of first use: names, text, work, bytes and size of their code."""
        return kernel_rows(self.launches)

    @property
    def cpu(self) -> CpuDescription:
        return self.code.cpu

    def link(self, code: Compiled, name: str) -> PackedFunction:
        """The function of a main object, linked with the kernels into this process."""
        if not is_runnable(code.cpu):
            return lambda *_: require_runnable(code.cpu)  # which refuses, and says why
        return ffi.function_from_address(*self._load(code, name))

    def _load(self, code: Compiled, name: str) -> tuple[int, object]:
        """Where the function of a main object is, linked with the kernels, and what keeps the code there."""
        if self.uses_amx:
            amx.require()
        objects = [code.object_bytes, *self._kernel_objects()]
        if self.constants.size:
            objects.append(constants.object_at(self.program.name, self.constants.ctypes.data, code.cpu))
        symbols = {**ffi.symbols(), **thread_pool.symbols()}
        for module in self.all_imports():
            if isinstance(module, CSourceModule):
                symbols |= {ENTRY_PREFIX + called: module.address(called) for called in module.function_names}
            elif module.object_code is not None:
                objects += [module.object_code(), *(module.extra_objects() if module.extra_objects else ())]
        loaded = load_objects(objects, symbols)
        return loaded.address(ENTRY_PREFIX + name), (loaded, self.constants, self.all_imports())

    def _kernel_objects(self) -> list[bytes]:
        return list({kernel.symbol: kernel.object_bytes for kernel in self.launches.values()}.values())

    def _ll(self) -> str:
        return self.code.ll

    # --- exporting ------------------------------------------------------------------------------------------------

    def _objects(self) -> list[bytes]:
        """What is linked with the main object."""
        if self._extra is not None:
            return self._extra
        objects = self._kernel_objects()
        if self.constants.size:
            objects.append(constants.object_with(self.program.name, self.constants, self.cpu))
        return objects

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> str:
        """Write the model as `fmt` or as the file's name says; an object holds the kernels and constants too."""
        form = (fmt or Path(file_name).suffix).removeprefix(".")
        if form in ("o", "obj", "a"):
            return self.export_library(file_name)
        return super().save(file_name, fmt)

    def export_library(self, file_name: str | os.PathLike[str], *, constants: str = "library", **options: Any) -> str:
        """Write the model to a file (.so .o .a .tar .h …) and give its path; see `runtime.export`.

        A library is self-contained. With `constants="file"` the weights are in a file of the same name that ends in
        `.weights`, which the library maps when it is first called.
        """
        from loopwright.model.constants import require_place

        require_place(constants)
        name = path_text(file_name)
        if constants == "library" or not self.constants.size:
            return export_library(self, name, **options)
        return self._export_with_file(name, options)

    def _export_with_file(self, name: str, options: dict[str, Any]) -> str:
        beside = Path(name).with_suffix(".weights")
        with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
            reader = Path(folder) / "constants_reader.c"
            reader.write_text(constants.reader_source(self.program.name, beside.name, self.constants))
            addons = [*(options.pop("addons", None) or ()), str(reader)]
            self._extra = self._kernel_objects()
            try:
                result = export_library(self, name, addons=addons, **options)
            finally:
                self._extra = None
        _write_whole(beside, constants.file_bytes(self.constants))
        return result


def _write_whole(path: Path, parts: list[bytes | memoryview]) -> None:
    """Write the file whole or not at all."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.absolute().parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
