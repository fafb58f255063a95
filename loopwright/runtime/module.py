"""Module: compiled functions by name, with the sources they were made from.

`mod["f"]` is the compiled function itself: calling it runs no Python. `mod(…)` calls the entry function and, at
the price of a tenth of a microsecond, also takes arrays that numpy does not export (bfloat16, read-only). The module
is a table; how functions were compiled, and what keeps their code alive, is their maker's business.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from loopwright.runtime.call_errors import (
    SEPARATOR,
    ArgumentCountMismatch,
    ArgumentKindMismatch,
    DtypeMismatch,
    ReadOnlyArgument,
    StrideMismatch,
)
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.guesses import no_attribute
from loopwright.runtime.json_text import JsonObject
from loopwright.runtime.shown import view
from loopwright.runtime.upper_layers import from_upper_layer

if TYPE_CHECKING:
    from mmap import mmap

    from loopwright.runtime.timing import Evaluator


class MissingFunction(LoopwrightError, AttributeError):
    """The module has no function of that name; the message lists those it has.

    For example:

        from loopwright.runtime import Module
        Module({"main": print})["other"]
    """

    code = "LW0107"

    def __init__(self, name: str, known: Iterable[str], imported: Iterable[str] = ()) -> None:
        names, elsewhere = list(known), list(imported)
        hint = f"it has {', '.join(names)}" if names else "it has no functions"
        if elsewhere:
            hint += f"; query_imports=True would also look among {', '.join(elsewhere)}"
        super().__init__(f"the module has no function {name!r}", hint=hint, fields={"name": name, "known": names})


class NoEntryFunction(LoopwrightError, AttributeError):
    """A module of several functions was called as if it were one; only a single function, or `main`, is its entry.

    For example:

        from loopwright.runtime import Module
        Module({"first": print, "second": print})()
    """

    code = "LW0127"

    def __init__(self, known: Iterable[str]) -> None:
        names = list(known)
        hint = f'call one of them, as in module["{names[0]}"](…)' if names else None
        super().__init__(
            f"the module has no entry function: it has {', '.join(names) or 'no functions'}",
            hint=hint,
            fields={"known": names},
        )


class MissingSource(LoopwrightError, ValueError):
    """The module does not have its source in that form; the message lists the forms it has.

    For example:

        from loopwright.runtime import Module
        Module({"main": print}).get_source("ptx")
    """

    code = "LW0108"

    def __init__(self, form: str, known: Iterable[str]) -> None:
        names = [name for name in known if name]  # the empty name stands for the default form
        hint = f"it can show {', '.join(names)}" if names else "it keeps no source"
        super().__init__(
            f"the module cannot show its source as {form!r}", hint=hint, fields={"form": form, "known": names}
        )


# What to write for names that people look for in a module.
_INSTEAD: Final = {
    "benchmark": "write module.time_evaluator()(*arguments)",
    "explain": "write loopwright.autosched.apply(function).explain() for the reasons behind a schedule by rule",
    "run": "call the module: module(*arguments)",
    "set_thread_order": 'build for target="cuda -model=emulated": on a GPU, threads run as they do',
    "source": "write module.get_source()",
    "time": "write module.time_evaluator()(*arguments).mean, in seconds",
}


class Module:
    """Compiled functions by name; calling the module calls its entry function."""

    def __init__(
        self,
        functions: Mapping[str, PackedFunction],
        entry_name: str | None = None,
        sources: Mapping[str, Callable[[], str]] | None = None,
        *,
        type_key: str = "llvm",
        keep_alive: object = None,
        writes: Mapping[str, Collection[int]] | None = None,
        description: ModuleDescription | None = None,
        object_code: Callable[[], bytes] | None = None,
        object_suffix: str = ".o",
        extra_objects: Callable[[], Sequence[bytes]] | None = None,
        library_file: bytes | mmap | None = None,
    ) -> None:
        """`sources` gives each form of source when it is asked for. `writes` says which arguments (by position) a
        function writes: others may be read-only arrays; by default the description tells. `keep_alive` is released
        with the module. What can be exported: `object_code` (an object, or an archive by its `object_suffix`), C
        among the `sources` with the `extra_objects` it is linked with, or the `library_file` it was loaded from."""
        self._sources = dict(sources or {})
        if writes is None and description is not None:
            writes = {
                function.name: [k for k, argument in enumerate(function.arguments) if argument.is_written]
                for function in description.functions
            }
        self._writes = dict(writes or {})
        self.description = description
        self.object_code = object_code
        self.object_suffix = object_suffix
        self.extra_objects = extra_objects
        self.library_file = library_file
        self._keep_alive = keep_alive
        self.entry_name = entry_name
        self.set_functions(functions)
        self.type_key = type_key
        self.source_suffix = ".c"  # of its C text as a file to be compiled
        self.source_options: list[str] = []  # of the compiler, for that file
        self.imported_modules: list[Module] = []
        self.static_functions: list[str] = []  # that a static library has for others to call

    def __tvm_ffi_object__(self) -> Any:
        """Among arguments of a packed function, where it would be taken for a function, as it can be called."""
        from tvm_ffi import core

        return core._convert_to_opaque_object(self)

    def set_functions(self, functions: Mapping[str, PackedFunction]) -> None:
        """For the module's maker: these are its functions now."""
        self._functions = dict(functions)
        if self.entry_name is None and len(functions) == 1:
            self.entry_name = next(iter(functions))
        self._entry = self._functions.get(self.entry_name or "", self._no_entry)

    def keep_alive(self, owner: object) -> None:
        """Release `owner` (of the code, say) with the module, not before."""
        self._keep_alive = owner

    def __call__(self, *args: object, **named: object) -> Any:
        if named:
            problem = f"argument {next(iter(named))!r} is given by name, and a compiled function takes them by position"
            raise ArgumentCountMismatch(problem)
        try:
            return self._entry(*args)
        except BufferError:
            # numpy refused to export an argument, so the function has not run yet: trying again is safe.
            retyped = self._retype(args)
        except ArgumentKindMismatch:
            retyped = _with_bools(args)  # arguments are looked at before the function runs
            if not retyped:
                raise
        except LoopwrightError:
            raise
        except Exception:
            self._check_exports(args)
            raise
        return self._entry(*retyped)

    def __getitem__(self, name: str) -> PackedFunction:
        said = self.description
        if said is not None and said.is_model and name in (said.entry, "default"):
            return _ModelEntry(self, self.get_function(said.entry or name))
        return self.get_function(name)

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunction:
        """The function `name`, callable without any Python in between; `query_imports` looks in imports too."""
        function = self._find(name, query_imports)
        if function is None and name == "list_module_names" and self.description and self.description.is_model:
            return lambda: self.function_names
        if function is None and name in ("get_func_names", "get_const_vars") and "c" in self._sources:
            # A module of C text answers for itself, for those who write such modules out.
            return lambda: self.function_names if name == "get_func_names" else list(getattr(self, "const_vars", ()))
        if function is None:
            elsewhere = [] if query_imports else [n for module in self.imported_modules for n in module.function_names]
            raise MissingFunction(name, self.function_names, elsewhere)
        return function

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` would find `name`, or a static library has it for others to call."""
        return name in self.static_functions or self._find(name, query_imports) is not None

    @property
    def function_names(self) -> list[str]:
        """The names of this module's own functions."""
        return list(self._functions)

    @property
    def entry_func(self) -> PackedFunction:
        """What calling the module calls."""
        if self._entry == self._no_entry:
            self._no_entry()
        return self._entry

    def import_module(self, module: Module) -> None:
        """Let `query_imports` look in `module` as well; a model that `relay.build` made is its library."""
        module = module if isinstance(module, Module) else getattr(module, "compiled", module)
        if module is self or self in module.all_imports():
            raise ValueError("import_module: a module cannot import itself, directly or through others")
        self.imported_modules.append(module)

    def clear_imports(self) -> None:
        """Forget the imported modules."""
        self.imported_modules.clear()

    @property
    def source_forms(self) -> list[str]:
        """The forms that `get_source` knows."""
        return [form for form in self._sources if form]

    @property
    def format(self) -> str:
        """The form that `get_source()` shows."""
        return next(iter(self._sources), "")

    def get_source(self, fmt: str = "") -> str:
        """The source in a form (`"ll"`, `"asm"`, …); by default in the module's own `format`."""
        make = self._sources.get(fmt or self.format)
        if make is None:
            raise MissingSource(fmt, self._sources)
        return make()

    def time_evaluator(self, func_name: str | None = None, dev: object = None, **options: Any) -> Evaluator:
        """A callable that takes the function's arguments and gives a `BenchmarkResult`; see `runtime.timing`.

        By default it times what calling the module calls, on the CPU.
        """
        from loopwright.runtime.timing import time_evaluator

        function = self.entry_func if func_name is None else self.get_function(func_name, query_imports=True)
        return time_evaluator(function, dev, **options)

    @property
    def is_proved(self) -> bool:
        """Whether every schedule step on the way here was proved to keep every value."""
        return self.description is None or self.description.proved

    @property
    def metadata(self) -> JsonObject:
        """What the module says about itself, as plain data: functions, arguments, target, and whether it was proved."""
        from dataclasses import asdict

        return {} if self.description is None else asdict(self.description)

    is_binary_serializable = False
    is_device_code = False  # kernels by themselves, which are linked with what launches them
    why_not_exported = instead_of_export = ""  # of modules that cannot be for reasons of their own

    @property
    def is_runnable(self) -> bool:
        """Whether it has functions to call."""
        return self.type_key != "static_library"

    @property
    def is_dso_exportable(self) -> bool:
        """Whether its code can be linked into a library."""
        return self.object_code is not None or "c" in self._sources

    def get_property_mask(self) -> int:
        """1: serializable, 2: runnable, 4: exportable as a shared library."""
        return self.is_binary_serializable + 2 * self.is_runnable + 4 * self.is_dso_exportable

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> str:
        """Write this module's own code, without its imports, as `fmt` or as the file's name says: o, ll, s, c, h."""
        from loopwright.runtime.export import path_text, save

        return save(self, path_text(file_name), fmt)

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        *,
        fcompile: Callable[..., object] | None = None,
        fpack_imports: Callable[..., object] | None = None,
        addons: Iterable[str] | None = None,
        workspace_dir: str | None = None,
        **options: Any,
    ) -> str:
        """Write the module and its imports to a file (.so .o .a .tar .c .h .ll .s) and give its path; see
        `runtime.export`."""
        from loopwright.runtime.export import export_library, path_text

        return export_library(
            self,
            path_text(file_name),
            fcompile=fcompile,
            fpack_imports=fpack_imports,
            addons=addons,
            workspace_dir=workspace_dir,
            **options,
        )

    if not TYPE_CHECKING:  # mypy would believe in every name

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # a property that fails: with its own error
            functions = self.__dict__.get("_functions", ())
            instead = {**_INSTEAD, **{function: f'write module["{function}"]' for function in functions}}
            raise no_attribute("a module has no attribute", name, dir(type(self)), instead)

    def __repr__(self) -> str:
        return f"Module({self.type_key}: {', '.join(self._functions)})"

    def show(self, form: str | None = None, style: str | None = None) -> None:
        """Show the functions and what they were made for; with a form (`"ll"`, `"asm"`, …), the source in it."""
        (view("module", self) if form is None else view("source", self, form)).show(style)

    def _repr_html_(self) -> str:
        text: str = view("module", self).html()
        return text

    def _find(self, name: str, query_imports: bool) -> PackedFunction | None:
        result = self._functions.get(name)
        if result is None and name == "__tvm_main__" and self._entry != self._no_entry:
            return self._entry  # the name under which older scripts ask for the entry
        # What was linked into one library is in one place, whichever module it was part of.
        if result is None and (query_imports or self.type_key == "library"):
            return next((f for m in self.imported_modules if (f := m._find(name, True)) is not None), None)
        return result

    def all_imports(self) -> list[Module]:
        """The modules it imports, and what those import, in order."""
        return [m for direct in self.imported_modules for m in (direct, *direct.all_imports())]

    def _no_entry(self, *args: object) -> NoReturn:
        raise NoEntryFunction(self._functions)

    def _check_exports(self, args: tuple[object, ...]) -> None:
        """Raise an error about the first argument of foreign code that gives no tensor, if one does not."""
        import numpy as np

        from loopwright.runtime.dlpack import not_exported
        from loopwright.runtime.tensor import BadTensorData, from_dlpack

        for position, arg in enumerate(args, 1):
            if hasattr(arg, "__dlpack__") and not isinstance(arg, np.ndarray):
                try:
                    from_dlpack(arg)
                except BadTensorData as error:
                    problem = f"{self.entry_name}: argument number {position}: {not_exported(arg, error.__cause__)}"
                    raise ArgumentKindMismatch(problem) from error

    def _retype(self, args: tuple[object, ...]) -> list[object]:
        """`args` with arrays that numpy does not export replaced by tensors on their memory."""
        import numpy as np

        from loopwright.runtime.tensor import as_argument, why_not_exported

        for position, arg in enumerate(args, 1):
            problem = why_not_exported(arg) if isinstance(arg, np.ndarray) else None
            if problem is not None:
                which = f"{self.entry_name}: argument number {position} {problem}"
                writes = self._writes.get(self.entry_name or "")
                hint = "convert it first, for example with .astype('float32')"
                if writes is not None and position - 1 in writes:
                    hint = "the function writes it: make it as numpy.empty(x.shape, 'float32')"
                raise DtypeMismatch(SEPARATOR.join([which, "", hint])) from None
            if isinstance(arg, np.ndarray) and any([stride % arg.itemsize for stride in arg.strides]):
                which = f"{self.entry_name}: argument number {position} has byte strides {arg.strides}"
                problem = f"{which}, which are not whole steps of its {arg.itemsize}-byte elements"
                hint = "pass numpy.ascontiguousarray(...); copy one that is written back"
                raise StrideMismatch(SEPARATOR.join([problem, "", hint])) from None
        self._check_exports(args)
        retyped = [as_argument(arg) for arg in args]
        writes = self._writes.get(self.entry_name or "")
        for position, arg in enumerate(args):
            if isinstance(arg, np.ndarray) and not arg.flags.writeable and (writes is None or position in writes):
                verb = "may write" if writes is None else "writes"
                which = f"{self.entry_name}: argument number {position + 1}"
                problem = f"{which} is a read-only array, and the function {verb} it"
                why = "the array's flag `writeable` is off"
                raise ReadOnlyArgument(
                    SEPARATOR.join([problem, why, "pass a copy: nd.array(x), or x.copy()"])
                ) from None
        return retyped


class DeviceModule(Module):
    """Kernels by themselves: their sources, and no functions. They are exported with what launches them."""

    is_device_code = True

    def __init__(
        self, sources: Mapping[str, Callable[[], str]], library_file: bytes | mmap | None = None, type_key: str = "cuda"
    ) -> None:
        super().__init__({}, None, sources, type_key=type_key, library_file=library_file)


class _ModelEntry:
    """The function of a model; called with devices alone it gives the model, for the surfaces of executors."""

    def __init__(self, module: Module, function: PackedFunction) -> None:
        self.module = module
        self.function = function

    def __call__(self, *args: object) -> Any:
        if args and all([type(arg).__name__ == "Device" for arg in args]):
            return from_upper_layer("executor")(self.module).module
        return self.function(*args)


def _with_bools(args: tuple[object, ...]) -> list[object]:
    """`args` with numpy's truth values as Python's; nothing where there are none."""
    import numpy as np

    if not any([isinstance(arg, np.bool_) for arg in args]):
        return []
    return [bool(arg) if isinstance(arg, np.bool_) else arg for arg in args]
