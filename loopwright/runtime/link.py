"""Link compiled objects with the C compiler of the machine: `create_shared`, `create_staticlib`, `create_executable`.

A compiler is looked for in this order: `cc=` of the call, `CC` in the environment, `cc`, `gcc`, `clang` on PATH (for
another machine its own, such as `riscv64-linux-gnu-gcc`), and the one in the Python package `ziglang`. A file appears
under its name only when it is complete, so a process that has an older library of that name loaded is not disturbed.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.native_build import COMPILERS

TIMEOUT: Final = 600  # seconds
# For C among the files: nothing may be fused that the program keeps apart.
COMPILE: Final = ("-fPIC", "-O2", "-std=gnu11", "-ffp-contract=off")


class NoLinker(LoopwrightError):
    """A library was to be linked, and there is no C compiler to do it.

    Objects (`.o`) and sources need none. For shared libraries install a compiler (`apt install gcc`, or `pip install
    ziglang`, which needs no rights), or name one with `cc=` or the environment variable `CC`.

    For example:

        from loopwright.runtime.link import create_shared

        create_shared("kernel.so", ["kernel.o"], cc="no-such-compiler")
    """

    code = "LW0138"

    def __init__(self, looked_for: Sequence[str], triple: str = "") -> None:
        package = f"gcc-{triple.split('-')[0]}-linux-gnu" if triple else "gcc"
        what = f"links for {triple}" if triple else "links shared libraries"
        super().__init__(
            f"there is no C compiler here that {what}",
            why=f"looked for {', '.join(looked_for)}",
            hint=f"install one (apt install {package}; or pip install ziglang), or name one with cc= or CC",
            fields={"looked_for": list(looked_for), "triple": triple},
        )


class LinkFailed(LoopwrightError):
    """The C compiler refused to link; the message holds what it said.

    Usually a library is missing that defines a function called with `call_extern`: add it with `addons=[…]`, or
    with `options=["-lname"]`.

    For example:

        import sys
        from loopwright.runtime.link import create_shared

        create_shared("kernel.so", ["kernel.o"], cc=sys.executable)  # which is no compiler
    """

    code = "LW0139"

    def __init__(self, command: Sequence[str], said: str) -> None:
        super().__init__(
            f"{os.path.basename(command[0])} could not link the library",
            why=said.strip()[-1500:] or "it said nothing",
            hint="the command is in the field `command`",
            fields={"command": list(command), "said": said},
        )


class NoSuchFolder(LoopwrightError, FileNotFoundError):
    """A file was to be written into a folder that does not exist. Folders are never made: the name may be misspelt.

    For example:

        from loopwright.runtime.link import create_shared

        create_shared("no-such-folder/kernel.so", ["kernel.o"])
    """

    code = "LW0148"

    def __init__(self, file: Path) -> None:
        what = "is no folder" if file.parent.exists() else "does not exist"
        super().__init__(
            f"cannot write {file}: the folder {file.parent} {what}",
            hint="give the path of a folder" if file.parent.exists() else f"make it first: mkdir -p {file.parent}",
            fields={"file": str(file), "folder": str(file.parent)},
        )


def require_folder(file: str | Path) -> None:
    """Refuse to write a file whose folder is not there, before any work is done for it."""
    if not Path(file).parent.is_dir():
        raise NoSuchFolder(Path(file))


def find_compiler(cc: str | Sequence[str] | None = None, triple: str = "") -> list[str]:
    """The command of a C compiler that links; for another machine's `triple`, one that links for it."""
    if cc:
        command = shlex.split(cc) if isinstance(cc, str) else list(cc)
        if shutil.which(command[0]) is None:
            raise NoLinker(command[:1], triple)
        return command
    looked_for = []
    if triple:
        looked_for = cross_compilers(triple)
    else:
        given = shlex.split(os.environ.get("CC", ""))
        if given and shutil.which(given[0]):
            return given
        looked_for = [*given[:1], *COMPILERS]
    for name in looked_for:
        if shutil.which(name):
            return [name]
    if _has_zig():
        target = ["-target", _zig_target(triple)] if triple else []
        return [sys.executable, "-m", "ziglang", "cc", *target]
    raise NoLinker([*looked_for, "the Python package ziglang"], triple)


def _has_zig() -> bool:
    return importlib.util.find_spec("ziglang") is not None


