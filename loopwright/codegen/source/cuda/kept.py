"""KeptCuda: a module with kernels in the compile cache: the code of the host and the text of the kernels.

The images of the kernels are not in it: they are kept by their text, their architecture and the NVRTC that made them.
"""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

from loopwright.codegen.compile_cache import CUDA_KIND, packed_text, unpacked_text
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.engine import Compiled
from loopwright.codegen.source.cuda.kernels import Alignment, CudaKernel, CudaKernels, KernelParameter
from loopwright.codegen.source.cuda.launching import CudaFunctions
from loopwright.codegen.source.cuda.make_module import CudaModule, launching_module
from loopwright.runtime.artifact_file import Artifact
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.json_text import JsonObject
from loopwright.target import CpuDescription, Target


class KeptCuda(NamedTuple):
    """A module with kernels that is not linked."""

    host_object: bytes
    packed_host: bytes  # its LLVM text
    opt_level: int
    effort: Effort
    kernels: CudaKernels
    description: ModuleDescription
    target: str

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""
        return len(self.host_object) + len(self.packed_host) + len(self.kernels.text)

    def linked(self, cpu: CpuDescription) -> CudaModule:
        """A module of this process; its functions are linked when one is called."""
        text = functools.partial(unpacked_text, self.packed_host)
        host = Compiled(text, cpu, self.opt_level, self.effort, self.host_object, {})
        result = launching_module(CudaFunctions(host, self.kernels, cpu, Target(self.target)), self.description)
        result.timings = {}
        return result

    def header(self) -> dict[str, object]:
        """What is small, with the `kind` of the entry."""
        kernels = {name: kernel._asdict() for name, kernel in self.kernels.kernels.items()}
        return {
            "kind": CUDA_KIND,
            "opt_level": self.opt_level,
            "effort": int(self.effort),
            "description": self.description.to_json(),
            "cuda_target": self.target,
            "kernels": json.dumps([self.kernels.architecture, kernels]),
        }

    def parts(self) -> dict[str, bytes]:
        """What is large."""
        return {"object": self.host_object, "ll": self.packed_host, "kernels": packed_text(self.kernels.text)}


def kept_cuda(host: Compiled, functions: CudaFunctions, description: ModuleDescription) -> KeptCuda:
    """A module whose host code was compiled to `host`."""
    return KeptCuda(
        host.object_bytes,
        packed_text(host.ll),
        host.opt_level,
        host.effort,
        functions.kernels,
        description,
        str(functions.target),
    )


def cuda_in(artifact: Artifact) -> KeptCuda:
    """What an entry of the store holds; a KeyError, TypeError or ValueError where it holds something else."""
    header, parts = artifact
    architecture, kernels = json.loads(header["kernels"])
    return KeptCuda(
        parts["object"],
        parts["ll"],
        int(header["opt_level"]),
        Effort(header["effort"]),
        CudaKernels(
            unpacked_text(parts["kernels"]), {name: _kernel(one) for name, one in kernels.items()}, str(architecture)
        ),
        ModuleDescription.from_json(header["description"]),
        str(header["cuda_target"]),
    )


def _kernel(fields: JsonObject) -> CudaKernel:
    """JSON has lists where a kernel has tuples."""
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    parameters = tuple([KernelParameter(*one) for one in plain.pop("parameters")])
    alignments = tuple([Alignment(*one) for one in plain.pop("alignments")])
    return CudaKernel(**plain, parameters=parameters, alignments=alignments)
