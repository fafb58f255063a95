"""debug_executor: a compiled model that shows what each of its kernels took, and what it computed.

    model = GraphModuleDebug(lib["debug_create"]("default", lw.cpu()), [lw.cpu()], lib.get_graph_json(), None)
    model.set_input("data", x)
    print(model.profile())                  launches, the slowest first
    model.debug_get_output("dense")         the value that a launch made, by its name or position

A run here is the same kernels under another main function, where values share no memory: see `model/profile.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from loopwright.contrib.debugger.report import ModelReport, report_of
from loopwright.contrib.graph_executor import GraphModule
from loopwright.model.given_arrays import TensorLike
from loopwright.model.profile import Profile
from loopwright.runtime.params import save_param_dict


def create(
    graph_json_str: object, libmod: object, device: object, dump_root: str | os.PathLike[str] | None = None
) -> GraphModuleDebug:
    """A model by its parts, as `relay.build` handed them out: graph, library, device. A built model needs no graph."""
    return GraphModuleDebug(libmod if hasattr(libmod, "program") else graph_json_str, [device], None, dump_root)


class GraphModuleDebug(GraphModule):
    """A model run kernel by kernel. With `dump_root`, every run writes times, graph and values there."""

    type_key = "GraphExecutorDebug"
    functions = (*GraphModule.functions, "profile", "run_individual", "run_individual_node")

    def __init__(
        self,
        module: object,
        device: object = None,
        graph_json_str: object = None,
        dump_root: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(module)
        self.dump_root = None if dump_root is None else Path(dump_root)
        self._profile: Profile | None = None

    def run(self, **inputs: Any) -> None:
        """Run with a clock around every kernel; the outputs, and the values in between, are those of this run."""
        if inputs:
            self.set_input(**inputs)
        self._profile = profile = self._timed(1)
        self._state.outputs = self._model.cut(list(profile.outputs), self._profilearguments())
        if self.dump_root is not None:
            self._dump(self.dump_root, profile)

    def profile(self, collectors: object = None, repeat: int = 1, **inputs: Any) -> ModelReport:
        """What each kernel took: printed, a table with the slowest first; `.rows` and `.values` have it all.

        `.profile` compares it with what the machine can do.
        """
        if inputs:
            self.set_input(**inputs)
        self._profile = profile = self._timed(repeat)
        return report_of(profile, "Graph")

    def run_individual(
        self, number: int = 1, repeat: int = 1, min_repeat_ms: int = 0, *_: object, **__: object
    ) -> list[list[float]]:
        """Seconds of each kernel in the order of the program, `repeat` figures each."""
        runs = [self._timed(number) for _ in range(repeat)]
        return [[run.rows[index].seconds for run in runs] for index in range(len(runs[0].rows))]

    def run_individual_node(
        self, index: int, number: int = 10, repeat: int = 1, *_: object, **__: object
    ) -> list[float]:
        """The same of one kernel."""
        return self.run_individual(number, repeat)[index]

    def exit(self) -> None:
        """Nothing is held that would have to be given back."""

    def _profilearguments(self) -> list[TensorLike]:
        return self._model.arguments((), self._inputs)

    def _timed(self, repeat: int) -> Profile:
        self._require_inputs()
        return self._model.compiled.profile(*self._profilearguments(), repeat=max(1, repeat))

    def _dump(self, folder: Path, profile: Profile) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.json").write_text(self._model.get_graph_json(), encoding="utf-8")
        rows = [{"name": row.name, "seconds": row.seconds, "calls": row.calls} for row in profile.rows]
        (folder / "times.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        self._dump_for_tools(folder / "_tvmdbg_device_CPU_0", profile)

    def _dump_for_tools(self, folder: Path, profile: Profile) -> None:
        """The same under the names that tools look for: the graph, what every launch wrote, and when it ran."""
        folder.mkdir(exist_ok=True)
        (folder / "_tvmdbg_graph_dump.json").write_text(self._model.get_graph_json(), encoding="utf-8")
        tensors = {
            f"{row.name}____topo-index:{index}____output-num:{number}": value
            for index, row in enumerate(profile.rows)
            for number, value in enumerate(self._written(profile, index))
        }
        (folder / "output_tensors.params").write_bytes(save_param_dict(tensors))
        events, now = [], 0.0
        for row in profile.rows:
            ends = now + row.seconds * row.calls * 1e6
            for phase, time in (("B", now), ("E", ends)):
                events.append({"ts": time, "ph": phase, "pid": 1, "tid": 1, "name": row.name, "cat": "Complete"})
            now = ends
        trace = {"displayTimeUnit": "ns", "traceEvents": events}
        (folder / "_tvmdbg_execution_trace.json").write_text(json.dumps(trace), encoding="utf-8")


__all__ = ["GraphModuleDebug", "create"]
