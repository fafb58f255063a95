"""fuzz_models: broken models must get an error from the catalogue, never a crash.

    python -m benchmarks.fuzz_models --seconds 60
    python -m benchmarks.fuzz_models --seed 7 --case 123      one case again, with its traceback

Valid models of the onnx package are damaged: bytes flipped, cut off and put in; nodes, inputs, types, sizes, names and
attributes changed. Each is read and imported, and, if that works and it is small, compiled and run on zeros. What is
right: a result, or a LoopwrightError. Anything else is a bug: another exception, a signal, no answer within a time. A
worker process does the work, so that a crash is seen and named.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

LIMIT = 60.0  # seconds that one case may take, on a machine that others use too
SMALL = 20_000  # elements of the inputs of a model that is also run
MODELS = 120


def corpus(seed: int) -> list[bytes]:
    """Valid models: some of the onnx package's node tests, those with few bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    models = [case.model.SerializeToString() for case in cases if case.model is not None]
    models = [text for text in models if len(text) < 4000]
    return random.Random(seed).sample(models, min(MODELS, len(models)))


def damaged_bytes(text: bytes, draw: random.Random) -> bytes:
    """The model with some of its bytes changed."""
    data = bytearray(text)
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(len(data)) if data else 0
        what = draw.randrange(4)
        if what == 0 and data:
            data[place] ^= 1 << draw.randrange(8)
        elif what == 1:
            data[place:place] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 9)))
        elif what == 2:
            del data[place : place + draw.randrange(1, 20)]
        else:
            del data[place:]
    return bytes(data)


def damaged_graph(text: bytes, draw: random.Random) -> bytes:
    """The model with a part of its graph changed."""
    import onnx

    model = onnx.load_model_from_string(text)
    graph = model.graph
    for _ in range(draw.choice((1, 1, 2, 3))):
        _change(model, graph, draw)
    return bytes(model.SerializeToString())


def _change(model: Any, graph: Any, draw: random.Random) -> None:
    import onnx

    names = [name for node in graph.node for name in (*node.input, *node.output)]
    names += [value.name for value in graph.input]
    node = draw.choice(graph.node) if graph.node else None
    value = draw.choice([*graph.input, *graph.output]) if graph.input or graph.output else None
    what = draw.randrange(13)
    if what == 0 and node is not None:
        node.op_type = draw.choice(["Conv", "Loop", "Reshape", "Softmax", "NoSuchOperator", "If", "TopK", "Gather", ""])
    elif what == 1 and node is not None and node.input:
        del node.input[draw.randrange(len(node.input))]
    elif what == 2 and node is not None and node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice([*names, "", "nowhere"])
    elif what == 3 and node is not None and node.output:
        node.output[draw.randrange(len(node.output))] = draw.choice([*names, ""])
    elif what == 4 and value is not None and value.type.tensor_type.shape.dim:
        size = draw.choice(value.type.tensor_type.shape.dim)
        size.dim_value = draw.choice([0, 1, -1, 7, 2**31, 2**40, 2**62])
    elif what == 5 and value is not None:
        value.type.tensor_type.elem_type = draw.choice([0, 1, 2, 3, 7, 8, 9, 10, 11, 14, 16, 17, 99])
    elif what == 6 and node is not None and node.attribute:
        attribute = draw.choice(node.attribute)
        attribute.i = draw.choice([0, -1, 1, 2**40, -(2**62)])
        for place in range(len(attribute.ints)):
            attribute.ints[place] = draw.choice([0, -1, 1, 3, 2**40])
    elif what == 7 and node is not None and node.attribute:
        del node.attribute[draw.randrange(len(node.attribute))]
    elif what == 8 and node is not None:
        graph.node.append(node)
    elif what == 9 and graph.node:
        del graph.node[draw.randrange(len(graph.node))]
    elif what == 10 and graph.initializer:
        tensor = draw.choice(graph.initializer)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", draw.choice(["../../secret", "/etc/hostname", "weights.bin", ""])
    elif what == 11 and model.opset_import:
        model.opset_import[0].version = draw.choice([0, 1, 5, 9, 13, 21, 10_000, -3])
    elif what == 12 and graph.initializer:
        tensor = draw.choice(graph.initializer)
        if tensor.dims:
            tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice([0, -1, 3, 2**40])


