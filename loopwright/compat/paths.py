"""Which of our modules a path of the peer's means.

Most paths need no row: `tvm.te.hybrid` is `loopwright.te.hybrid`. The rows below are for modules that the peer divides
in another way; names that a module of ours under the same path lacks are looked up in these, from left to right.
"""

from __future__ import annotations

from typing import Final

PEER_VERSION: Final = "0.15.0"  # whose names these are

VIEWS: Final[dict[str, str]] = {
    "": "loopwright.compat.global_functions loopwright loopwright.runtime loopwright.compat.ffi_base",
    "_ffi": "loopwright.compat.registered_functions loopwright.runtime loopwright.error",
    "_ffi.base": "loopwright.error loopwright.compat.ffi_base",
    "_ffi.libinfo": "loopwright.compat.ffi_base",
    "_ffi.ndarray": "loopwright.nd",
    "_ffi.registry": "loopwright.compat.registered_functions loopwright.runtime",
    "_ffi.runtime_ctypes": "loopwright.runtime loopwright.compat.ffi_base",
    "arith.analyzer": "loopwright.arith",
    "arith.bound": "loopwright.arith",
    "arith.int_set": "loopwright.arith",
    "arith.int_solver": "loopwright.arith",
    "arith.iter_affine_map": "loopwright.arith",
    "arith.pattern": "loopwright.arith",
    "container": "loopwright.compat.containers loopwright.runtime loopwright.ir",
    "contrib.target": "loopwright.compat.absent_accelerators",
    "contrib.target.vitis_ai": "loopwright.compat.absent_accelerators",
    "driver.tvmc": "loopwright.compat.tvmc",
    **{
        f"driver.tvmc.{name}": f"loopwright.compat.tvmc.{name}"
        for name in """
        compiler config_options frontends model pass_config pass_list result_utils runner shape_parser target tracker
        transform
        """.split()
    },
    "instrument": "loopwright.transform loopwright.ir.instrument",
    "ir": "loopwright.compat.containers loopwright.runtime.containers loopwright.relay.types "
    "loopwright.compat.type_solver",
    "ir._ffi_api": "loopwright.ir",
    "ir.attrs": "loopwright.ir",
    "ir.base": "loopwright.ir",
    "ir.container": "loopwright.compat.containers loopwright.ir loopwright.runtime",
    "ir.expr": "loopwright.ir.expr loopwright.ir loopwright.tir",
    "ir.function": "loopwright.ir.function loopwright.ir",
    "ir.instrument": "loopwright.transform loopwright.ir.instrument",
    "ir.module": "loopwright.ir",
    "ir.op": "loopwright.ir.op loopwright.ir",
    "ir.supply": "loopwright.compat.supply",
    "ir.tensor_type": "loopwright.ir loopwright.relay.types",
    "ir.transform": "loopwright.transform",
    "ir.type": "loopwright.ir loopwright.relay.types",
    "meta_schedule.utils": "loopwright.meta_schedule.derived",
    "ndarray": "loopwright.nd",
    "parser": "loopwright.relay.text",
    "relay.analysis._ffi_api": "loopwright.compat.type_solver",
    "relay": "loopwright.compat.build_config",
    "relay.transform": "loopwright.compat.build_config",
    "relay._ffi_api": "loopwright.relay",
    "relay.analysis.feature": "loopwright.relay.analysis",
    "relay.analysis.analysis": "loopwright.relay.analysis",
    "relay.analysis.call_graph": "loopwright.relay.analysis",
    "relay.base": "loopwright.relay",
    "relay.data_dep_optimization": "loopwright.relay.transform",
    "relay.data_dep_optimization.simplify_fc_transpose": "loopwright.relay.transform.simplify.simplify_fc_transpose",
    "relay.build_module": "loopwright.relay.executors loopwright.relay.backend.build_steps",
    "relay.expr": "loopwright.relay.visitor loopwright.relay.with_fields loopwright.relay.spans",
    "relay.expr_functor": "loopwright.relay.visitor",
    "relay.frontend.common": "loopwright.compat.frontend_common",
    "relay.function": "loopwright.relay.expr loopwright.relay.with_fields",
    "relay.op": "loopwright.relay.op.registry loopwright.relay.op.user_operators loopwright.relay.op.strategies "
    "loopwright.relay.transform",
    "relay.op.algorithm": "loopwright.relay.op",
    "relay.op.annotation": "loopwright.relay.annotation",
    "relay.op.annotation.annotation": "loopwright.relay.annotation",
    "relay.op.dyn": "loopwright.relay.dyn",
    "relay.op.image": "loopwright.relay.image",
    "relay.op.image.image": "loopwright.relay.image",
    "relay.op.memory": "loopwright.relay.memory",
    "relay.op.nn": "loopwright.relay.nn",
    "relay.op.nn.nn": "loopwright.relay.nn",
    "relay.op.op": "loopwright.relay.op loopwright.relay.op.registry loopwright.relay.op.user_operators "
    "loopwright.relay.op.strategies loopwright.relay.transform",
    "relay.op.random": "loopwright.relay.random",
    "micro.testing.aot_test_utils": "loopwright.testing.aot_options",
    "micro.testing.utils": "loopwright.testing.aot_options",
    "relay.backend.executor": "loopwright.relay.backend",
    "relay.backend.runtime": "loopwright.relay.backend",
    "relay.backend.name_transforms": "loopwright.compat.name_transforms",
    "relay.backend.utils": "loopwright.compat.name_transforms",
    "relay.backend.vm": "loopwright.relay.vm",
    "relay.op.contrib.ethosn": "loopwright.compat.absent_accelerators",
    "relay.op.contrib.register": "loopwright.relay.op.contrib",
    "relay.op.random.kernel": "loopwright.relay.random",
    "relay.op.reduce": "loopwright.relay.op",
    "relay.op.strategy": "loopwright.compat.strategy_wrappers",
    "relay.op.strategy.generic": "loopwright.compat.strategy_wrappers",
    "relay.op.tensor": "loopwright.relay.op",
    "relay.op.transform": "loopwright.relay.op",
    "relay.op.vision": "loopwright.relay.vision",
    "relay.param_dict": "loopwright.relay",
    "relay.parser": "loopwright.relay.text",
    "relay.qnn.op.qnn": "loopwright.relay.qnn.op",
    "relay.testing": "loopwright.testing",
    "relay.testing.init": "loopwright.relay.testing.workload",
    "relay.transform._ffi_api": "loopwright.relay.transform",
    "relay.transform.transform": "loopwright.relay.transform",
    "relay.ty": "loopwright.relay.types loopwright.relay",
    "runtime": "loopwright.compat.ffi_base",
    "runtime._ffi_api": "loopwright.runtime",
    "runtime.executor": "loopwright.contrib.graph_executor",
    "runtime.executor.aot_executor": "loopwright.contrib.graph_executor",
    "runtime.vm": "loopwright.relay.vm",
    "runtime.container": "loopwright.runtime loopwright.ir",
    "runtime.module": "loopwright.runtime",
    "runtime.module._ffi_api": "loopwright.runtime",
    "runtime.name_transforms": "loopwright.compat.name_transforms",
    "runtime.ndarray": "loopwright.nd loopwright.runtime",
    "runtime.object": "loopwright.runtime",
    "runtime.object_generic": "loopwright.runtime",
    "runtime.object_path": "loopwright.runtime",
    "runtime.packed_func": "loopwright.runtime",
    "runtime.params": "loopwright.runtime",
    "runtime.profiler_vm": "loopwright.compat.profiler_vm",
    "runtime.profiling": "loopwright.compat.profiling",
    "runtime.script_printer": "loopwright.script",
    "script.parser.ir": "loopwright.script.ir",
    "script.parser.tir": "loopwright.script.tir",
    "script.printer.doc": "loopwright.compat.script_doc",
    "script.printer.doc_printer": "loopwright.compat.script_doc_printer",
    "support": "loopwright.compat.ffi_testing",
    "target._ffi_api": "loopwright.target.codegen",
    "target.generic_func": "loopwright.target",
    "target.tag": "loopwright.target",
    "te": "loopwright.ir.intrinsics",
    "te._ffi_api": "loopwright.te",
    "te.autodiff": "loopwright.te",
    "te.hybrid.runtime": "loopwright.te.hybrid.emulation",
    "te.operation": "loopwright.te",
    "te.schedule": "loopwright.tir",
    "te.tag": "loopwright.te",
    "te.tensor": "loopwright.te",
    "te.tensor_intrin": "loopwright.te",
    "testing": "loopwright.compat.ffi_testing",
    "testing.tir": "loopwright.testing",
    "testing.utils": "loopwright.testing",
    "tir": "loopwright.schedule",
    "tir._ffi_api": "loopwright.tir loopwright.ir",
    "tir.analysis.analysis": "loopwright.tir.analysis",
    "tir.expr": "loopwright.tir loopwright.ir",
    "tir.function": "loopwright.tir",
    "tir.op": "loopwright.tir loopwright.ir",
    "tir.schedule.analysis": "loopwright.schedule.analysis loopwright.schedule loopwright.analysis",
    "tir.block_dependence_info": "loopwright.tir",
    "tir.block_scope": "loopwright.schedule.engine.state loopwright.schedule",
    "tir.schedule.block_scope": "loopwright.schedule.engine.state loopwright.schedule",
    "tir.schedule.instruction": "loopwright.schedule",
    "tir.schedule.schedule": "loopwright.schedule",
    "tir.schedule.state": "loopwright.schedule.engine.state loopwright.schedule",
    "tir.schedule.testing": "loopwright.schedule.testing",
    "tir.schedule.trace": "loopwright.schedule",
    "tir.stmt": "loopwright.tir",
    "tir.transform.function_pass": "loopwright.transform",
    "tir.transform.transform": "loopwright.tir.transform",
    "tir.tensor_intrin.arm_cpu": "loopwright.compat.arm_intrinsics",
    "tir.tensor_intrin.cuda": "loopwright.compat.cuda_intrinsics",
    "transform": "loopwright.ir.transform",
    "topi.cpp": "loopwright.topi",
    **{f"topi.cpp.{name}": f"loopwright.topi.{name}" for name in "cuda generic image nn utils vision x86".split()},
    "topi.generic.injective": "loopwright.topi.generic",
    "topi.generic.nn": "loopwright.topi.generic",
    "topi.math": "loopwright.topi",
    "topi.random.kernel": "loopwright.topi.random",
    "topi.sparse.csrmm": "loopwright.topi.sparse",
    "topi.sparse.csrmv": "loopwright.topi.sparse",
    "topi.sparse.dense": "loopwright.topi.sparse",
    "topi.tensor": "loopwright.topi",
    "topi.transform": "loopwright.topi",
    "topi.vision.nms": "loopwright.topi.vision",
    **dict.fromkeys(
        (
            f"topi.{name}"
            for name in """
            argwhere broadcast einsum reduction scan scatter searchsorted signal sort unique
            """.split()
        ),
        "loopwright.topi",
    ),
    **dict.fromkeys(
        (
            f"topi.nn.{name}"
            for name in """
            batch_matmul bitserial_conv2d bitserial_dense conv1d conv1d_transpose conv2d conv2d_transpose conv3d
            conv3d_transpose correlation deformable_conv2d dense depthwise_conv2d dilate elemwise flatten
            group_conv2d group_norm instance_norm layer_norm mapping pad prelu qnn rms_norm utils winograd_util
            """.split()
        ),
        "loopwright.topi.nn",
    ),
}

