"""kernels: all the kernels of a program, each compiled once: found in the cache, or made in parallel processes.

    compiled = compile_kernels(program.launches(), target)
    compiled[launch].symbol, compiled[launch].overwrites

Kernels that are equal up to names are one kernel. What was compiled before, by any process, comes from the compile
cache (docs/cache.md); the others are compiled by as many processes as a parallel loop has threads.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.known import known_schedules
from loopwright.display import progress
from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext
from loopwright.model.kernel import Early, Kernel, Pairs, compile_kernel, kernel_key, named, symbol_of
from loopwright.model.load_ahead import loading_ahead, run_ahead
from loopwright.model.program import Launch, Value
from loopwright.model.workers import in_parallel
from loopwright.runtime.artifact_store import Artifact, is_on, open_store
from loopwright.target import Target

KIND: Final = "kernel"  # in the header of an entry
_MOST_IN_MEMORY: Final = 512
_memory: Final[dict[str, Kernel]] = {}  # by key, the oldest first


class Counts:
    """Where the kernels of one program came from."""

    def __init__(self) -> None:
        self.launches = self.distinct = self.compiled = self.from_cache = 0

    def add(self, others: Counts, distinct: int) -> None:
        """Count kernels that take the place of some of these; so many are left in all."""
        self.compiled += others.compiled
        self.from_cache += others.from_cache
        self.distinct = distinct

    def __str__(self) -> str:
        return (
            f"{self.launches} launches of {self.distinct} kernels, {self.compiled} compiled, "
            f"{self.from_cache} from the cache"
        )


def compile_kernels(
    launches: Sequence[Launch],
    target: Target,
    *,
    constants: Container[Value] = (),
    winograd: bool | int = False,
    processes: int | None = None,
    counts: Counts | None = None,
) -> dict[Launch, Kernel]:
    """The compiled kernel of every launch; `processes` says how many may compile at once.

    Arguments among `constants` are known now: what follows from them alone becomes the early function of a kernel.
    """
    counts = Counts() if counts is None else counts
    counts.launches = len(launches)
    wanted: dict[str, tuple[IRModule, Pairs]] = {}
    labels: dict[str, str] = {}
    key_of: dict[Launch, str] = {}
    # A PrimFunc that is launched many times is read once.
    known: dict[tuple[PrimFunc, Pairs, tuple[int, ...]], str] = {}
    has_key: dict[str, bool] = {}
    times = Counter([(launch.func, constant_positions(launch, constants)) for launch in launches])
    for launch in launches:
        pairs = parameter_pairs(launch)
        fixed = constant_positions(launch, constants)
        same = known.get((launch.func, pairs, fixed))
        if same is None:
            module = named(launch.func, fixed)
            key = kernel_key(module, target, pairs, winograd, times[launch.func, fixed])
            same = key or _nameless(module, len(wanted))
            has_key[same] = key is not None
            known[launch.func, pairs, fixed] = same
            if same not in wanted:
                wanted[same] = (module, pairs)
                labels[same] = launch.name or launch.func.name
        key_of[launch] = same
    counts.distinct = len(wanted)
    result = {key: kernel for key in wanted if has_key[key] and (kernel := _find(key)) is not None}
    counts.from_cache = len(result)
    missing = [key for key in wanted if key not in result]
    counts.compiled = len(missing)
    jobs = [functools.partial(_compile, *wanted[key], target, symbol_of(key), winograd, labels[key]) for key in missing]
    with progress.task("compile kernels", len(wanted)) as task:
        task.advance(parts=len(result))
        is_known = all([has_key[key] for key in missing])
        for number, kernel in _run(jobs, processes, is_known):
            key = missing[number]
            task.advance(labels[key])
            result[key] = kernel
            if has_key[key]:
                _keep(key, kernel, str(target))
    return {launch: result[key] for launch, key in key_of.items()}


def constant_positions(launch: Launch, constants: Container[Value]) -> tuple[int, ...]:
    """The parameters whose arguments are constants."""
    return tuple(location for location, value in zip(launch.places, launch.inputs) if value in constants)


def parameter_pairs(launch: Launch) -> Pairs:
    """The pairs of `may_overwrite` as positions of parameters."""
    locations, first = launch.places, len(launch.inputs)
    return tuple(sorted((locations[i], locations[first + o]) for i, o in launch.may_overwrite))


def overwrites(launch: Launch, kernel: Kernel) -> frozenset[tuple[int, int]]:
    """The pairs of `may_overwrite` that the kernel, as scheduled, allows."""
    locations = parameter_pairs(launch)
    return frozenset(pair for pair, place in zip(sorted(launch.may_overwrite), locations) if place in kernel.overwrites)


def ready_to_compile() -> AbstractContextManager[None]:
    """While a model is read, another process loads what its kernels are compiled with."""
    return loading_ahead(_load, _state)


def _run(jobs: Sequence[Callable[[], Kernel]], processes: int | None, is_known: bool) -> Iterator[tuple[int, Kernel]]:
    """The kernels; `is_known` says that nothing takes part which only this process has."""
    missing = dict.fromkeys(range(len(jobs)))
    for number, kernel in run_ahead(jobs, processes) if is_known else ():
        del missing[number]
        yield number, kernel
    if missing:
        _load()  # before the processes part
    numbers = list(missing)
    for number, kernel in in_parallel([jobs[k] for k in numbers], processes):
        yield numbers[number], kernel


def _load() -> None:
    """What compiling the first kernel would load."""
    import islpy  # noqa: F401

    import loopwright.analysis.check
    import loopwright.autosched.schedule_program
    import loopwright.codegen.llvm.emit_module
    import loopwright.transform.pipeline  # noqa: F401


def _state() -> tuple[object, ...]:
    """What of this process takes part in compiling a kernel, beside what its key names."""
    context = PassContext.current()
    rules = sys.modules.get("loopwright.autosched.rules")
    intrinsics = sys.modules.get("loopwright.transform.tensor_intrinsics")
    return (
        context.opt_level,
        context.disabled_pass,
        context.required_pass,
        dict(context.config),
        known_schedules(),
        None if rules is None else rules.rules_in_use(),
        None if intrinsics is None else dict(intrinsics.TensorIntrin.known),
    )


def _compile(module: IRModule, pairs: Pairs, target: Target, symbol: str, winograd: bool | int, label: str) -> Kernel:
    try:
        return compile_kernel(module, target, pairs, symbol, winograd)
    except Exception as error:
        error.add_note(f"while compiling the kernel {label!r} of a model")
        raise


def _nameless(module: IRModule, number: int) -> str:
    """A key for this program alone."""
    return hashlib.blake2b(f"no key {number} {id(module)}".encode(), digest_size=20).hexdigest()


# --- the cache ----------------------------------------------------------------------------------------------------


def _find(key: str) -> Kernel | None:
    if not is_on():
        return None
    kernel = _memory.get(key)
    if kernel is None:
        store = open_store()
        artifact = None if store is None else store.read(key)
        if store is None or artifact is None:
            return None
        try:
            kernel = _kernel_in(artifact)
        except (KeyError, TypeError, ValueError):  # whole, but nothing that `_keep` wrote
            store.remove(key)
            return None
        _remember(key, kernel)
    return kernel


def _remember(key: str, kernel: Kernel) -> None:
    _memory[key] = kernel
    while len(_memory) > _MOST_IN_MEMORY:
        _memory.pop(next(iter(_memory)))


def forget() -> None:
    """Drop what is kept in memory; what is on disk stays."""
    _memory.clear()


def _keep(key: str, kernel: Kernel, target: str) -> None:
    if not is_on():
        return
    _remember(key, kernel)
    store = open_store()
    if store is not None:
        header = {
            "kind": KIND,
            "target": target,
            "created": time.time(),
            "seconds": sum(kernel.seconds.values()),
            "symbol": kernel.symbol,
            "sizes": kernel.sizes,
            "overwrites": kernel.overwrites,
            "uses_amx": kernel.uses_amx,
            "proved": kernel.proved,
            "packed_calls": kernel.packed_calls,
            "keeps": kernel.keeps,
            "decisions": [decision.to_json() for decision in kernel.decisions],
        }
        parts = {"object": kernel.object_bytes, "ll": kernel.packed_ll, "text": kernel.text.encode()}
        if kernel.early is not None:
            header["early"] = [kernel.early.symbol, kernel.early.reads, kernel.early.results]
            parts["early"] = kernel.early.object_bytes
        store.save(key, header, parts)


def _kernel_in(artifact: Artifact) -> Kernel:
    header, parts = artifact
    return Kernel(
        str(header["symbol"]),
        parts["object"],
        parts["ll"],
        tuple(str(size) for size in header["sizes"]),
        tuple((int(i), int(o)) for i, o in header["overwrites"]),
        bool(header["uses_amx"]),
        bool(header["proved"]),
        tuple(str(name) for name in header["packed_calls"]),
        parts["text"].decode(),
        {},
        None if header["keeps"] is None else tuple(int(position) for position in header["keeps"]),
        _early_in(artifact),
        tuple(Decision.from_json(one) for one in header["decisions"]),
    )


def _early_in(artifact: Artifact) -> Early | None:
    header, parts = artifact
    if "early" not in header:
        return None
    symbol, reads, results = header["early"]
    result = tuple((tuple(int(size) for size in shape), str(dtype)) for shape, dtype in results)
    return Early(str(symbol), parts["early"], tuple(int(position) for position in reads), result)
