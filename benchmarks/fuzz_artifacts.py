"""Damaged artefacts: whatever is done to a trace, a program, a graph, parameters or a package, an error says so.

    python -m benchmarks.fuzz_artifacts --count 20000 --seed 0
    python -m benchmarks.fuzz_artifacts --count 500 --only trace,relay

A case takes a valid artefact, damages it (bytes flipped, cut, repeated; fields of JSON dropped, doubled, exchanged,
given another type; numbers beyond all limits, NaN, deep nests, odd characters), and reads it as a user would. It must
be read, or raise an error of the catalogue, within the time limit. Anything else is a failure that shows its seed:
another error, a case without end, a signal (cases run in child processes).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import functools
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("LOOPWRIGHT_CACHE", "0")

CHUNK: Final = 500  # cases of one child process


class TimedOut(BaseException):
    """A case took longer than its limit."""


# --- artefacts --------------------------------------------------------------------------------------------------------


class Artefact:
    """Something valid, and how a user reads it; `is_json` where fields can be damaged too."""

    def __init__(self, content: bytes, read: Callable[[bytes], object], *, is_json: bool = False) -> None:
        self.content, self.read, self.is_json = content, read, is_json


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


MATMUL: Final = """
@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

CHAIN: Final = """
@T.prim_func
def chain(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.exp(A[vi, vj]) + T.Cast("float32", vi)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i < 7)
            C[vi, vj] = T.if_then_else(vj < 4, B[vi, vj], T.max(B[vi, vj], T.float32(1.5)))
"""

LOOPS: Final = """
@T.prim_func
def loops(a: T.handle, x: T.int32, B: T.Buffer((16,), "int32")):
    T.func_attr({"tir.noalias": True, "note": [1, "two"]})
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "int32", align=64)
    for i in T.serial(n, annotations={"mark": 1}):
        v: T.int32 = i * 2 % 16
        if v < x:
            B[v] = A[i, 1] // 3 + T.bitwise_and(v, 7)
        else:
            T.evaluate(T.call_extern("int32", "abs", v))
"""


@functools.cache
def function(text: str) -> Any:
    from loopwright.script import from_source

    return from_source(text)