# Paths of which nothing is built yet; each stands for everything below it as well. One that gets a module of ours under
# the same name is found there first, and needs no row any more.
TO_COME: Final[tuple[str, ...]] = tuple(
    """
    auto_scheduler autotvm exec micro relax rpc
    contrib._ffi_api contrib.binutil contrib.coreml_runtime contrib.cublas contrib.cublaslt
    contrib.cuda_graph
    contrib.cudnn contrib.cusparse contrib.cutlass contrib.dnnl contrib.emcc
    contrib.ethosu contrib.graph_runtime contrib.hexagon contrib.hipblas contrib.micro
    contrib.miopen contrib.mkl contrib.mps contrib.mrvl contrib.ndk contrib.nnpack contrib.peak
    contrib.pipeline_executor contrib.pipeline_executor_build contrib.rocblas
    contrib.rocm contrib.rpc contrib.sdaccel contrib.sparse contrib.spirv_utils contrib.stackvm contrib.tedd
    contrib.tf_op contrib.tflite_runtime contrib.thrust contrib.torch contrib.tvmjs contrib.uma contrib.verilator
    contrib.vitis_ai contrib.vllm contrib.xcode
    driver.tvmc.arguments driver.tvmc.autotuner driver.tvmc.composite_target driver.tvmc.main driver.tvmc.micro
    driver.tvmc.project driver.tvmc.registry driver.tvmc.workspace_pools
    ir.adt ir.affine_type ir.analysis ir.json_compact ir.memory_pools ir.type_relation
    relay.collage relay.debug relay.feature relay.frontend.caffe
    relay.frontend.caffe2 relay.frontend.change_datatype relay.frontend.coreml
    relay.frontend.darknet relay.frontend.keras relay.frontend.mxnet relay.frontend.oneflow relay.frontend.paddlepaddle
    relay.frontend.qnn_torch relay.frontend.tensorflow relay.frontend.tensorflow2 relay.frontend.tflite
    relay.quantize._annotate relay.transform.infer_layout_utils
    relay.op.layout_conversions relay.op.strategy relay.op.vm
    relay.testing.py_converter relay.testing.resnet_3d
    relay.testing.tf relay.testing.tflite
    relay.testing.yolo_detection relay.utils
    runtime.disco runtime.support utils
    script.parser_v1 script.relax
    target.detect_target target.intrin
    target.x86
    testing.auto_scheduler testing.autotvm testing.micro testing.popen_pool testing.runner
    tir.sparse
    tir.tensor_intrin.dot_product_common tir.tensor_intrin.hexagon tir.tensor_intrin.rocm tir.usmp
    topi.adreno topi.bifrost topi.cpp.rocm topi.gpu
    topi.hexagon topi.hls topi.intel_graphics topi.mali topi.rocm
    """.split()
)
