"""CSourceModule: C or C++ text as a module: what a user's own compiler for parts of a model returns.

    code = "int32_t twice(TVMValue* args, int* codes, int n, TVMValue* result, int* result_code) { … return 0; }"
    module = CSourceModuleCreate('#include <tvm/runtime/c_runtime_api.h>\n' + code, "c", ["twice"])
    module["twice"](x, y)                    compiled when it is first called
    model.import_module(module)              compiled into the library that the model is exported to

Functions follow the older packed convention, whose headers are in `native/include`; a tensor is a `DLTensor*` in
`v_handle`. For each an adapter is written that has our convention: `__tvm_ffi_twice`. `const_vars` are names of arrays
that the text declares (`extern const float weights[];`) and `set_constants` gives.
"""

from __future__ import annotations

import ctypes
import functools
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from loopwright.runtime import ffi
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.link import create_object_file, create_shared
from loopwright.runtime.module import Module

ENTRY_PREFIX: Final = "__tvm_ffi_"
HEADERS: Final = Path(__file__).with_name("native") / "include"
_C_FORMS: Final = ("c",)
_CPP_FORMS: Final = ("cc", "cpp", "cxx")
# What only C++ includes: `<vector>`, and the one of our headers that has templates.
_CPP_INCLUDE: Final = re.compile(r"^\s*#\s*include\s*<(?:tvm/runtime/(?:packed_func|ndarray)\.h|[a-z_]+)>", re.M)

_ADAPTERS: Final = """\
#include <tvm/runtime/c_runtime_api.h>

typedef struct { int32_t kind; int32_t rest; union { int64_t integer; double real; void* pointer; } is; } Value;

extern int TVMFFIErrorSetRaisedFromCStr(const char*, const char*) __attribute__((weak));

static int call(TVMBackendPackedCFunc function, const char* failed, const Value* given, int32_t count, Value* result) {
  TVMValue args[count + 1], out;
  int codes[count + 1], code = kTVMNullptr;
  for (int32_t k = 0; k < count; ++k) {
    switch (given[k].kind) {
      case 0: args[k].v_handle = 0, codes[k] = kTVMNullptr; break;
      case 1: case 2: args[k].v_int64 = given[k].is.integer, codes[k] = kTVMArgInt; break;
      case 3: args[k].v_float64 = given[k].is.real, codes[k] = kTVMArgFloat; break;
      case 7: args[k].v_handle = given[k].is.pointer, codes[k] = kTVMDLTensorHandle; break;
      case 8: args[k].v_handle = given[k].is.pointer, codes[k] = kTVMStr; break;
      /* A tensor object begins with its count; what describes the tensor follows. */
      case 70: args[k].v_handle = (char*)given[k].is.pointer + 24, codes[k] = kTVMDLTensorHandle; break;
      default: args[k].v_handle = given[k].is.pointer, codes[k] = kTVMOpaqueHandle; break;
    }
  }
  out.v_int64 = 0;
  if (function(args, codes, count, &out, &code, 0) != 0) {
    if (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr("RuntimeError", failed);
    return -1;
  }
  result->rest = 0;
  if (code == kTVMArgInt) {
    result->kind = 1, result->is.integer = out.v_int64;
  } else if (code == kTVMArgFloat) {
    result->kind = 3, result->is.real = out.v_float64;
  } else {
    result->kind = 0, result->is.integer = 0;
  }
  return 0;
}
"""

_ADAPTER: Final = """
extern int NAME(TVMValue*, int*, int, TVMValue*, int*, void*);
TVM_DLL int __tvm_ffi_NAME(void* self, const Value* args, int32_t count, Value* result) {
  (void)self;
  return call(NAME, "NAME, a function of a C source, reported a failure", args, count, result);
}
"""


class BadCSource(LoopwrightError, ValueError):
    """A module of C text was made of something else, or lacks what its functions need.

    For example:

        from loopwright.runtime import CSourceModuleCreate

        CSourceModuleCreate("int f();", "fortran", ["f"])
    """

    code = "LW0158"