def schedules() -> Iterator[Any]:
    """Schedules whose traces have most kinds of steps."""
    from loopwright import tir

    sch = tir.Schedule(function(MATMUL), seed=1)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    tiles = sch.sample_perfect_tile(i, n=2)
    i0, i1 = sch.split(i, tiles)
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    sch.annotate(i0, "note", [1, "two"])
    init = sch.decompose_reduction(block, k)
    sch.vectorize(sch.get_loops(init)[-1])
    sch.unroll(i1)
    sch.parallel(i0)
    yield sch
    sch = tir.Schedule(function(MATMUL), seed=2)
    block = sch.get_block("C")
    cached = sch.cache_read(block, 0, "local")
    written = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    sch.reverse_compute_at(written, i)
    sch.compute_at(cached, i)
    sch.transform_layout(block, ("read", 1), lambda a, b: (a // 4, b, a % 4))
    sch.storage_align(cached, 0, 0, 8, 1)
    sch.fuse(*sch.get_loops(written)[1:])
    yield sch
    sch = tir.Schedule(function(CHAIN), seed=3)
    block, last = sch.get_block("B"), sch.get_block("C")
    sch.set_scope(block, 0, "global")
    sch.compute_at(block, sch.get_loops(last)[0])
    sch.blockize(sch.get_loops(last)[1])
    yield sch
    sch = tir.Schedule(function(MATMUL), seed=4)
    block = sch.get_block("C")
    *_, k = sch.get_loops(block)
    k0, _ = sch.split(k, [4, 4])
    sch.rfactor(k0, 0)
    sch.sample_categorical([1, 2, 4], [0.5, 0.25, 0.25])
    yield sch


def read_trace(program: str, data: bytes) -> object:
    from loopwright import tir

    sch = tir.Schedule(function(program))
    tir.schedule.Trace.apply_json_to_schedule(text_of(data), sch)
    return str(sch.mod), str(sch.trace)


def read_trace_data(program: str, data: bytes) -> object:
    """The trace as lists, as a database would give it; then copied by `apply_to_schedule`."""
    from loopwright import tir

    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return None
    sch = tir.Schedule(function(program))
    tir.schedule.Trace.apply_json_to_schedule(plain, sch)
    sch.trace.apply_to_schedule(tir.Schedule(function(program)))
    return str(sch.trace.simplified())


def read_steps(program: str, data: bytes) -> object:
    """The calls of a trace, made on the schedule by hand; a signature that does not fit is Python's own error."""
    from loopwright import tir
    from loopwright.schedule.primitives import PRIMITIVES

    try:
        steps = json.loads(data)[0]
        calls = [(PRIMITIVES[kind].method, PRIMITIVES[kind], inputs, attrs) for kind, inputs, attrs, _ in steps]
        outputs = [outs for *_, outs in steps]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    sch = tir.Schedule(function(program))
    known: dict[str, Any] = {}

    def real(value: Any) -> Any:
        if isinstance(value, str):
            return known.get(value, value.strip('"'))
        if isinstance(value, list):
            return [real(item) for item in value]
        return value

    for (method, row, inputs, attrs), outs in zip(calls, outputs, strict=True):
        if not isinstance(inputs, list) or not isinstance(attrs, list) or not isinstance(outs, list):
            return None
        given = [real(value) for value in (*inputs, *attrs)]
        names = [*row.inputs, *row.attrs]
        call = getattr(sch, method)
        kept = dict(zip(names, given))
        if method in ("reorder", "fuse"):
            made = call(*given)
        else:
            try:
                made = call(**kept)
            except TypeError as error:
                if re.search(r"argument|positional", str(error)) and len(traceback.extract_tb(error.__traceback__)) < 3:
                    return None
                raise
        made = made if isinstance(made, (list, tuple)) else [made]
        known.update({name: value for name, value in zip(outs, made) if isinstance(name, str)})
    return str(sch.mod)


def read_program(data: bytes) -> object:
    import loopwright as lw
    from loopwright import ir, tir

    found = ir.load_json(text_of(data))
    shown = str(found), repr(found)
    if isinstance(found, (tir.PrimFunc, ir.IRModule)):
        ir.structural_hash(found)
        ir.structural_equal(found, found)
        ir.save_json(found)
        lw.lower(found)
        with contextlib.suppress(StopIteration):
            tir.Schedule(found)
    return shown


def read_script(data: bytes) -> object:
    from loopwright.script import from_source

    with contextlib.redirect_stdout(io.StringIO()):
        return str(from_source(text_of(data)))


def read_relay(data: bytes) -> object:
    from loopwright import relay

    return str(relay.parse(text_of(data)))


def read_relay_json(data: bytes) -> object:
    from loopwright import ir, relay

    found = ir.load_json(text_of(data))
    shown = str(found)
    if isinstance(found, ir.IRModule):
        ir.structural_hash(found)
        relay.transform.InferType()(found)
    return shown


def read_params(data: bytes) -> object:
    from loopwright.runtime import load_param_dict

    return load_param_dict(data)


def read_target(data: bytes) -> object:
    from loopwright.target import Target

    found = Target(text_of(data))
    return str(found), found.export(), Target(found.export())


def read_map(data: bytes) -> object:
    from loopwright.compat.node_graph import read_map as read_graph
    from loopwright.schedule.rewrite.index_map import LayoutMap

    text = text_of(data)
    if text.lstrip().startswith("{"):
        return read_graph(text).text
    return LayoutMap.of(text).text


def read_executable(data: bytes) -> object:
    from loopwright.relay.vm import Executable

    return Executable.load_exec(data).globals


def _in_a_file(suffix: str, read: Callable[[str], object]) -> Callable[[bytes], object]:
    def reader(data: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="loopwright-fuzz-") as folder:
            path = Path(folder) / f"model{suffix}"
            path.write_bytes(data)
            return read(str(path))

    return reader


def load_library(path: str) -> object:
    from loopwright.runtime import load_module

    return load_module(path)


def load_package(path: str) -> object:
    from loopwright.cli.package import load_package

    found = load_package(path)
    return found.interface, found.metadata


MODEL: Final = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]) -> Tensor[(2, 3), float32] {
  %0 = nn.dense(%x, %w, units=3);
  %1 = nn.relu(%0);
  let %y = add(%1, meta[relay.Constant][0]);
  %2 = (%y, %1);
  %3 = fn (%a: Tensor[(2, 3), float32], Primitive=1) { multiply(%a, 2f) };
  if (True) { %3(%2.0) } else { reshape(transpose(%1, axes=[1, 0]), newshape=[2, 3]) }
}
"""
LIST: Final = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @length[A](%l: List[A]) -> int32 {
  match (%l) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0, }
}
def @main(%x: Tensor[(?, n), float32]) { let %r = ref(%x); ref_write(%r, exp(%x)); ref_read(%r) }
"""


