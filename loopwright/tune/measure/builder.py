"""builder: candidates become object code, each in a process of its own, a few at a time.

    built = build_jobs([BuildJob(lambda: space.instantiate(candidate))], target, limits, processes=2)

All of a job happens in the child: making the schedule (with its proofs), lowering, LLVM. What comes back is data: the
object and its description, the trace, and a digest of the scheduled program, by which duplicates are known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule
from loopwright.target import Target, describe
from loopwright.tune.measure.children import Crew, Report, each_child
from loopwright.tune.measure.failure import Failure
from loopwright.tune.measure.limits import Limits

if TYPE_CHECKING:
    from loopwright.codegen.llvm.native_module import CompiledModule


@dataclass(frozen=True)
class BuildJob:
    """`make` gives the candidate as a schedule, or as a program without a trace; it runs in the child.

    So does `finish`, which may change the scheduled program before it is compiled: it binds constants, say.
    """

    make: Callable[[], Schedule | IRModule | PrimFunc]
    finish: Callable[[IRModule], IRModule] | None = None


@dataclass(frozen=True)
class Built:
    """Object code and how to load it; where there is none, `failure` says why. All of it is plain data."""

    object_bytes: bytes = b""
    description: str = ""  # of the module, as `ModuleDescription.to_json` writes it
    uses_amx: bool = False
    trace_json: list[Any] = field(default_factory=list)
    digest: str = ""  # of the scheduled program: the same for duplicates, whatever led to them
    seconds: dict[str, float] = field(default_factory=dict)  # of each stage
    failure: Failure | None = None

    @property
    def total_seconds(self) -> float:
        """What the whole job took, without its process."""
        return sum(self.seconds.values())

    def load(self, target: Target) -> CompiledModule:
        """The module, linked into this process; each call links it again, elsewhere in memory."""
        from loopwright.codegen.llvm.effort import Effort
        from loopwright.codegen.llvm.engine import Compiled
        from loopwright.codegen.llvm.native_module import native_module
        from loopwright.runtime.description import ModuleDescription

        cpu = describe(target)
        compiled = Compiled("", cpu, cpu.opt_level, Effort.SEARCH, self.object_bytes, {})
        return native_module(compiled, ModuleDescription.from_json(self.description), self.uses_amx)


def build_jobs(
    jobs: Sequence[BuildJob],
    target: Target,
    limits: Limits,
    processes: int,
    known: Collection[str] = (),
    crew: Crew | None = None,
) -> Generator[tuple[int, Built], None, None]:
    """The number of each job and what was built, as they are finished; the first ones begin at once.

    A program whose digest is `known` already is not compiled: its failure is "duplicate". The next ones of a `crew`
    begin also while another of its groups is waited for.
    """

    def work(job: BuildJob) -> Callable[[Report], Built]:
        return lambda _report: build_here(job, target, known)

    children = each_child([work(job) for job in jobs], limits, "build", processes, crew)
    return ((number, result if isinstance(result, Built) else Built(failure=result)) for number, result in children)


def build_here(job: BuildJob, target: Target, known: Collection[str] = ()) -> Built:
    """The job done in this process; what goes wrong is raised."""
    from loopwright.analysis import check_program
    from loopwright.codegen.llvm.make_module import make_object
    from loopwright.ir.structural_hash import structural_digest
    from loopwright.transform import lower

    start = perf_counter()
    made = job.make()
    trace = made.trace.as_json() if isinstance(made, Schedule) else []
    module = _module(made)
    if job.finish is not None:
        module = job.finish(module)
    scheduled = perf_counter()
    digest = structural_digest(module)
    seconds = {"schedule": scheduled - start, "digest": perf_counter() - scheduled}
    if digest in known:
        why = Failure("duplicate", "the scheduled program is one that was built before", digest)
        return Built(trace_json=trace, digest=digest, seconds=seconds, failure=why)
    begin = perf_counter()
    checked = check_program(module)
    lowering = perf_counter()
    lowered = lower(checked, target)
    finished = perf_counter()
    ((name, function),) = module.functions_items()
    code = make_object(lowered, describe(target), str(function.attrs.get("global_symbol", name)))
    seconds |= {"check": lowering - begin, "lower": finished - lowering, **code.timings}
    return Built(code.compiled.object_bytes, code.description.to_json(), code.uses_amx, trace, digest, seconds)


def _module(made: Schedule | IRModule | PrimFunc) -> IRModule:
    if isinstance(made, Schedule):
        return made.mod
    return made if isinstance(made, IRModule) else IRModule({"main": made})
