"""Archives: `.tar` files of objects, as `export_library` writes them and linkers here take them."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence

from loopwright.contrib.utils import TempDirectory


def tar(output: str, files: str | Sequence[str], options: object = None) -> None:
    """Write `files` into the archive `output`, each under its own name without folders."""
    listed = [files] if isinstance(files, str) else list(files)
    with tarfile.open(output, "w") as archive:
        for file in sorted(listed, key=os.path.basename):  # equal files make equal archives
            archive.add(file, arcname=os.path.basename(file), filter=_anonymous)


def untar(tar_file: str, directory: str) -> None:
    """Unpack the archive into the folder; an archive that would write elsewhere is refused."""
    with tarfile.open(tar_file) as archive:
        archive.extractall(directory, filter="data")


def normalize_file_list_by_unpacking_tars(temp: TempDirectory, file_list: Sequence[str]) -> list[str]:
    """The files, with each `.tar` among them replaced by what it holds, unpacked into `temp`."""
    result = []
    for number, path in enumerate(file_list):
        if not path.endswith(".tar"):
            result.append(path)
            continue
        folder = temp.relpath(f"unpacked{number}")
        os.makedirs(folder)
        untar(path, folder)
        result += sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return result


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


tar.output_format = "tar"  # type: ignore[attr-defined]
