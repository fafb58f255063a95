"""C and C++ to LLVM text, with clang: for `pragma import_llvm`, or to read what a loop becomes."""

from __future__ import annotations

import os
from collections.abc import Sequence

from loopwright.contrib import utils
from loopwright.contrib.compilers import NoCompiler, run

_VERSIONS = range(22, 13, -1)


def find_clang(required: bool = True) -> list[str]:
    """The clangs on PATH, plain `clang` first, then the newest; without any, an error where one is `required`."""
    names = ["clang", *(f"clang-{version}" for version in _VERSIONS)]
    result = [name for name in names if utils.which(name)]
    if not result and required:
        raise NoCompiler("clang", names)
    return result


def create_llvm(
    inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] | None = None, cc: str | None = None
) -> str:
    """The LLVM text of one C or C++ source, given as a file or as text; also written to `output`."""
    compiler = cc or find_clang()[0]
    folder = utils.tempdir()
    given = [inputs] if isinstance(inputs, str) else list(inputs)
    files = []
    for number, text in enumerate(given):
        if utils.is_source_path(text) and os.path.exists(text):
            files.append(text)
        else:
            files.append(folder.relpath(f"input{number}.cc"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(text)
    result = output or folder.relpath("output.ll")
    run([compiler, *(options or []), "-S", "-emit-llvm", "-o", result, *files])
    with open(result, encoding="utf-8") as file:
        return file.read()
