"""The names that modules of the peer's have, so that one which is not built yet can say so.

A name that we have is found in our module and never looked up here; what is neither there nor here is an ordinary
AttributeError, as for a misspelling. So this table may name what is built: it then has no effect.
"""

from __future__ import annotations

from typing import Final

_PASSES = """
AnnotateDeviceRegions AnnotateEntryFunc Apply ApplyLayoutTransforms BF16ComputeLegalize BF16StorageLegalize BindTarget
BuildFunctions CoProcSync CombineContextCall CommonSubexprElimTIR CompactBufferAllocation ConvertBlocksToOpaque
ConvertForLoopsToSerial ConvertSSA DecorateDeviceScope DefaultGPUSchedule ExtractPrimFuncConstants FP8ComputeLegalize
FP8StorageLegalize Filter FlattenBuffer ForceNarrowIndexToInt32 HoistExpression HoistIfThenElse HoistedConditionals
HoistedLetBindings InferFragment InjectCopyIntrin InjectDoubleBuffer InjectPTXAsyncCopy InjectPTXLDG32
InjectPermutedLayout InjectPrefetch InjectRollingBuffer InjectSoftwarePipeline InjectVirtualThread InstallDebugSpans
InstrumentBoundCheckers InstrumentProfileIntrinsics LegalizePackedCalls LiftAttrScope LiftThreadBinding LoopPartition
LowerAsyncDMA LowerAutoCopy LowerCrossThreadReduction LowerCustomDatatypes LowerDeviceKernelLaunch
LowerDeviceStorageAccessInfo LowerInitBlock LowerIntrin LowerMatchBuffer LowerOpaqueBlock LowerTVMBuiltin
LowerThreadAllreduce LowerVtcmAlloc LowerWarpMemory MakePackedAPI MakeUnpackedAPI ManifestSharedMemoryLocalStage
MergeDynamicSharedMemoryAllocations NarrowDataType PlanAndUpdateBufferAllocationLocation PointerValueTypeRewrite
PrimFuncPass ReduceBranchingThroughOvercompute RemoveAssume RemoveNoOp RemoveStoreUndef RemoveWeightLayoutRewriteBlock
RenewDefs RenormalizeSplitPattern RewriteUnsafeSelect Simplify SkipAssert SplitHostDevice StorageFlatten StorageRewrite
TextureFlatten ThreadSync TransformMmaBufferLayout UnifyThreadBinding UnrollLoop UseAssumeToReduceBranches
VectorizeLoop VerifyMemory VerifyVTCMLimit prim_func_pass
"""
_DEVICES = "cl cpu cuda device ext_dev gpu hexagon metal mtl opencl rocm vpi vulkan webgpu"
_CONTAINERS = "Array Map"

