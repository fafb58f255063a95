"""constants: the weights of a model, as bytes in memory, in an object, or in a file beside the library.

They never pass through LLVM text. The main function asks `lw_constants_NAME()` where they are, and who answers differs:
in this process a function that knows an address, in a library the section that holds them, and with
`constants="file"` a C function that maps the file when it is first asked.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from loopwright.model.arena_packing import ALIGNMENT
from loopwright.model.errors import BadConstantsPlace, ConstantsTooLarge
from loopwright.model.main_function import getter_name
from loopwright.model.plan import Plan
from loopwright.target import CpuDescription

PLACES: Final = ("library", "file")
_LIMIT: Final = (2 << 30) - (64 << 20)  # what code reaches, less room for the code
_MAGIC: Final = b"LWCONST2"
_SYMBOL: Final = "lw.constants"
HEADER_BYTES: Final = 64
_CHUNK: Final = 1 << 20  # words
Bytes = npt.NDArray[np.uint8]


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


def require_place(location: object) -> None:
    """Refuse a place for constants that there is not."""
    if location not in PLACES:
        raise BadConstantsPlace(location)


def object_at(name: str, address: int, cpu: CpuDescription) -> bytes:
    """An object for this process: the constants are where they are."""
    from loopwright.codegen.llvm.effort import Effort
    from loopwright.codegen.llvm.engine import compile_text

    text = f"define hidden ptr @{getter_name(name)}() {{\n  ret ptr inttoptr (i64 {address} to ptr)\n}}\n"
    return compile_text(text, cpu, effort=Effort.TIDY).object_bytes


def object_with(name: str, content: Bytes, cpu: CpuDescription) -> bytes:
    """An object that holds the constants in a section of its own."""
    from loopwright.codegen.llvm.constant_data import append, is_elf, reserve
    from loopwright.codegen.llvm.effort import Effort
    from loopwright.codegen.llvm.engine import compile_text
    from loopwright.codegen.llvm.types import byte_string

    require_size(name, content.size)
    in_text = not is_elf(cpu.triple)
    room = reserve(_SYMBOL, ALIGNMENT, ALIGNMENT)
    if in_text:
        start = byte_string(content.tobytes())
        room = f"@{_SYMBOL} = internal externally_initialized constant {start}, align {ALIGNMENT}"
    text = f"{room}\ndefine hidden ptr @{getter_name(name)}() {{\n  ret ptr @{_SYMBOL}\n}}\n"
    image = compile_text(text, cpu, effort=Effort.TIDY).object_bytes
    return image if in_text else append(image, _SYMBOL, content.data, ALIGNMENT)


# --- a file of their own ------------------------------------------------------------------------------------------


def file_bytes(content: Bytes) -> list[bytes | memoryview]:
    """What the file holds: a header of 64 bytes (magic, size, both sums), then the constants."""
    head = b"".join([_MAGIC, *[number.to_bytes(8, "little") for number in (content.size, *sums(content))]])
    return [head.ljust(HEADER_BYTES, b"\0"), content.data]


def sums(content: Bytes) -> tuple[int, int]:
    """The sum of the words of eight bytes, and the sum of these sums, modulo 2^64: a checksum as fast as memory.

    One word that differs is seen in the first sum, words that changed places in the second.
    """
    whole = content.size // 8
    rest = np.zeros(8, np.uint8)
    rest[: content.size - 8 * whole] = content[8 * whole :]
    parts = [content[: 8 * whole].view("<u8"), rest.view("<u8")] if content.size % 8 else [content.view("<u8")]
    left = sum([part.size for part in parts])  # how often a word counts in the second sum
    plain = second = np.uint64(0)
    with np.errstate(over="ignore"):
        for part in parts:
            for start in range(0, part.size, _CHUNK):
                words = part[start : start + _CHUNK]
                times = np.arange(left, left - words.size, -1, dtype=np.uint64)
                plain, second = plain + words.sum(dtype=np.uint64), second + (words * times).sum(dtype=np.uint64)
                left -= words.size
    return int(plain), int(second)


def reader_source(name: str, file_name: str, content: Bytes) -> str:
    """A C file that maps `file_name`, which lies beside the library, when the constants are first asked for."""
    plain, second = sums(content)
    return (
        _READER.replace("@GETTER@", getter_name(name))
        .replace("@FILE@", _c_text(file_name))
        .replace("@SIZE@", str(content.size))
        .replace("@SUM@", str(plain))
        .replace("@SECOND@", str(second))
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

/* The same bytes as were written? Words of eight bytes are summed, and so are the sums. */
static int is_whole(const char* bytes) {
  uint64_t sum = 0, second = 0, word, k;
  for (k = 0; k + 8 <= @SIZE@ull; k += 8) {
    memcpy(&word, bytes + k, 8);
    sum += word;
    second += sum;
  }
  if (k < @SIZE@ull) {
    word = 0;
    memcpy(&word, bytes + k, (size_t)(@SIZE@ull - k));
    sum += word;
    second += sum;
  }
  return sum == @SUM@ull && second == @SECOND@ull;
}

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
      if (memcmp(memory, "@MAGIC@", 8) == 0 && is_whole(memory + @HEAD@))
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
