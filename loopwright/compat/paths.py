"""Which of our modules a path of the peer's means.

Most paths need no row: `tvm.te.hybrid` is `loopwright.te.hybrid`. The rows below are for modules that the peer divides
in another way; names that a module of ours under the same path lacks are looked up in these, from left to right.
"""

from __future__ import annotations

from typing import Final

PEER_VERSION: Final = "0.15.0"  # whose names these are

VIEWS: Final[dict[str, str]] = {
    "": "loopwright loopwright.runtime loopwright.compat.ffi_base",
    "_ffi": "loopwright.runtime loopwright.error",
    "_ffi.base": "loopwright.error loopwright.compat.ffi_base",
    "_ffi.libinfo": "loopwright.compat.ffi_base",
    "_ffi.ndarray": "loopwright.nd",
    "_ffi.registry": "loopwright.runtime",
    "_ffi.runtime_ctypes": "loopwright.runtime loopwright.compat.ffi_base",
    "arith.analyzer": "loopwright.arith",
    "arith.bound": "loopwright.arith",
    "arith.int_set": "loopwright.arith",
    "arith.int_solver": "loopwright.arith",
    "arith.iter_affine_map": "loopwright.arith",
    "arith.pattern": "loopwright.arith",
    "container": "loopwright.runtime loopwright.ir",
    "instrument": "loopwright.transform loopwright.ir.instrument",
    "ir": "loopwright.runtime.containers",
    "ir.attrs": "loopwright.ir",
    "ir.base": "loopwright.ir",
    "ir.container": "loopwright.ir loopwright.runtime",
    "ir.expr": "loopwright.ir.expr loopwright.ir loopwright.tir",
    "ir.function": "loopwright.ir.function loopwright.ir",
    "ir.instrument": "loopwright.transform loopwright.ir.instrument",
    "ir.module": "loopwright.ir",
    "ir.op": "loopwright.ir.op loopwright.ir",
    "ir.tensor_type": "loopwright.ir",
    "ir.transform": "loopwright.transform",
    "ir.type": "loopwright.ir",
    "ndarray": "loopwright.nd",
    "runtime": "loopwright.compat.ffi_base",
    "runtime.container": "loopwright.runtime loopwright.ir",
    "runtime.module": "loopwright.runtime",
    "runtime.ndarray": "loopwright.nd loopwright.runtime",
    "runtime.object": "loopwright.runtime",
    "runtime.object_generic": "loopwright.runtime",
    "runtime.object_path": "loopwright.runtime",
    "runtime.packed_func": "loopwright.runtime",
    "runtime.params": "loopwright.runtime",
    "runtime.script_printer": "loopwright.script",
    "script.parser.ir": "loopwright.script.ir",
    "script.parser.tir": "loopwright.script.tir",
    "target.generic_func": "loopwright.target",
    "target.tag": "loopwright.target",
    "te": "loopwright.ir.intrinsics",
    "te.autodiff": "loopwright.te",
    "te.operation": "loopwright.te",
    "te.tag": "loopwright.te",
    "te.tensor": "loopwright.te",
    "te.tensor_intrin": "loopwright.te",
    "testing.tir": "loopwright.testing",
    "testing.utils": "loopwright.testing",
    "tir": "loopwright.schedule",
    "tir.analysis.analysis": "loopwright.tir.analysis",
    "tir.expr": "loopwright.tir loopwright.ir",
    "tir.function": "loopwright.tir",
    "tir.op": "loopwright.tir loopwright.ir",
    "tir.schedule.analysis": "loopwright.schedule.analysis loopwright.schedule loopwright.analysis",
    "tir.schedule.block_scope": "loopwright.schedule.state loopwright.schedule",
    "tir.schedule.instruction": "loopwright.schedule",
    "tir.schedule.schedule": "loopwright.schedule",
    "tir.schedule.state": "loopwright.schedule.state loopwright.schedule",
    "tir.schedule.testing": "loopwright.schedule.testing",
    "tir.schedule.trace": "loopwright.schedule",
    "tir.stmt": "loopwright.tir",
    "tir.transform.function_pass": "loopwright.transform",
    "tir.transform.transform": "loopwright.tir.transform",
    "topi.nn.utils": "loopwright.topi.nn",
}

# Paths of which nothing is built yet; each stands for everything below it as well. One that gets a module of ours under
# the same name is found there first, and needs no row any more.
TO_COME: Final[tuple[str, ...]] = tuple(
    """
    auto_scheduler autotvm exec meta_schedule micro parser relax relay rpc
    contrib._ffi_api contrib.binutil contrib.cblas contrib.coreml_runtime contrib.cublas contrib.cublaslt
    contrib.cuda_graph
    contrib.cudnn contrib.cusparse contrib.cutlass contrib.debugger contrib.dnnl contrib.download contrib.emcc
    contrib.ethosu contrib.graph_runtime contrib.hexagon contrib.hipblas contrib.micro
    contrib.miopen contrib.mkl contrib.mps contrib.mrvl contrib.ndk contrib.nnpack contrib.peak contrib.pickle_memoize
    contrib.pipeline_executor contrib.pipeline_executor_build contrib.random contrib.relay_viz contrib.rocblas
    contrib.rocm contrib.rpc contrib.sdaccel contrib.sparse contrib.spirv_utils contrib.stackvm contrib.tedd
    contrib.tf_op contrib.tflite_runtime contrib.thrust contrib.torch contrib.tvmjs contrib.uma contrib.verilator
    contrib.vitis_ai contrib.vllm contrib.xcode
    driver.tvmc
    ir.adt ir.affine_type ir.analysis ir.diagnostics ir.json_compact ir.memory_pools ir.supply ir.type_relation
    runtime.disco runtime.executor runtime.name_transforms runtime.profiler_vm runtime.profiling runtime.support
    runtime.vm
    script.parser_v1 script.relax
    target.codegen target.compilation_config target.detect_target target.intrin target.virtual_device
    target.x86
    testing.aot testing.auto_scheduler testing.autotvm testing.micro testing.popen_pool testing.runner testing.usmp
    tir.block_dependence_info tir.block_scope tir.sparse tir.tensor_intrin tir.usmp
    topi.adreno topi.arm_cpu topi.bifrost topi.cuda topi.generic topi.gpu topi.hexagon topi.hls topi.image
    topi.intel_graphics topi.mali topi.random topi.rocm topi.sparse topi.transform topi.utils topi.vision topi.x86
    """.split()
)