@functools.cache
def artefacts() -> dict[str, list[Artefact]]:
    """All artefacts by kind."""
    import numpy as np

    from loopwright import ir, relay
    from loopwright.runtime import save_param_dict

    made: dict[str, list[Artefact]] = collections.defaultdict(list)
    for sch, program in zip(schedules(), (MATMUL, MATMUL, CHAIN, MATMUL), strict=True):
        trace = json.dumps(sch.trace.as_json()).encode()
        made["trace"].append(Artefact(trace, functools.partial(read_trace, program), is_json=True))
        made["trace_data"].append(Artefact(trace, functools.partial(read_trace_data, program), is_json=True))
        made["steps"].append(Artefact(trace, functools.partial(read_steps, program), is_json=True))
        made["program"].append(Artefact(ir.save_json(sch.mod).encode(), read_program, is_json=True))
    for text in (MATMUL, CHAIN, LOOPS):
        made["program"].append(Artefact(ir.save_json(function(text)).encode(), read_program, is_json=True))
        made["script"].append(Artefact(text.encode(), read_script))
    constant = relay.const(np.ones((2, 3), "float32"))
    model = relay.parse(MODEL, init_meta_table={"relay.Constant": [constant]})
    for graph in (model, relay.parse(LIST)):
        made["relay"].append(Artefact(str(graph.astext()).encode(), read_relay))
        made["relay_json"].append(Artefact(ir.save_json(graph).encode(), read_relay_json, is_json=True))
    made["relay"].append(Artefact(LIST.encode(), read_relay))
    params = {
        "w": np.ones((3, 4), "float32"),
        "b": np.arange(6, dtype="int8"),
        "s": np.array(True),
        "é": np.zeros((0, 2)),
    }
    made["params"].append(Artefact(bytes(save_param_dict(params)), read_params))
    targets = ["llvm -mcpu=core-avx2 -mattr=+avx512f,+fma -num-cores=4", "nvidia/nvidia-h100"]
    made["target"] += [Artefact(text.encode(), read_target) for text in targets]
    whole = {"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm", "mattr": ["+fma"], "num-cores": 4}}
    made["target"].append(Artefact(json.dumps(whole).encode(), read_target, is_json=True))
    maps = ["lambda i, j: (j // 4, i, max(j % 4, 0))", "lambda i: (i - 3 * 2, AXIS_SEPARATOR, i)"]
    made["map"] += [Artefact(text.encode(), read_map) for text in maps]
    from loopwright.compat.node_graph import write_map
    from loopwright.schedule.rewrite.index_map import LayoutMap

    made["map"].append(Artefact(write_map(LayoutMap.of(maps[0])).encode(), read_map, is_json=True))
    small = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { add(exp(%x), 1f) }')
    made["executable"].append(Artefact(bytes(relay.vm.compile(small, "llvm").save()[0]), read_executable))
    with tempfile.TemporaryDirectory(prefix="loopwright-fuzz-") as folder:
        library = Path(relay.build(small, "llvm").export_library(str(Path(folder) / "small.so")))
        made["library"].append(Artefact(library.read_bytes(), _in_a_file(".so", load_library)))
        made["package"].append(Artefact(_package(library), _in_a_file(".tar", load_package)))
    return made


def _package(library: Path) -> bytes:
    """A package as `loopwright compile` writes it, without the parts that nobody reads."""
    from loopwright.cli.interface import of_description
    from loopwright.cli.package import write_package
    from loopwright.runtime import load_module

    interface = of_description(load_module(library).description, str(library))
    metadata = {"loopwright_package": 1, "interface": interface.to_json()}
    path = library.with_suffix(".tar")
    write_package(path, {"metadata.json": json.dumps(metadata).encode(), "mod.so": library})
    return path.read_bytes()


# --- damage -----------------------------------------------------------------------------------------------------------

NUMBERS: Final = [
    "0",
    "-1",
    "1",
    "3",
    "2147483648",
    "-9223372036854775809",
    "1" + "0" * 60,
    "1e999",
    "NaN",
    "0.5",
    "-0.0",
]
ODD: Final = [
    "é",
    "\u202e",
    "\0",
    "\ud800",
    "𝒳",
    '"',
    "\\",
    "[",
    "}",
    "(",
    "\n",
    "%",
    "@",
    "'",
    "{",
    "\\u00",
    "//",
    "lambda",
]


