"""package: a compiled model in one archive, and how it comes back.

metadata.json    inputs and outputs, kernels, memory, the target: what `inspect` shows without loading anything
mod.so           the model, weights included; or mod.tar, the objects, to be linked where they will run
mod.weights      the weights, where they were to be in a file of their own
mod.json         the launches as a graph
mod.params       parameters that are not in the library: none
mod.h, main.c    how to call it from C, and a program that does
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from loopwright.cli.interface import Interface, of_description, of_json
from loopwright.cli.model_files import NoSuchModel
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import JsonObject, NestedTooDeep, read_json
from loopwright.runtime.library_file import ForeignLibrary
from loopwright.runtime.load import load_module
from loopwright.runtime.module import Module

FORMAT: Final = 1  # of metadata.json; grows when an older reader could not use a newer one
METADATA: Final = "metadata.json"
_LIBRARIES: Final = ("mod.so", "mod.tar")
_MOST_METADATA: Final = 64 << 20


class BadPackage(LoopwrightError, ValueError):
    """A package cannot be read: it is cut off, no archive at all, or lacks a part.

    `loopwright compile` writes packages.

    For example:

        from pathlib import Path
        from loopwright.cli.package import read_metadata

        Path("model.tar").write_bytes(b"no archive")
        read_metadata("model.tar")
    """

    code = "LW0052"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path} is no package that can be read: {why}",
            hint="write it again with `loopwright compile MODEL -o model.tar`",
            fields={"path": path},
        )


@dataclass(frozen=True)
class LoadedPackage:
    """A compiled model that was read from a file."""

    path: str
    module: Module
    interface: Interface
    metadata: JsonObject
    folder: tempfile.TemporaryDirectory[str] | None = (
        None  # of the unpacked library: weights in a file are mapped at the first call
    )

    def __call__(self, *arrays: object) -> None:
        """The native function: inputs, then outputs."""
        self.module(*arrays)


def write_package(path: Path, parts: Mapping[str, Path | bytes]) -> None:
    """An archive of these files; equal parts give equal bytes."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:  # which knows files beyond 8 GiB
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, BytesIO(content))
            else:
                info.size = content.stat().st_size
                with content.open("rb") as file:
                    archive.addfile(info, file)


def read_metadata(path: str) -> JsonObject | None:
    """What the package says about itself; None for an archive of objects without it."""
    if not Path(path).is_file():
        raise NoSuchModel(Path(path))
    try:
        with tarfile.open(path) as archive:
            if METADATA not in archive.getnames():
                return None
            data = read_json(_content(path, archive, METADATA, _MOST_METADATA))
    except BadPackage:
        raise
    except NestedTooDeep as error:
        raise BadPackage(path, f"in its {METADATA} {error.problem}") from None
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise BadPackage(path, _said(error)) from None
    if not isinstance(data, dict) or "loopwright_package" not in data:
        return None  # export_library writes archives of objects with a description of that name
    if data["loopwright_package"] != FORMAT:
        raise BadPackage(path, f"it has format {data['loopwright_package']}, this version reads {FORMAT}")
    return data


def _said(error: Exception) -> str:
    """What went wrong with an archive; tarfile lists what each way of reading said, and knows none that fits."""
    text = str(error)
    return "it is no archive" if isinstance(error, tarfile.ReadError) and "\n" in text else text.splitlines()[0]


def _content(path: str, archive: tarfile.TarFile, name: str, most: int) -> bytes:
    member = archive.getmember(name)
    stream = archive.extractfile(member) if member.isfile() and member.size <= most else None
    if stream is None:
        raise BadPackage(path, f"its part {name} is no plain file, or too large")
    return stream.read()


def load_package(path: str) -> LoadedPackage:
    """The model in a package, or in a library or archive that `export_library` wrote."""
    if not Path(path).is_file():
        raise NoSuchModel(Path(path))
    metadata = read_metadata(path) if Path(path).suffix.lower() == ".tar" else None
    if metadata is None:
        module = load_module(path)
        return LoadedPackage(path, module, of_description(module.description, path), {})
    try:
        interface = of_json(metadata["interface"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadPackage(path, f"its metadata is damaged: {error}") from None
    folder = tempfile.TemporaryDirectory(prefix="loopwright-")
    try:
        module = load_module(_unpacked(path, Path(folder.name)))
    except ForeignLibrary as error:
        folder.cleanup()
        raise ForeignLibrary(path, str(error.why), error.missing, what="package") from None
    except BaseException:
        folder.cleanup()
        raise
    return LoadedPackage(path, module, interface, metadata, folder)


def _unpacked(path: str, folder: Path) -> str:
    """The library of the package as a file in the folder, its weights beside it."""
    try:
        with tarfile.open(path) as archive:
            members = {member.name: member for member in archive.getmembers() if member.isfile()}
            library = next((name for name in _LIBRARIES if name in members), None)
            if library is None:
                raise BadPackage(path, f"it holds neither {' nor '.join(_LIBRARIES)}")
            for name in (library, "mod.weights"):
                stream = archive.extractfile(members[name]) if name in members else None
                if stream is not None:
                    with (folder / name).open("wb") as file:
                        while block := stream.read(1 << 22):
                            file.write(block)
    except (tarfile.TarError, EOFError) as error:
        raise BadPackage(path, _said(error)) from None
    return str(folder / library)
