"""constants: the weights of a model, as bytes in memory, in an object, or in a file beside the library.

They never pass through LLVM text. The main function asks `lw_constants_NAME()` where they are, and who answers differs:
in this process a function that knows an address, in a library the section that holds them, and with
`constants="file"` a C function that maps the file when it is first asked.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np

from loopwright.relay.native.errors import BadConstantsPlace, ConstantsTooLarge
from loopwright.relay.native.main_function import getter_name
from loopwright.relay.native.pack import ALIGNMENT
from loopwright.relay.native.plan import Plan
from loopwright.target import CpuDescription

PLACES: Final = ("library", "file")
_LIMIT: Final = (2 << 30) - (64 << 20)  # what code reaches, less room for the code
_MAGIC: Final = b"LWCONST1"
_SYMBOL: Final = "lw.constants"
HEADER_BYTES: Final = 64
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def gather(plan: Plan) -> Bytes:
    """All constants in one aligned piece of memory, each at its offset."""
    room = np.zeros(plan.constant_bytes + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    memory = room[start : start + plan.constant_bytes]
    written: set[int] = set()
    for value, offset in plan.constant_offsets.items():
        content = plan.prepared.array(value).reshape(-1).view(np.uint8)
        if offset in written or not content.size:  # one without elements stands where the next one begins
            continue
        written.add(offset)
        memory[offset : offset + content.size] = content
        gap = -content.size % ALIGNMENT
        memory[offset + content.size : offset + content.size + gap] = 0
    return memory


def require_size(name: str, size: int) -> None:
    """Refuse constants that a library cannot hold."""
    if size > _LIMIT:
        raise ConstantsTooLarge(name, size)


def require_place(place: object) -> None:
    """Refuse a place for constants that there is not."""
    if place not in PLACES:
        raise BadConstantsPlace(place)


def object_at(name: str, address: int, cpu: CpuDescription) -> bytes:
    """An object for this process: the constants are where they are."""
    from loopwright.codegen.llvm.engine import compile_text

    text = f"define hidden ptr @{getter_name(name)}() {{\n  ret ptr inttoptr (i64 {address} to ptr)\n}}\n"
    return compile_text(text, cpu, laid_out=True).object_bytes


def object_with(name: str, content: Bytes, cpu: CpuDescription) -> bytes:
    """An object that holds the constants in a section of its own."""
    from loopwright.codegen.llvm.constant_data import append, can_hold_data, reserve
    from loopwright.codegen.llvm.engine import compile_text
    from loopwright.codegen.llvm.types import byte_string

    require_size(name, content.size)
    in_text = not can_hold_data(cpu.triple)
    room = reserve(_SYMBOL, ALIGNMENT, ALIGNMENT)
    if in_text:
        start = byte_string(content.tobytes())
        room = f"@{_SYMBOL} = internal externally_initialized constant {start}, align {ALIGNMENT}"
    text = f"{room}\ndefine hidden ptr @{getter_name(name)}() {{\n  ret ptr @{_SYMBOL}\n}}\n"
    image = compile_text(text, cpu, laid_out=True).object_bytes
    return image if in_text else append(image, _SYMBOL, content.data, ALIGNMENT)


# --- a file of their own ------------------------------------------------------------------------------------------


def file_bytes(content: Bytes) -> list[bytes | memoryview]:
    """What the file holds: a header of 64 bytes (magic, size, checksum), then the constants."""
    head = _MAGIC + content.size.to_bytes(8, "little") + checksum(content).to_bytes(8, "little")
    return [head.ljust(HEADER_BYTES, b"\0"), content.data]


def checksum(content: Bytes) -> int:
    """A number that tells a file from another of the same size."""
    return zlib.crc32(content.data)


def reader_source(name: str, file_name: str, content: Bytes) -> str:
    """A C file that maps `file_name`, which lies beside the library, when the constants are first asked for."""
    return (
        _READER.replace("@GETTER@", getter_name(name))
        .replace("@FILE@", _c_text(file_name))
        .replace("@SIZE@", str(content.size))
        .replace("@SUM@", str(checksum(content)))
        .replace("@HEAD@", str(HEADER_BYTES))
        .replace("@MAGIC@", _MAGIC.decode())
    )


def _c_text(text: str) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )


_READER: Final = r"""/* Maps the constants of a model, which are in a file beside this library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char* mapped;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static const char* map_file(void) {
  char path[4096];
  Dl_info own;
  const char* slash = NULL;
  path[0] = 0;
  if (dladdr((void*)&mapped, &own) != 0 && own.dli_fname != NULL) slash = strrchr(own.dli_fname, '/');
  int folder = slash == NULL ? 0 : (int)(slash - own.dli_fname) + 1;
  if (snprintf(path, sizeof path, "%.*s%s", folder, slash == NULL ? "" : own.dli_fname, "@FILE@") >= (int)sizeof path)
    return NULL;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  const char* found = NULL;
  struct stat about;
  if (fstat(file, &about) == 0 && (uint64_t)about.st_size == @SIZE@ull + @HEAD@) {
    char* memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED) {
      uint64_t size, sum;
      memcpy(&size, memory + 8, 8);
      memcpy(&sum, memory + 16, 8);
      if (memcmp(memory, "@MAGIC@", 8) == 0 && size == @SIZE@ull && sum == @SUM@ull)
        found = memory + @HEAD@;
      else
        munmap(memory, (size_t)about.st_size);
    }
  }
  close(file);
  return found;
}

__attribute__((visibility("hidden"))) const void* @GETTER@(void) {
  const char* found = __atomic_load_n(&mapped, __ATOMIC_ACQUIRE);
  if (found != NULL) return found;
  pthread_mutex_lock(&guard);
  if (mapped == NULL) __atomic_store_n(&mapped, map_file(), __ATOMIC_RELEASE);
  found = mapped;
  pthread_mutex_unlock(&guard);
  return found;
}
"""
