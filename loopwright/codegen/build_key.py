"""build_key: a name for everything a build depends on, so that equal builds find what an earlier one made.

    build_key(module, Target("llvm"), intrinsic) == "3f9c…"      160 bits, the same in every process

What enters: the program up to the names of variables (as `ir.structural_hash` writes it), the names that compiled code
shows to its caller (parameters, sizes, buffers, functions), constants by content, the target down to every feature of
the CPU, the settings of the PassContext, and who compiles: Loopwright's own sources, LLVM, Python.

There is no key where something takes part that only this process knows: a pass or an intrinsic rule of the user's, a
number type of one's own, an instrument that wants to watch passes run, an object in an attribute.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np

from loopwright.codegen.llvm.imports import import_content
from loopwright.ir import AttrStmt, Buffer, IRModule, Node, PrimFunc, Var, deep
from loopwright.ir.annotations import IMPORT_LLVM, TENSORIZED
from loopwright.ir.expr import Producer
from loopwright.ir.op import Op
from loopwright.ir.pass_config import CONFIG_KEYS
from loopwright.ir.pass_context import PassContext
from loopwright.ir.structural_hash import Serialization
from loopwright.ir.structural_plan import plain_value
from loopwright.ir.types import PrimType
from loopwright.runtime.artifact_store import open_store
from loopwright.runtime.dtype import CUSTOM_CODES
from loopwright.target import CpuDescription, Target, describe

_FORMAT: Final = 1  # of the key itself
_PACKAGE: Final = Path(__file__).resolve().parent.parent
_SOURCES: Final = (".py", ".c", ".h")

# The two functions that a tensor intrinsic of that name stands for: a block names it, and lowering looks it up.
Intrinsic = Callable[[str], tuple[PrimFunc, PrimFunc] | None]


class _NoKey(Exception):
    """Something takes part in the build that no text can name."""


def build_key(
    module: IRModule, target: Target, intrinsic: Intrinsic, rules: str = "", names: bool = True
) -> str | None:
    """The key of building `module` for `target` under the current PassContext; None where there is none.

    `rules` says how the module is scheduled first, if it is. Without `names`, what parameters, sizes and buffers are
    called makes no difference: for code that nobody calls by name.
    """
    context = PassContext.current()
    if context.instruments or any(Op.attribute_tables.values()) or CUSTOM_CODES:
        return None
    try:
        program = _program_text(module, intrinsic, names)
        settings = "\n".join(_settings(context))
    except _NoKey:
        return None
    compiler = compiler_digest()
    if compiler is None:
        return None
    machine = "\n".join([str(target), *_machine(describe(target))])
    key = hashlib.blake2b(digest_size=20)
    for part in (f"{_FORMAT} {compiler}", machine, settings, rules, program):
        # surrogatepass: any Python text may stand in an annotation.
        encoded = part.encode("utf-8", "surrogatepass")
        key.update(len(encoded).to_bytes(8, "little"))
        key.update(encoded)
    return key.hexdigest()


# --- the program ---


@deep
def _program_text(module: IRModule, intrinsic: Intrinsic, names: bool) -> str:
    written = _Program(intrinsic, names)
    written.module(module)
    return "\n".join(written.parts)


class _Program(Serialization):
    """A program as text: bound variables are numbers, except that what compiled code calls by name keeps its name.

    Messages of compiled code name parameters, the variables of their sizes, and buffers ("no memory for the
    intermediate buffer …"); loops, axes and lets are never heard of again.
    """

    def __init__(self, intrinsic: Intrinsic, names: bool) -> None:
        super().__init__(map_free_vars=False)
        self.intrinsic = intrinsic
        self.names = names
        self.shows_names = False
        self.intrinsics: set[str] = set()

    def node(self, node: Any) -> None:
        if isinstance(node, Producer):
            raise _NoKey  # a te tensor: known by identity
        if type(node) is AttrStmt and node.attr_key == IMPORT_LLVM:
            self._imported(node.value)
        super().node(node)

    def bind(self, var: Var) -> None:
        super().bind(var)
        # What is no PrimType is a pointer: memory has a name.
        if self.names and (self.shows_names or type(var.type_annotation) is not PrimType):
            self.text(var.name)

    def declare(self, buffer: Buffer) -> None:
        outer, self.shows_names = self.shows_names, True
        if self.names:
            self.text(buffer.name)
        super().declare(buffer)
        self.shows_names = outer

    def function(self, func: PrimFunc) -> None:
        self.parts.append(f"parameters {len(func.params)}")
        for param in func.params if self.names else ():
            self.text(param.name)
        super().function(func)

    def module(self, module: IRModule) -> None:
        # A module lists its functions in the order they were added.
        for name, _ in module.functions_items():
            self.text(name)
        super().module(module)

    def mapping(self, values: Mapping[object, object]) -> None:
        super().mapping(values)
        if TENSORIZED in values:
            self._named_intrinsic(str(plain_value(values[TENSORIZED])))

        if IMPORT_LLVM in values:
            self._imported(values[IMPORT_LLVM])

    def _imported(self, value: object) -> None:
        """LLVM code is known by what it is, also where the program names a file."""
        self.text(hashlib.blake2b(import_content(plain_value(value)), digest_size=20).hexdigest())

    def _named_intrinsic(self, name: str) -> None:
        if name in self.intrinsics:
            return
        self.intrinsics.add(name)
        functions = self.intrinsic(name)
        if functions is None:
            raise _NoKey  # the build will say so
        for function in functions:
            self.function(function)

    def data(self, value: object) -> None:
        value = plain_value(value)
        if isinstance(value, Enum):
            self.text(f"{type(value).__name__}.{value.name}")
        elif value is None or isinstance(value, (bool, int, str, list, tuple, Mapping, Node)):
            super().data(value)
        elif isinstance(value, float):
            self.text(np.float64(value).tobytes().hex())  # every bit, also of a NaN
        elif isinstance(value, Target):
            self.text(f"Target {value}")
        else:
            self.text(_content(value))


def _content(value: object) -> str:
    """An array by type, shape and content."""
    array = value if isinstance(value, np.ndarray) else value.numpy() if hasattr(value, "numpy") else None
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        raise _NoKey
    # As bytes: numpy exports neither bfloat16 nor float8, and a copy of large weights would cost more than the hash.
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.blake2b(flat.data, digest_size=20).hexdigest()
    return f"array {array.dtype.name} {array.dtype.byteorder} {array.shape} {digest}"


# --- settings, machine, compiler ---


def _settings(context: PassContext) -> list[str]:
    lines = [str(context.opt_level), *_names(context.disabled_pass), "/", *_names(context.required_pass)]
    for key in sorted(CONFIG_KEYS):
        lines.append(f"{key} {_setting(context.setting(key))}")
    return lines


def _names(names: tuple[str, ...]) -> list[str]:
    return sorted(repr(name) for name in names)


def _setting(value: object) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(_setting(item) for item in dataclasses.astuple(value))})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([_setting(item) for item in value])}]"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise _NoKey  # a pass of the user's, among others


@functools.lru_cache(maxsize=64)
def _machine(cpu: CpuDescription) -> list[str]:
    """Every field, in an order that does not change from process to process."""
    lines = []
    for field in dataclasses.fields(cpu):
        value = getattr(cpu, field.name)
        lines.append(f"{field.name} {sorted(value) if isinstance(value, frozenset) else value!r}")
    return lines


@functools.cache
def compiler_digest() -> str | None:
    """Names what compiles: Loopwright's sources, LLVM, Python and numpy; None where the sources are not files."""
    files = sorted(
        Path(folder, name) for folder, _, names in os.walk(_PACKAGE) for name in names if name.endswith(_SOURCES)
    )
    if Path(__file__).resolve() not in files:
        return None
    import llvmlite.binding as llvm

    version = str(sys.modules["loopwright"].__version__)  # the package itself; a layer imports no facade
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    lines = [version, llvm_version, platform.python_version(), np.__version__, sources_digest(files)]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=20).hexdigest()


def sources_digest(files: list[Path]) -> str:
    """The digest of all the files' names and contents; kept, since reading them takes as long as compiling."""
    # The time of a file's last change of any kind (ctime) cannot be set, unlike that of its content.
    seen = [f"{file} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}\n" for file in files for s in [file.stat()]]
    state = hashlib.blake2b("".join(seen).encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()
    store = open_store()
    known = store.read(state) if store is not None else None
    if known is not None:
        return str(known.header["digest"])
    digest = hashlib.blake2b(digest_size=20)
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(_PACKAGE).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    if store is not None:
        store.save(state, {"kind": "sources", "digest": digest.hexdigest()}, {})
    return digest.hexdigest()