def some_value(dice: random.Random, document: Any) -> Any:
    """A value to stand where another one was."""
    pool: list[Any] = [
        None, True, False, 0, 1, -1, 2, 7, 2**31, -(2**63) - 1, 10**40, 0.5, float("nan"), float("inf"), 1e308, "", "x",
        "b0", "l1", "None", '"C"', "é\ud800", "int32", "float32", [], {}, [[]], [None], [0, 0, 0], {"@": 0}, {"@": -1},
        {"rv": "l0"},
        {"list": []}, {"dtype": "int7"}, {"float": "nan"}, {"@": 10**9}, {"array": ["float32", [2], ""]}, [[[[[[1]]]]]],
        "4" * 5000,
    ]  # fmt: skip
    if dice.random() < 0.3:
        return copy.deepcopy(value_at(document, dice.choice(paths(document))))
    if dice.random() < 0.02:
        deep: Any = 1
        for _ in range(700):
            deep = [deep] if dice.random() < 0.5 else {"a": deep}
        return deep
    return dice.choice(pool)


def paths(document: Any) -> list[tuple[Any, ...]]:
    """The way to every value inside."""
    found: list[tuple[Any, ...]] = [()]
    for path in found:
        value = value_at(document, path)
        if len(path) < 40 and isinstance(value, (list, dict)):
            found.extend((*path, key) for key in (range(len(value)) if isinstance(value, list) else value))
    return found


def value_at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def damage_fields(dice: random.Random, document: Any) -> Any:
    """The document with one field dropped, doubled, exchanged, renamed or given another value."""
    path = dice.choice(paths(document))
    if not path:
        return some_value(dice, document) if dice.random() < 0.2 else document
    home, key = value_at(document, path[:-1]), path[-1]
    kind = dice.randrange(7)
    if kind == 0:
        del home[key]
    elif kind == 1 and isinstance(home, list):
        home.insert(dice.randrange(len(home) + 1), copy.deepcopy(home[key]))
    elif kind == 2 and len(home) > 1:
        other = dice.choice(list(home) if isinstance(home, dict) else range(len(home)))
        home[key], home[other] = home[other], home[key]
    elif kind == 3 and isinstance(home, dict):
        home[dice.choice([*map(str, home), "new", ""])] = home.pop(key)
    elif kind == 4 and isinstance(home[key], str):
        home[key] = text_of(damage_bytes(dice, home[key].encode("utf-8", "surrogatepass")))
    elif kind == 5 and type(home[key]) in (int, float):
        home[key] = dice.choice(
            [home[key] + 1, home[key] - 1, -home[key], home[key] * 2**40, float(home[key]), str(home[key])]
        )
    else:
        home[key] = some_value(dice, document)
    return document


def damage_bytes(dice: random.Random, data: bytes) -> bytes:
    """The bytes with one thing done to them."""
    at = dice.randrange(len(data) + 1)
    size = dice.choice([1, 1, 2, 4, 8, 40])
    kind = dice.randrange(9)
    if kind == 0 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[at + size :]
    if kind == 3:
        return data[: at + size] + data[at:]
    if kind == 4:
        other = dice.randrange(len(data) + 1)
        return data[:at] + data[other : other + size] + data[at + size :]
    if kind == 5:
        return data[:at] + dice.choice(ODD).encode("utf-8", "surrogatepass") + data[at:]
    if kind == 6:
        numbers = list(re.finditer(rb"\d+", data))
        if numbers:
            found = dice.choice(numbers)
            return data[: found.start()] + dice.choice(NUMBERS).encode() + data[found.end() :]
    if kind == 7:
        words = list(re.finditer(rb"[A-Za-z_.]+", data))
        if len(words) > 1:
            found, other_word = dice.choice(words), dice.choice(words).group()
            return data[: found.start()] + other_word + data[found.end() :]
    if kind == 8 and dice.random() < 0.1:
        mark = dice.choice([b"(", b"[", b"{", b"-", b"not ", b"+1"])
        return data[:at] + mark * dice.choice([150, 3000]) + data[at:]
    return data[:at] + bytes(dice.randrange(256) for _ in range(size)) + data[at + size :]