NAMES: Final[dict[str, str]] = {
    "": f"""
        ConstantMemoryPools ConstantPoolInfo DataType DataTypeCode IRModule Object PoolInfo PoolInfoProperties PrimExpr
        Scriptable TVMError WorkspaceMemoryPools WorkspacePoolInfo build container convert get_global_func lower
        register_extension register_func register_object {_DEVICES}""",
    "_ffi": """
        convert_to_object get_global_func get_object_type_index register_error register_extension register_func
        register_object""",
    "_ffi.registry": """
        extract_ext_funcs get_global_func get_object_type_index list_global_func_names register_extension register_func
        register_object remove_global_func""",
    "_ffi.libinfo": "find_include_path find_lib_path split_env_var",
    "_ffi.runtime_ctypes": "DataType DataTypeCode Device MetadataModule ObjectRValueRef TVMArray TVMByteArray",
    "arith": """
        Analyzer ConstIntBound IntConstraints IntConstraintsTransform IntGroupBounds IntSet IntervalSet IterMapExpr
        IterMapLevel IterMark IterSplitExpr IterSumExpr ModularSet PresburgerSet ProofStrength
        RewriteSimplifierExtension deduce_bound detect_clip_bound detect_common_subexpr detect_iter_map
        detect_linear_equation estimate_region_lower_bound estimate_region_strict_bound estimate_region_upper_bound
        inverse_affine_iter_map
        iter_map_simplify normalize_iter_map_to_expr normalize_to_iter_sum solve_linear_equations
        solve_linear_inequalities subspace_divide""",
    "driver.build_module": "build get_binds lower schedule_to_module",
    "ir": f"""
        {_CONTAINERS} AffineType Attrs BaseComputeScope BaseExpr BaseFunc CallingConv ConstantMemoryPools DictAttrs
        EnvFunc FuncType GenericNode GlobalTypeVar GlobalVar GlobalVarSupply IRModule IncompleteType NameSupply Node Op
        OpAttr PointerType PoolInfo PrimExpr PrimType Range RelayExpr RelayRefType RelayExpr SequentialSpan SourceName
        Span TensorAffineType TensorType TupleAffineType TupleType Type TypeCall TypeConstraint TypeData TypeFunction
        TypeKind TypeRelation TypeVar WorkspaceMemoryPools assert_structural_equal get_first_structural_mismatch
        load_json make_node register_intrin_lowering register_op_attr save_json structural_equal structural_hash
        structural_hash unified_type""",
    "ir.instrument": """
        PassInstrument PassPrintingInstrument PassTimingInstrument PrintAfterAll PrintBeforeAll pass_instrument""",
    "ir.transform": """
        ApplyPassToFunction ModulePass Pass PassContext PassInfo PrintIR Sequential module_pass""",
    "nd": f"NDArray array empty empty_like from_dlpack numpyasarray {_DEVICES}",
    "relay": """
        Any Call CallWithFields Clause Constant ConstantWithFields Constructor Expr ExprFunctor ExprMutator
        ExprVisitor FuncType Function FunctionWithFields GlobalTypeVar GlobalVar Id If IfWithFields IncompleteType
        Kind Let LetWithFields Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard Prelude
        RefCreate RefRead RefType RefWrite ScopeBuilder ShapeVar SourceName Span SpanCheck TempExpr TensorType Tuple
        TupleGetItem TupleType TupleWrapper Type TypeCall TypeConstraint TypeData TypeFunctor TypeMutator
        TypeRelation TypeVar TypeVisitor Var bind build const create_executor fromtext load_param_dict optimize
        parse pretty_print save_param_dict scalar_type setrecursionlimit var""",
    "relay.analysis": """
        AnnotatedRegionSet CallGraph Feature all_dtypes all_type_vars all_vars bound_type_vars bound_vars
        check_basic_block_normal_form check_constant check_kind context_analysis count_layers detect_feature
        extract_fused_functions extract_intermdeiate_expr free_type_vars free_vars get_calibration_data
        get_total_mac_number list_fake_quantized_op_freqs list_op_freqs post_order_visit search_fc_transpose
        unmatched_cases well_formed""",
    "relay.frontend": """
        ChangeDatatype from_caffe from_caffe2 from_coreml from_darknet from_keras from_mxnet from_oneflow from_onnx
        from_paddle from_pytorch from_tensorflow from_tflite quantize_conv_bias_mode_from_str""",
    "relay.frontend.common": """
        AttrCvt ExprTable Renamer RequiredAttr StrAttrsDict autopad ensure_scalar_shape fold_constant get_name
        get_relay_op gru_cell infer_channels infer_shape infer_type infer_value infer_value_simulated lstm_cell new_var
        rnn_cell set_span shape_of to_int_list try_infer_value try_resolve_var_to_const unbind""",
    "relay.op": """
        Op OpPattern OpStrategy debug get list_op_names op_attrs register register_alter_op_layout
        register_broadcast_schedule register_compute register_convert_op_layout register_external_compiler
        register_fake_quantization_to_integer register_gradient register_infer_correct_layout
        register_injective_schedule register_legalize register_mixed_precision_conversion
        register_optional_fake_quantization_to_integer register_pattern register_reduce_schedule register_schedule
        register_shape_func register_stateful register_strategy strategy""",
    "relay.testing": """
        check_grad count count_ops create_workload gradient init layers make_nat_expr mlp mobilenet nat_to_int rand
        resnet run_as_python run_infer_type run_opt_pass to_python vgg""",
    "testing.aot": "convert_to_list create_relay_module_and_inputs_from_tflite_file get_dtype_range",
    "relay.transform": """
        AlterOpLayout AnnotateSpans AnnotateTarget AnnotateUsedMemory BackwardFoldScaleAxis BatchingOps
        CanonicalizeCast CanonicalizeOps CapturePostDfsIndexInSpans ChangeBatch CollagePartition
        CombineParallelBatchMatmul CombineParallelConv2D CombineParallelDense Conv2dToSparse Conv2dToSparse2
        ConvertLayout DeadCodeElimination Defunctionalization DefuseOps DenseToSparse DynamicToStatic
        EliminateCommonSubexpr EtaExpand FakeQuantizationToInteger FastMath FirstOrderGradient FlattenAtrousConv
        FlexibleShapeDispatch FoldConstant FoldConstantExpr FoldExplicitPadding FoldScaleAxis ForwardFoldScaleAxis
        FuseOps InferType InferTypeLocal Inline InlineGlobals LambdaLift LayoutConfig LazyGradientInit Legalize
        ManifestLifetimes MarkCompilerFunctionsAsExtern MergeCompilerRegions MergeComposite
        OutlineCompilerFunctionsWithExistingGlobalSymbols PartialEvaluate PartitionGraph PlanDevices
        RemoveUnusedFunctions SimplifyExpr SimplifyExprPostAlterOp SimplifyFCTranspose SimplifyInference SplitArgs
        ToANormalForm ToANormalFormExpr ToBasicBlockNormalForm ToCPS ToGraphNormalForm ToMixedPrecision build_config
        function_pass gradient recast tag_suffixes to_cps un_cps""",
    "runtime": f"""
        ADT DataType DataTypeCode Device Module NDArray Object ObjectGeneric ObjectPath PackedFunc Report Scriptable
        ShapeTuple String const container convert enabled executor from_dlpack load_module load_param_dict
        load_param_dict_from_file load_static_library module ndarray num_threads object_path packed_func profiling
        save_param_dict save_param_dict_to_file script_printer system_lib vm {_DEVICES}""",
    "runtime.module": """
        BenchmarkResult Module ModulePropertyMask enabled load_module load_static_library num_threads system_lib""",
    "script": "from_source ir ir_module parse relax tir",
    "target": """
        CompilationConfig GenericFunc Target TargetKind VirtualDevice adreno arm_cpu bifrost create cuda generic_func
        get_native_generic_func hexagon intel_graphics list_tags make_compilation_config mali micro opencl
        override_native_generic_func rasp riscv_cpu rocm stm32 vta""",
    "te": """
        AXIS_SEPARATOR BaseComputeOp ComputeOp ExternOp Fuse HybridOp Operation PlaceholderOp ScanOp Schedule Singleton
        SpecializedCondition Split Stage TagScope Tensor TensorComputeOp TensorIntrin TensorSlice abs acos acosh add all
        any asin asinh atan atan2 atanh ceil clz comm_reducer compute const cos cosh create_prim_func
        create_relax_prim_func create_schedule decl_tensor_intrin div erf exp exp10 exp2 extern extern_primfunc floor
        floordiv floormod fmod gradient hybrid if_then_else indexdiv indexmod isfinite isinf isnan likely log log10 log2
        logaddexp max max_value min min_value multiply nearbyint placeholder popcount power reduce_axis round rsqrt scan
        sigmoid sin sinh size_var sqrt subtract sum tag_scope tan tanh thread_axis trace trunc truncdiv truncmod var""",
    "te.hybrid": "HybridModule build decorate parse_py script source_to_op",
    "te.schedule": """
        AutoInlineBroadcast AutoInlineElemWise AutoInlineInjective CreateAttachPath CreateReadGraph Fuse InferBound
        IterVarAttr IterVarRelation PostDFSOrder Rebase ScanFixPointAnalysis ScanGetBody Schedule ScheduleOps
        SchedulePostProcToPrimFunc Singleton SpecializedCondition Split Stage Transform VerifyCompactBuffer
        create_schedule""",
    "testing": """
        CompareBeforeAfter Feature assert_allclose assert_prim_expr_equal check_bool_expr_is_true
        check_int_constraints_trans_consistency check_numerical_grads device_enabled echo enabled_targets
        exclude_targets fixture get_parameterized_combinations identity_cpp install_request_hook is_ampere_or_newer
        known_failing_targets local_run main object_use_count parameter parameters parametrize_targets requires_aprofile
        requires_arm_dot requires_cblas requires_corstone300 requires_cuda requires_cuda_compute_version
        requires_cudagraph requires_cudnn requires_gpu requires_hexagon requires_llvm requires_llvm_minimum_version
        requires_mac requires_metal requires_micro requires_nvcc_version requires_nvptx requires_opencl
        requires_package requires_rocm requires_rpc requires_tensorcore requires_vitis_ai requires_vulkan
        requires_x86 rpc_run run_with_gpu_rand_seed skip_if_32bit skip_if_no_reference_system skip_if_wheel_test
        slow strtobool terminate_self test_check_eq_callback test_raise_error_callback uses_gpu
        xfail_parameterizations""",
    "tir": """
        Add Allocate AllocateConst And Any AssertStmt AttrStmt BijectiveLayout BinaryOpExpr Block BlockDependenceInfo
        BlockRealize BlockRV Broadcast Buffer BufferLoad BufferRealize BufferRegion BufferStore Call CallEffectKind Cast
        CmpExpr CommReducer DataProducer DeclBuffer Div EQ Evaluate ExprRV FloatImm FloorDiv FloorMod For ForKind GE GT
        IfThenElse IndexMap IntImm IterVar LE LT Layout Let LetStmt LogicalExpr LoopRV MatchBufferRegion Max Min Mod Mul
        NE Not Or Prefetch PrimFunc ProducerLoad ProducerRealize ProducerStore Ramp Range Reduce Schedule ScheduleError
        ScheduleState Select SeqStmt Shuffle SizeVar Stmt StmtSRef StringImm Sub TVMBackendAllocWorkspace
        TVMBackendFreeWorkspace TensorIntrin Var While abs acos acosh add address_of all any asin asinh assume atan
        atan2 atanh bijective_layout bitwise_and bitwise_not bitwise_or bitwise_xor buffer call_cpacked
        call_cpacked_lowered call_extern call_intrin call_llvm_intrin call_llvm_pure_intrin call_packed
        call_packed_lowered call_pure_extern
        call_tir ceil ceildiv clz comm_reducer copysign cos cosh create_barriers decl_buffer div end_profile_intrinsic
        erf exp exp10 exp2 expr floor floordiv floormod fmod function generic hypot if_then_else indexdiv indexmod
        infinity isfinite isinf isnan isnullptr layout ldexp likely log log10 log1p log2 lookup_param max max_value min
        min_value mma_fill mma_store multiply nearbyint nextafter op popcount pow power ptx_arrive_barrier
        ptx_arrive_barrier_expect_tx ptx_commit_group ptx_cp_async ptx_cp_async_barrier ptx_cp_async_bulk
        ptx_init_barrier_thread_count ptx_ldmatrix ptx_mma ptx_mma_sp ptx_wait_barrier ptx_wait_group q_multiply_shift
        q_multiply_shift_per_axis reinterpret ret round rsqrt shift_left shift_right sigmoid sin sinh sqrt
        start_profile_intrinsic stmt_list stmt_seq subtract sum tan tanh trace trunc truncdiv truncmod
        type_annotation tvm_access_ptr tvm_bmma_sync tvm_check_return tvm_fill_fragment tvm_load_matrix_sync
        tvm_mma_sync tvm_stack_alloca tvm_stack_make_array tvm_stack_make_shape tvm_store_matrix_sync
        tvm_storage_sync tvm_struct_get tvm_struct_set tvm_thread_allreduce tvm_thread_invariant
        tvm_throw_last_error tvm_tuple tvm_warp_activemask tvm_warp_shuffle tvm_warp_shuffle_down
        tvm_warp_shuffle_up undef vectorcombine vectorhigh vectorlow""",
    "testing.tir": "mma_schedule",
    "tir.analysis": """
        Block OOBChecker apply_prim_func_arg_and_result_memory_constraints calculate_allocated_bytes
        calculate_constant_bytes calculate_workspace_bytes detect_buffer_access_lca estimate_tir_flops expr_deep_equal
        find_anchor_block get_block_access_region get_block_read_write_region
        get_prim_func_arg_and_result_memory_constraints
        get_vtcm_compaction_passes has_if_then_else undefined_vars verify_gpu_code verify_memory verify_ssa
        verify_well_formed""",
    "tir.schedule": """
        BlockRV BlockScope Dependency ExprRV Instruction InstructionKind LoopRV Schedule ScheduleError ScheduleState
        StmtSRef Trace""",
    "tir.stmt_functor": "ir_transform post_order_visit pre_order_visit renew_defs substitute",
    "tir.transform": _PASSES,
    "topi": """
        abs acos acosh add adv_index all any arange argmax argmin argsort argwhere asin asinh atan atanh binary_search
        bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_to cast ceil ceil_log2 clip collapse_sum concatenate
        cos cosh cumprod cumsum dft divide dynamic_strided_slice einsum elemwise_sum equal erf exp expand_dims
        expand_like fast_erf fast_exp fast_tanh fixed_point_multiply fixed_point_multiply_per_axis flip floor
        floor_divide floor_mod full full_like gather gather_nd generic greater greater_equal identity image
        invert_permutation isfinite isinf isnan layout_transform left_shift less less_equal log log10 log2 logical_and
        logical_not logical_or logical_xor matmul matrix_set_diag max maximum meshgrid min minimum mod multiply
        ndarray_size negative not_equal one_hot power prod random reinterpret repeat reshape reverse_sequence
        right_shift round rsqrt scanop scatter_elements scatter_nd searchsorted sequence_mask shape sigmoid sign sin
        sinh sliding_window sort sparse sparse_fill_empty_rows sparse_reshape sparse_to_dense split sqrt squeeze stack
        stft strided_set strided_slice subtract sum take tan tanh tensordot tile topk transpose trilu trunc unique
        unravel_index utils vision where""",
    "topi.nn": """
        adaptive_pool adaptive_pool3d batch_matmul batch_norm batch_to_space_nd binarize_pack binary_dense
        bitpack bitserial_conv2d_nchw bitserial_conv2d_nhwc bitserial_dense conv2d_alter_layout
        conv2d_gemm_weight_transform conv2d_infer_layout conv2d_legalize conv2d_winograd_nchw conv2d_winograd_nhwc
        conv2d_winograd_weight_transform conv3d_winograd_weight_transform correlation_nchw deformable_conv2d_nchw
        deformable_conv2d_nhwc dense dense_pack depth_to_space depthwise_conv2d_backward_input_nhwc
        depthwise_conv2d_backward_weight_nhwc fast_softmax fifo_buffer flatten group_norm instance_norm
        layer_norm leaky_relu log_softmax lrn lstm matmul nll_loss pool_grad prelu relu rms_norm scale_shift_nchw
        scale_shift_nchwc scale_shift_nhwc simulated_dequantize simulated_quantize softmax space_to_batch_nd
        space_to_depth sparse_add sparse_conv2d sparse_dense sparse_transpose upsampling upsampling3d""",
}