class CSourceModule(Module):
    """Functions written in C or C++; compiled when one is called, or with the library that the module is part of."""

    def __init__(
        self, code: str, fmt: str = "c", func_names: Sequence[str] = (), const_vars: Sequence[str] = ()
    ) -> None:
        if fmt not in (*_C_FORMS, *_CPP_FORMS):
            raise BadCSource(f"a C source has the form {fmt!r}", hint=f"give {', '.join((*_C_FORMS, *_CPP_FORMS))}")
        self.code = str(code)
        self.fmt = fmt
        self.const_vars = [str(name) for name in const_vars]
        self.constants: dict[str, np.ndarray] = {}
        self._library: ctypes.CDLL | None = None
        is_cpp = fmt in _CPP_FORMS or _CPP_INCLUDE.search(self.code) is not None
        super().__init__({}, None, {fmt: lambda: self.code, "c": lambda: self.code}, type_key="c")
        self.source_suffix = ".cc" if is_cpp else ".c"
        self.source_options = [f"-I{folder}" for folder in include_folders()] + (["-lstdc++"] if is_cpp else [])
        self.extra_objects = self._extra
        self.declare([str(name) for name in func_names])

    def declare(self, names: Sequence[str]) -> None:
        """Say which functions the text defines."""
        wanted = dict.fromkeys([*self.function_names, *names])
        self.set_functions({name: functools.partial(self._call, name) for name in wanted})

    def set_constants(self, values: Mapping[str, object]) -> None:
        """The arrays that the names among `const_vars` stand for; others are passed over."""
        for name in self.const_vars:
            if name in values:
                self.constants[name] = np.ascontiguousarray(np.asarray(values[name]))

    def get_const_vars(self) -> list[str]:
        return list(self.const_vars)

    def address(self, name: str) -> int:
        """Where the function begins in this process, as our convention calls it; it is compiled if it was not yet."""
        if self._library is None:
            self._library = self._loaded()
        return ffi.address_of(self._library[ENTRY_PREFIX + name])

    def _call(self, name: str, *args: object) -> Any:
        function = ffi.function_from_address(self.address(name), self._library)
        self._functions[name] = function
        return function(*args)

    def _extra(self) -> list[bytes]:
        """What the text is linked with: adapters, and the arrays of `const_vars`."""
        missing = [name for name in self.const_vars if name not in self.constants]
        if missing:
            raise BadCSource(
                f"the constant {missing[0]!r} of a C source has no value",
                hint="register relay.ext.<compiler>.constant_updater, or write it into the source",
            )
        own = [name for name in self.function_names if ENTRY_PREFIX + name not in self.code]
        with tempfile.TemporaryDirectory(prefix="loopwright-") as text:
            folder = Path(text)
            parts = [_ADAPTERS if own else "", *[_ADAPTER.replace("NAME", name) for name in own]]
            for number, (name, array) in enumerate(self.constants.items()):
                data = folder / f"constant_{number}.bin"
                data.write_bytes(array.tobytes())
                parts.append(
                    f'__asm__(".section .rodata\\n.balign 64\\n.globl {name}\\n{name}:\\n'
                    f'.incbin \\"{data}\\"\\n.text\\n");\n'
                )
            return [self._object(folder, "adapters.c", "".join(parts))]

    def _object(self, folder: Path, name: str, code: str) -> bytes:
        source = folder / name
        source.write_text(code)
        given = [option for option in self.source_options if not option.startswith("-l")]
        return Path(create_object_file(str(source.with_suffix(".o")), str(source), given)).read_bytes()

    def _loaded(self) -> ctypes.CDLL:
        ffi.load()  # before the library, which looks for its functions
        with tempfile.TemporaryDirectory(prefix="loopwright-") as text:
            folder = Path(text)
            source = folder / f"source{self.source_suffix}"
            source.write_text(self.code)
            files = [str(source)]
            for number, data in enumerate(self._extra()):
                file = folder / f"extra{number}.o"
                file.write_bytes(data)
                files.append(str(file))
            return ctypes.CDLL(create_shared(str(folder / "source.so"), files, self.source_options))


def include_folders() -> list[str]:
    """The folders of the headers that a C source may include."""
    from importlib import import_module

    libinfo = import_module(f"{ffi.load().__name__}.libinfo")
    folders = [HEADERS, libinfo.find_include_path(), libinfo.find_dlpack_include_path()]
    return list(dict.fromkeys(map(str, folders)))


def CSourceModuleCreate(
    code: str, fmt: str = "c", func_names: Sequence[str] = (), const_vars: Sequence[str] | None = None
) -> CSourceModule:
    """A module of C or C++ text that defines the functions `func_names`."""
    return CSourceModule(code, fmt, func_names, const_vars or ())