def damaged(dice: random.Random, artefact: Artefact) -> bytes:
    """The artefact after one to three damages."""
    data = artefact.content
    if artefact.is_json and dice.random() < 0.8:
        document = json.loads(data)
        with contextlib.suppress(RecursionError):  # of this program: one deep nest inside another
            for _ in range(dice.choice([1, 1, 1, 2, 3])):
                if isinstance(document, (list, dict)):
                    document = damage_fields(dice, document)
                    data = json.dumps(document).encode("utf-8", "surrogatepass")
        return data
    for _ in range(dice.choice([1, 1, 2, 3])):
        data = damage_bytes(dice, data)
    return data


# --- cases ------------------------------------------------------------------------------------------------------------

SHARES: Final = {  # of a hundred cases
    "trace": 18, "trace_data": 6, "steps": 10, "program": 22, "script": 10, "relay": 12, "relay_json": 10,
    "params": 4, "target": 3, "map": 3, "executable": 1, "library": 1, "package": 1,
}  # fmt: skip


def case_of(seed: int, only: list[str]) -> tuple[str, Artefact, bytes]:
    """What is read in the case of that number."""
    dice = random.Random(seed)
    shares = {kind: share for kind, share in SHARES.items() if not only or kind in only}
    kind = dice.choices(list(shares), list(shares.values()))[0]
    artefact = dice.choice(artefacts()[kind])
    return kind, artefact, damaged(dice, artefact)


def outcome(seed: int, only: list[str], seconds: float) -> tuple[str, str]:
    """The kind of a case, and what came of it: "read", "refused", or the failure in words."""
    from loopwright.runtime.errors import InternalError, LoopwrightError

    kind, artefact, data = case_of(seed, only)

    def ring(*_: object) -> None:
        raise TimedOut

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        artefact.read(data)
        return kind, "read"
    except TimedOut as error:
        return kind, f"no end after {seconds:g} s{_where(error)}"
    except InternalError as error:
        return kind, f"internal error{_where(error)}: {error.problem[:200]}"
    except LoopwrightError as error:
        str(error)  # the text is made when it is read
        return kind, "refused"
    except BaseException as error:
        return kind, f"{type(error).__name__}{_where(error)}: {str(error)[:200]!r}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _where(error: BaseException) -> str:
    """The innermost line of ours."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if "/loopwright/" in frame.filename]
    return f" at {lines[-1].filename.rsplit('/loopwright/')[-1]}:{lines[-1].lineno}" if lines else ""


def run(options: argparse.Namespace, only: list[str]) -> int:
    """All cases, in children; the number of failures."""
    counts: collections.Counter[str] = collections.Counter()
    failures: collections.Counter[str] = collections.Counter()
    seed, end = options.seed, options.seed + options.count
    while seed < end:
        chunk = min(CHUNK, end - seed)
        command = [
            sys.executable,
            "-m",
            "benchmarks.fuzz_artifacts",
            "--child",
            "--seed",
            str(seed),
            "--count",
            str(chunk),
        ]
        command += ["--limit", str(options.limit), "--only", options.only]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        last, finished = seed - 1, 0
        for line in done.stdout.splitlines():
            number, _, what = line.partition(" ")
            if not number.isdigit():
                continue
            last = int(number)
            if what:
                finished += 1
                kind, _, result = what.partition(" ")
                counts[f"{kind} {result}" if result in ("read", "refused") else f"{kind} FAILED"] += 1
                if result not in ("read", "refused"):
                    failures[f"{kind} {result}"] += 1
                    print(f"seed {last}: {kind}: {result}", flush=True)
        if done.returncode != 0:
            failures["died"] += 1
            print(f"seed {last}: the process ended with {done.returncode}\n{done.stderr[-600:]}", flush=True)
            seed = last + 1
        else:
            seed += chunk
    for what, count in sorted(counts.items()):
        print(f"{what:24} {count}")
    print(f"{options.count} cases from seed {options.seed}: {sum(failures.values())} failures")
    return sum(failures.values())


def main() -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20, help="seconds that a case may take")
    parser.add_argument("--only", default="", help=f"kinds, with commas between them: {', '.join(SHARES)}")
    parser.add_argument("--show", action="store_true", help="show what is read in the case of that seed, and its error")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    only = [kind for kind in options.only.split(",") if kind]
    if options.show:
        kind, artefact, data = case_of(options.seed, only)
        print(kind, data[:20_000])
        artefact.read(data)
        return 0
    if options.child:
        for seed in range(options.seed, options.seed + options.count):
            print(seed, end=" ", flush=True)
            print(*outcome(seed, only, options.limit), flush=True)
        return 0
    return int(run(options, only) > 0)


if __name__ == "__main__":
    sys.exit(main())
