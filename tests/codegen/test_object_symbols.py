from __future__ import annotations

import threading

import pytest

from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.object_symbols import read_symbols
from loopwright.runtime.errors import NotBuilt
from loopwright.target import Target

TEXT = """
@table = constant [2 x i32] [i32 1, i32 2]
@hidden = internal global i32 0
declare i32 @needed(i32)
declare extern_weak i32 @maybe(i32)
define i32 @defined(i32 %x) {
  %a = call i32 @needed(i32 %x)
  %b = call i32 @maybe(i32 %a)
  %c = call i32 @local(i32 %b)
  ret i32 %c
}
define internal i32 @local(i32 %x) noinline {
  %old = load i32, ptr @hidden
  store i32 %x, ptr @hidden
  ret i32 %old
}
"""


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-unknown-linux-gnu",
        "aarch64-linux-gnu",
        "armv7-linux-gnueabihf",  # 32-bit ELF
        "s390x-linux-gnu",  # big-endian ELF
        "arm64-apple-macosx14.0.0",  # Mach-O
    ],
)
def test_symbols_of(triple):
    found = read_symbols(compile_text(TEXT, Target(f"llvm -mtriple={triple}")).object_bytes)
    assert found.defined == {"table", "defined"}
    assert found.needed - {"__aeabi_unwind_cpp_pr0", "__stack_chk_guard"} == {"needed"}
    assert found.needed_weakly == {"maybe"}


def test_other_formats_are_refused_by_name():
    image = compile_text(TEXT, Target("llvm -mtriple=wasm32-unknown-unknown")).object_bytes
    with pytest.raises(NotBuilt, match="neither ELF nor 64-bit Mach-O is not built yet"):
        read_symbols(image)


def test_threads_may_compile_at_the_same_time():
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(compile_text(TEXT, Target("llvm")).object_bytes))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1