def try_model(data: bytes, run: bool) -> str:
    """Read and import a model, and run it if it is small: "error" or "ok"; what is wrong is raised."""
    from loopwright.frontends.onnx import CompiledModel, from_onnx
    from loopwright.runtime.errors import InternalError, LoopwrightError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module, _ = from_onnx(data)
            if not run:
                return "ok"
            types = [param.type_annotation for param in module["main"].params]
            shapes = [[size if isinstance(size, int) else 1 for size in of.shape] for of in types]
            if sum(int(np.prod(shape, dtype=object)) for shape in shapes) > SMALL:
                return "ok"
            CompiledModel(data)(*[np.zeros(shape, of.dtype.numpy()) for shape, of in zip(shapes, types, strict=True)])
        except InternalError:
            raise
        except LoopwrightError:
            return "error"
    return "ok"


def case_data(models: list[bytes], seed: int, number: int) -> tuple[bytes, bool]:
    draw = random.Random(seed * 1_000_003 + number)
    text = draw.choice(models)
    data = damaged_bytes(text, draw) if draw.random() < 0.4 else damaged_graph(text, draw)
    return data, draw.random() < 0.15


def worker(seed: int, start: int) -> None:
    """Try cases from `start` on until told to stop, saying the number of each before and its outcome after."""
    models = corpus(seed)
    print("ready", flush=True)
    number = start
    while True:
        print(f"try {number}", flush=True)
        data, run = case_data(models, seed, number)
        try:
            outcome = try_model(data, run)
        except Exception as error:  # what is not in the catalogue is the find
            outcome = f"bug {type(error).__name__}: {error}".splitlines()[0][:200]
        print(f"did {number} {outcome}", flush=True)
        number += 1


def fuzz(seconds: float, seed: int) -> int:
    """Run workers for that long; the number of bugs found."""
    end = time.monotonic() + seconds
    counts = {"ok": 0, "error": 0}
    bugs: list[str] = []
    start = 0
    while time.monotonic() < end and len(bugs) < 20:
        start = _watch(seed, start, end, counts, bugs)
    tried = sum(counts.values()) + len(bugs)
    print(f"{tried} damaged models: {counts['ok']} imported, {counts['error']} refused with an error, {len(bugs)} bugs")
    for bug in bugs:
        print(f"  {bug}   (python -m benchmarks.fuzz_models --seed {seed} --case N)")
    return len(bugs)


def _watch(seed: int, start: int, end: float, counts: dict[str, int], bugs: list[str]) -> int:
    """Read what one worker says until the time is over or it is gone; the case to go on with."""
    import selectors

    command = [sys.executable, "-m", "benchmarks.fuzz_models", "--worker", "--seed", str(seed), "--start", str(start)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    assert process.stdout is not None
    number = start
    said = b""
    ready = selectors.DefaultSelector()
    ready.register(process.stdout, selectors.EVENT_READ)
    try:
        while time.monotonic() < end:
            if not ready.select(timeout=LIMIT):
                bugs.append(f"case {number}: no answer within {LIMIT:.0f} s")
                return number + 1
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                bugs.append(f"case {number}: the process ended with {process.wait()}")
                return number + 1
            *lines, said = (said + more).split(b"\n")
            for line in lines:
                word, *rest = line.decode(errors="replace").split(maxsplit=2)
                if word == "try":
                    number = int(rest[0])
                elif word == "did" and rest[1].startswith("bug"):
                    bugs.append(f"case {number}: {rest[1].strip()[4:]}")
                elif word == "did":
                    counts[rest[1].strip()] += 1
        return number
    finally:
        process.kill()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Damaged models must get an error, never a crash.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--start", type=int, default=0)
    args = parser.parse_args()
    if args.worker:
        worker(args.seed, args.start)
    if args.case is not None:
        data, run = case_data(corpus(args.seed), args.seed, args.case)
        print(try_model(data, run))
        return 0
    return int(fuzz(args.seconds, args.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
