"""A task's key is the workload's, its fingerprint the CPU's."""

from __future__ import annotations

import math

from loopwright import te
from loopwright.ir import IRModule
from loopwright.target import Target
from loopwright.tune import Record, Task


def task(extent: int, name: str = "main", tensor: str = "A", target: str = "llvm -mcpu=neoverse-n1") -> Task:
    given = te.placeholder((extent, 5), name=tensor)
    made = te.compute((extent, 5), lambda i, j: given[i, j] + 1.0, name=f"{tensor}_plus")
    return Task(name, IRModule({name: te.create_prim_func([given, made])}), Target(target))


def test_names_do_not_count():
    assert task(4).key == task(4, "other", "Z").key != task(5).key


def test_targets_of_one_cpu_share_a_fingerprint():
    spelled_otherwise = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1"
    one = task(4, target="llvm -mcpu=neoverse-n1 -mtriple=aarch64-unknown-linux-gnu").fingerprint
    assert one == task(4, target=spelled_otherwise).fingerprint
    assert one != task(4, target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=core-avx2").fingerprint


def test_a_record_that_failed_is_slower_than_any():
    assert Record("k", "f", [], (3.0, 1.0, 2.0)).median == 2.0
    assert Record("k", "f", [], error="it crashed").median == math.inf