def cross_compilers(triple: str) -> list[str]:
    """The names under which a compiler for `triple` is usually installed."""
    parts = triple.split("-")
    arch = parts[0].replace("amd64", "x86_64")
    if arch.startswith(("thumb", "arm")) and ("none" in parts or "eabi" in parts[-1]) and "linux" not in parts:
        return ["arm-none-eabi-gcc"]
    if arch.startswith(("thumb", "arm")) and arch != "arm64":
        return ["arm-linux-gnueabihf-gcc", "arm-linux-gnueabi-gcc"]
    arch = {"arm64": "aarch64", "i386": "i686"}.get(arch, arch)
    return [f"{arch}-linux-gnu-gcc", f"{arch}-unknown-linux-gnu-gcc", f"{arch}-linux-musl-gcc"]


def _zig_target(triple: str) -> str:
    """The machine in zig's words: a plain architecture, with the float convention in the name of the system."""
    parts = triple.split("-")
    arch = {"arm64": "aarch64", "amd64": "x86_64", "i386": "x86", "i686": "x86"}.get(parts[0], parts[0])
    if "linux" not in parts:
        return f"{arch}-freestanding"
    if arch.startswith(("arm", "thumb")):
        return f"arm-linux-gnueabi{'hf' if parts[-1].endswith('hf') else ''}"
    return f"{arch}-linux-gnu"


def create_shared(
    output: str,
    objects: str | Sequence[str],
    options: Sequence[str] | None = None,
    cc: str | Sequence[str] | None = None,
    triple: str = "",
) -> str:
    """Link objects (and C sources, archives, libraries) into the shared library `output`."""
    shared = ["-shared", *COMPILE, "-pthread"]
    return _compile(output, objects, shared, [*(options or ()), "-lm"], cc, triple)


def create_executable(
    output: str,
    objects: str | Sequence[str],
    options: Sequence[str] | None = None,
    cc: str | Sequence[str] | None = None,
    triple: str = "",
) -> str:
    """Link objects and C sources into the program `output`."""
    return _compile(output, objects, ["-O2", "-pthread"], [*(options or ()), "-lm"], cc, triple)


def create_object(
    output: str, objects: str | Sequence[str], cc: str | Sequence[str] | None = None, triple: str = ""
) -> str:
    """Merge objects into the one object `output`."""
    return _compile(output, objects, ["-r", "-nostdlib", *COMPILE], [], cc, triple)


def create_object_file(output: str, source: str, options: Sequence[str] | None = None) -> str:
    """Compile one C or C++ source to the object `output`."""
    return _compile(output, source, ["-c", *COMPILE], list(options or ()), None, "")


def create_staticlib(output: str, inputs: str | Sequence[str], ar: str | None = None) -> str:
    """Put objects into the archive `output`."""
    command = shlex.split(ar or os.environ.get("AR", "") or "ar")
    if shutil.which(command[0]) is None:
        if ar or not _has_zig():
            raise NoLinker(command[:1])
        command = [sys.executable, "-m", "ziglang", "ar"]
    require_folder(output)
    with _appearing(output) as result:
        _run([*command, "rcs", str(result), *_names(inputs)])
        os.replace(result, output)
    return output


def get_cc() -> str | None:
    """The C compiler that is used unless another is named, or None."""
    try:
        return shlex.join(find_compiler())
    except NoLinker:
        return None


def _compile(
    output: str,
    objects: str | Sequence[str],
    flags: Sequence[str],
    options: Sequence[str],
    cc: str | Sequence[str] | None,
    triple: str,
) -> str:
    require_folder(output)
    command = find_compiler(cc, triple)
    with _appearing(output) as result:
        full = [*command, *flags, "-o", str(result), *_in_c(command, _names(objects)), *options]
        _run(full)
        if not result.exists():
            raise LinkFailed(full, "it reported success, and wrote nothing")
        os.replace(result, output)
    return output


def _in_c(command: Sequence[str], files: Sequence[str]) -> list[str]:
    """The files for a compiler of C++, which would take C for C++."""
    if not Path(command[0]).name.rstrip("0123456789.-").endswith("++"):
        return list(files)
    return [word for file in files for word in (("-x", "c", file, "-x", "none") if file.endswith(".c") else (file,))]


def _names(files: str | Sequence[str]) -> list[str]:
    return [files] if isinstance(files, str) else [str(file) for file in files]


class _appearing:
    """A path in a directory of its own beside `output`, on the same file system, so that a rename moves it there."""

    def __init__(self, output: str) -> None:
        self.output = Path(output).absolute()

    def __enter__(self) -> Path:
        self.directory = tempfile.TemporaryDirectory(prefix=".link-", dir=self.output.parent)
        return Path(self.directory.name) / self.output.name

    def __exit__(self, *_: object) -> None:
        self.directory.cleanup()


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkFailed(command, str(error)) from error
    if done.returncode != 0:
        raise LinkFailed(command, done.stderr + done.stdout)
