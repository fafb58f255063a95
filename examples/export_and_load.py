"""Export a compiled function, and run it where there is no compiler: from C, and from a Python that only loads it.

    python examples/export_and_load.py

A softmax over rows is built once and written as a shared library with its C header. Then two programs use the file:
one in C, which knows nothing but the header, and one in Python, in which the compiler was never imported.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import loopwright
from loopwright.runtime.link import create_executable
from loopwright.script import tir as T

COLUMNS = 8


@T.prim_func
def softmax(x: T.handle, y: T.handle):
    rows = T.int32()
    X = T.match_buffer(x, (rows, COLUMNS), "float32")
    Y = T.match_buffer(y, (rows, COLUMNS), "float32")
    largest = T.alloc_buffer((rows,), "float32")
    total = T.alloc_buffer((rows,), "float32")
    for i in T.parallel(rows):
        largest[i] = X[i, 0]
        for j in range(COLUMNS):
            largest[i] = T.max(largest[i], X[i, j])
        total[i] = T.float32(0)
        for j in range(COLUMNS):
            total[i] = total[i] + T.exp(X[i, j] - largest[i])
        for j in range(COLUMNS):
            Y[i, j] = T.exp(X[i, j] - largest[i]) / total[i]


C_PROGRAM = """
#include <stdio.h>
#include "softmax.h"

enum { ROWS = 3, COLUMNS = 8 };

int main(void) {
  float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 5);
  if (loopwright_softmax(x, y, ROWS) != 0) {
    fprintf(stderr, "%s\\n", loopwright_last_error());
    return 1;
  }
  for (int i = 0; i < ROWS; i++) {
    float sum = 0;
    for (int j = 0; j < COLUMNS; j++) sum += y[i * COLUMNS + j];
    printf("row %d sums to %.4f\\n", i, sum);
  }
  return 0;
}
"""

PYTHON_PROGRAM = """
import sys
import numpy as np
from loopwright.runtime import load_module

module = load_module(sys.argv[1])
x = (np.arange(24) % 5).astype("float32").reshape(3, 8)
y = np.empty_like(x)
module(x, y)
print("rows sum to", y.sum(axis=1).round(4).tolist())
try:
    module(x, y[:, :4])
except ValueError as error:
    print("refused:", error.problem)
print("the compiler was imported:", "loopwright.ir" in sys.modules)
"""


def main() -> None:
    module = loopwright.build(softmax)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = module.export_library(folder / "libsoftmax.so")
        header = module.export_library(folder / "softmax.h")
        print("the header declares:")
        print("  " + next(line for line in Path(header).read_text().splitlines() if line.startswith("int32_t")))

        print("\nin a C program:", flush=True)
        (folder / "main.c").write_text(C_PROGRAM)
        program = create_executable(str(folder / "main"), [str(folder / "main.c"), library], [f"-Wl,-rpath,{folder}"])
        subprocess.run([program], check=True)

        print("\nin a Python that only loads it:", flush=True)
        subprocess.run([sys.executable, "-c", PYTHON_PROGRAM, library], check=True)


if __name__ == "__main__":
    main()
