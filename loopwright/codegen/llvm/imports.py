"""imports: LLVM code of the user's own becomes part of the module whose `call_extern` names its functions.

    read_import("define float @twice(float %x) { … }")     the text, checked; or that of a .ll or .bc file
    link_imports(text, imports, cpu)                       one text with all of them in it

What an import defines is the module's own afterwards (internal): nobody outside sees it, and LLVM may inline it. Two
imports may define a function alike, as two pragmas of one schedule do. What would go wrong without a word is refused:
a call of other types than the definition's, code for another machine, constructors that nobody would run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.annotations import IMPORTS
from loopwright.runtime.errors import InternalError, LoopwrightError, SourceLine
from loopwright.target import CpuDescription
from loopwright.target.architectures import architecture_of

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, ValueRef
    from llvmlite.binding.context import ContextRef

_FILES: Final = (".ll", ".bc")
_GENERATED: Final = "generated.ll"
_WANTED: Final = "give LLVM text, or the path of a .ll or .bc file"


class CannotImport(LoopwrightError, ValueError):
    """The pragma `import_llvm` names LLVM code that cannot become part of the module.

    The value of the pragma is LLVM text, or the path of a `.ll` or `.bc` file. Text of other versions of LLVM is read
    as far as the LLVM in use reads it: what clang of the same version writes always is.

    For example:

        import loopwright
        from loopwright import te

        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        s = te.create_schedule(B.op)
        s[B].pragma(B.op.axis[0], "import_llvm", "this is no LLVM text")
        loopwright.build(s, [A, B])
    """

    code = "LW0646"


def import_path(value: str) -> Path | None:
    """The file that an import names, if it does not hold the text itself."""
    return Path(value) if value.endswith(_FILES) and "\n" not in value else None


def read_import(value: object) -> str:
    """The LLVM text of an import: `value` itself, or what the file of that name holds; checked by LLVM."""
    if not isinstance(value, str):
        raise CannotImport(f"import_llvm: {value!r} is no text", hint=_WANTED)
    from llvmlite.binding import create_context

    code, name = _content(value)
    with create_context() as context, _parsed(code, name, context) as module:
        _require_importable(module)
        return code if isinstance(code, str) else str(module)


def import_content(value: object) -> bytes:
    """What the file that an import names holds now; nothing for an import that names none."""
    path = import_path(value) if isinstance(value, str) else None
    return path.read_bytes() if path is not None and path.is_file() else b""


def imports_of(module: IRModule) -> list[str]:
    """The texts that the functions of a lowered module import, each once."""
    return list(dict.fromkeys([text for _, function in module.functions_items() for text in imported_by(function)]))


def imported_by(function: PrimFunc) -> list[str]:
    """The texts that a lowered function imports."""
    texts = function.attrs.get(IMPORTS)
    return [str(text) for text in texts] if isinstance(texts, Sequence) else []


def link_imports(text: str, imports: Sequence[str], cpu: CpuDescription) -> str:
    """`text` with what `imports` define in it, as functions of its own."""
    if not imports:
        return text
    from llvmlite.binding import create_context

    with create_context() as context, _parsed(text, _GENERATED, context) as module:
        own = {value.name for value in _values(module) if not value.is_declaration}
        called = {value.name: str(value.global_value_type) for value in module.functions if value.is_declaration}
        defined: dict[str, str] = {}
        for given in imports:
            with _parsed(_optimized(given), "import_llvm", context) as imported:
                _require_same_machine(imported, cpu)
                for value in _values(imported):
                    if not value.is_declaration and value.linkage.name == "external":
                        _require_new(value, own, called)
                        if not _is_new(value, str(imported), defined):
                            value.linkage = "linkonce_odr"  # the linker keeps the one that it has
                imported.triple, imported.data_layout = module.triple, module.data_layout
                try:
                    module.link_in(imported, preserve=True)
                except RuntimeError as error:  # flags of modules that exclude one another, and the like
                    raise CannotImport("import_llvm: LLVM cannot link the code", why=str(error).strip()) from None
        for value in _values(module):
            if value.name in defined:
                value.linkage = "internal"
        return str(module)


# --- what is refused ---


def _require_importable(module: ModuleRef) -> None:
    for variable in module.global_variables:
        if variable.name in ("llvm.global_ctors", "llvm.global_dtors"):
            raise CannotImport(
                "import_llvm: the code has constructors or destructors of global variables, which nobody would run",
                hint="give global variables constant values",
            )


def _require_same_machine(imported: ModuleRef, cpu: CpuDescription) -> None:
    triple = str(imported.triple)
    if triple and architecture_of(triple) is not architecture_of(cpu.triple):
        raise CannotImport(
            f"import_llvm: the code is for {triple}, and the target is {cpu.triple}",
            hint="compile it for the target: clang --target=…",
        )


def _require_new(value: ValueRef, own: Collection[str], called: Mapping[str, str]) -> None:
    name, made = value.name, str(value.global_value_type)
    if name in own:
        raise CannotImport(
            f"import_llvm: {name} is also a name of the compiled module's own",
            hint="give the function another name",
            fields={"name": name},
        )
    if called.get(name, made) != made:
        raise CannotImport(
            f"import_llvm: {name} is defined as {made}, and call_extern calls it as {called[name]}",
            hint="cast the arguments of call_extern, and give its result the type, as the definition has them",
            fields={"name": name},
        )


def _is_new(value: ValueRef, module: str, defined: dict[str, str]) -> bool:
    """Whether no import before defined that name; one that did must have meant the same."""
    attributes = dict(_ATTRIBUTES.findall(module))
    text = re.sub(r"#\d+", lambda group: attributes.get(group[0], ""), re.sub(r",? !\w+ !\d+", "", str(value)))
    if value.name not in defined:
        defined[value.name] = text
        return True
    if defined[value.name] != text:
        raise CannotImport(
            f"import_llvm: {value.name} is defined twice, and not alike",
            hint="give one of them another name, or import one text that defines both",
            fields={"name": value.name},
        )
    return False


# --- reading ---

_ATTRIBUTES: Final = re.compile(r"^attributes (#\d+) = (\{.*\})$", re.MULTILINE)
_PLACE: Final = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def _optimized(text: str) -> str:
    """What `clang -O0` writes asks not to be optimized, for debuggers; here it is to be."""
    return _ATTRIBUTES.sub(
        lambda line: re.sub(r"\b(noinline|optnone) ", "", line[0]) if " optnone " in line[0] else line[0], text
    )


def _content(value: str) -> tuple[str | bytes, str]:
    """The code, and what it is called in messages."""
    path = import_path(value)
    if path is None:
        return value, "import_llvm"
    try:
        return (path.read_bytes() if path.suffix == ".bc" else path.read_text(encoding="utf-8")), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise CannotImport(
            f"import_llvm: the file {value} cannot be read",
            why=str(error),
            hint=_WANTED,
        ) from None


def _values(module: ModuleRef) -> list[ValueRef]:
    return [*module.functions, *module.global_variables]


@contextmanager
def _parsed(code: str | bytes, name: str, context: ContextRef) -> Iterator[ModuleRef]:
    """The module that text or bitcode denotes, verified. It is closed before its context: engine.py says why."""
    import llvmlite.binding as llvm

    try:
        module = llvm.parse_assembly(code, context) if isinstance(code, str) else llvm.parse_bitcode(code, context)
    except RuntimeError as error:
        raise _refused(code, name, str(error)) from None
    with module:
        try:
            module.verify()
        except RuntimeError as error:
            raise _refused(code, name, str(error)) from None
        yield module


def _refused(code: str | bytes, name: str, message: str) -> LoopwrightError:
    import llvmlite.binding as llvm

    if name == _GENERATED:
        return InternalError(f"LLVM refuses the generated text: {message.strip()}")
    place = _PLACE.search(message)
    at = None
    if place is not None and isinstance(code, str):
        number, column = int(place[1]), int(place[2]) - 1
        lines = code.splitlines()
        text = lines[number - 1] if number <= len(lines) else ""
        at = SourceLine(name, number, column, text=text)
    version = llvm.llvm_version_info[0]
    return CannotImport(
        f"import_llvm: LLVM {version} does not read the code: {place[3] if place else message.strip()}",
        at=at,
        hint=f"give what clang -S -emit-llvm of version {version} or a little older writes; the text of other versions "
        "of LLVM may differ",
    )
