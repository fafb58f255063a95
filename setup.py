"""The native runtime, built into the wheel where there is a C compiler. Everything else is in pyproject.toml.

The libraries are linked with nothing of Python's, so one wheel serves every version: its tag is py3-none-PLATFORM.
Without a compiler the wheel is pure (py3-none-any) and they are built at first use, on a machine that has one.
An editable install builds nothing either.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

native = runpy.run_path(str(Path(__file__).parent / "loopwright" / "runtime" / "native_build.py"))


def find_compiler() -> list[str] | None:
    for command in (shlex.split(os.environ.get("CC", "")), *[[name] for name in native["COMPILERS"]]):
        if command and shutil.which(command[0]):
            return command
    return None


class BuildWithLibraries(build_py):
    """Copy the package, and compile its C files beside their sources."""

    has_libraries = False

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        sources = [Path(self.build_lib) / "loopwright" / name for name in native["SHIPPED"]]
        try:
            self.build_libraries(sources)
            self.has_libraries = True
        except native["CompilerFailed"] as error:
            self.warn(f"the wheel will be pure: {error}")
            for source in sources:  # perhaps of an earlier build in the same folder
                native["prebuilt_path"](source).unlink(missing_ok=True)

    def build_libraries(self, sources: list[Path]) -> None:
        compiler = find_compiler()
        if compiler is None:
            raise native["CompilerFailed"]("there is no C compiler")
        for source in sources:
            native["compile_library"](compiler, source, native["prebuilt_path"](source))


class PlatformWheel(bdist_wheel):
    """A wheel for this platform and every Python 3 if it holds libraries, and a pure one if not."""

    def run(self) -> None:
        self.run_command("build")  # only now is it known; `run` does not build again
        if self.get_finalized_command("build_py").has_libraries:
            self.root_is_pure = False
            self.distribution.has_ext_modules = lambda: True  # has the files at the top of the wheel
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        return super().get_tag() if self.root_is_pure else ("py3", "none", super().get_tag()[2])


setup(cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel})
