"""raising: how generated code reports an error, in a Python process and in a plain C program.

    define internal void @lw.raise(ptr %kind, ptr %message)

tvm-ffi's error function is referenced weakly: in a C program that does not have it, its address is null, and the text
goes to `loopwright_set_error` of the C runtime instead (`loopwright_last_error()` gives it back), or nowhere in a
program that has neither. The status of the call tells in every case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText

_RAISE: Final = "lw.raise"
_ROOM: Final = 24  # bytes that a number takes in a message
_WAYS: Final = ("TVMFFIErrorSetRaisedFromCStr", "loopwright_set_error")  # the first that the program has


def emit_raise(module: ModuleText, builder: FunctionBuilder, kind: str, message: str) -> None:
    """Report an error of class `kind`; `message` is the symbol of its text. The caller returns -1 next."""
    if not module.is_defined(_RAISE):
        module.mark_defined(_RAISE)
        module.define(_definition(module))
    builder.do(f"call void @{_RAISE}(ptr {module.string(kind)}, ptr {message})")


def emit_raise_with(
    module: ModuleText, builder: FunctionBuilder, kind: str, message: str, values: Sequence[str]
) -> None:
    """The same for a text that shows integers: `message` is a format of snprintf for `values`, i64s.

    The text is put together in a function of its own: the one that fails needs no room for it on its stack.
    """
    key = hashlib.sha256(f"{kind}\n{message}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    name = f"{_RAISE}.{key}"
    if not module.is_defined(name):
        module.mark_defined(name)
        params = [f"i64 %v{k}" for k in range(len(values))]
        signature = f"internal void @{name}({', '.join(params)})"
        b = FunctionBuilder(module, signature, "nounwind noinline optnone cold ")
        size = len(message.encode("utf-8", "replace")) + _ROOM * len(values) + 1
        text = b.alloca("i8", size, 1)
        module.declare("snprintf", "i32 @snprintf(ptr, i64, ptr, ...)")
        given = ", ".join([f"ptr {text}", f"i64 {size}", f"ptr {module.string(message)}", *params])
        b.do(f"call i32 (ptr, i64, ptr, ...) @snprintf({given})")
        emit_raise(module, b, kind, text)
        b.ret("void")
        module.define(b.text())
    builder.do(f"call void @{name}({', '.join(f'i64 {value}' for value in values)})")


def _definition(module: ModuleText) -> str:
    b = FunctionBuilder(module, f"internal void @{_RAISE}(ptr %kind, ptr %message)", "nounwind noinline optnone cold ")
    for name in _WAYS:
        module.declare(name, f"extern_weak void @{name}(ptr, ptr)")
        there, next_way = b.label("there"), b.label("next")
        b.branch(b.value(f"icmp ne ptr @{name}, null"), there, next_way)
        b.start(there)
        b.do(f"call void @{name}(ptr %kind, ptr %message)")
        b.ret("void")
        b.start(next_way)
    b.ret("void")
    return b.text()
