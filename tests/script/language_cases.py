"""Every form of the language: read, written back in both styles, evaluated, compiled.

Each program below must read back as itself. Then it runs in the evaluator and as native code, and both agree; or it is
refused, and the table at the end says by which error.
"""

from __future__ import annotations

FLOATS = {
    "grid star": """
        for i, *js in T.grid(2, 2, 4):
            A[i*8+js[0]*4+js[1]] = T.float32(0)
    """,
    "grid star first": """
        for *js, i in T.grid(2, 2, 4):
            A[js[0]*8+js[1]*4+i] = T.float32(0)
    """,
    "grid tuple": """
        for ij in T.grid(4, 4):
            A[ij[0]*4+ij[1]] = T.float32(0)
    """,
    "grid *extents": """
        for ij in T.grid(*[4, 4]):
            A[ij[0]*4+ij[1]] = T.float32(0)
    """,
    "bool if": """
        if True:
            A[0] = T.float32(1)
    """,
    "augassign": """
        for i in range(16):
            A[i] += B[i]
            A[i] -= 1.0
            A[i] *= 2.0
            A[i] /= 2.0
    """,
    "vector slice": """
        A[0:4] = B[4:8] + B[8:12]
        A[4:12:2] = B[0:8:2]
    """,
    "vector slice scalar bcast": """
        A[0:4] = T.float32(1)
        A[0:4] = B[0:4] * 2.0
        A[3:4] = B[0]
    """,
    "vector neg step": """
        A[0:4] = B[3:-1:-1]
    """,
    "let": """
        x = B[0]
        A[0] = x
        for i in range(4):
            y = B[i]
            A[i] = y
    """,
    "let ann": """
        x: T.float32 = B[0]
        A[0] = x
    """,
    "let ptr": """
        p: T.handle('float32') = A.data
        C = T.Buffer((16,), data=p)
        C[0] = T.float32(1)
    """,
    "letstmt with": """
        with T.LetStmt(B[0]) as x:
            A[0] = x
        with T.LetStmt(B[0], T.float32) as z:
            A[0] = z
        y = T.float32()
        with T.LetStmt(B[1], var=y):
            A[1] = y
    """,
    "T.let stmt": """
        y = T.float32()
        T.let(y, B[1])
        A[1] = y
    """,
    "T.let stmt with": """
        y = T.float32()
        with T.let(y, B[1]):
            A[1] = y
    """,
    "let expr": """
        y = T.float32()
        A[1] = T.let(y, B[1], y + y)
        A[2] = T.Let(y * y, where={y: B[2]})
    """,
    "assert": """
        assert 1 < 2, 'x'
        with T.Assert(3 < 4, 'y'):
            A[0] = T.float32(1)
        T.Assert(True, 'z')
        A[1]=T.float32(1)
    """,
    "evaluate str": """
        T.evaluate('abc')
    """,
    "evaluate int": """
        T.evaluate(0)
        1
        True
    """,
    "meta_var": """
        x = T.meta_var(3)
        for i in range(x):
            A[i] = T.float32(x)
    """,
    "meta_var iter": """
        a, b = T.meta_var([1, 2])
        A[a] = B[b]
        for q in T.grid(*T.meta_var((2,2))):
            A[q[0]] = B[q[1]]
    """,
    "match region": """
        for i in range(4):
            with T.block('b'):
                vi = T.axis.spatial(4, i)
                T.reads(B[vi*4:vi*4+4])
                T.writes(A[vi*4:vi*4+4])
                A0 = T.match_buffer(A[vi*4:vi*4+4], (4,), strides=['s'], offset_factor=1)
                B0 = T.match_buffer(B[vi*4:vi*4+4], (4,), 'float32', offset_factor=4)
                for j in range(4):
                    A0[j] = B0[j]
    """,
    "allocate_const": """
        p = T.allocate_const([1.0, 2.0], 'float32', [2])
        C = T.Buffer((2,), data=p)
        A[0] = C[0]
    """,
    "allocate with": """
        with T.allocate([16], 'float32', 'global') as p:
            C = T.Buffer((16,), data=p)
            C[0] = T.float32(1)
            A[0] = C[0]
    """,
    "decl with": """
        with T.decl_buffer((16,), 'float32') as C:
            C[0] = T.float32(1)
            A[0] = C[0]
        D = T.decl_buffer((4,4), data=A.data)
        D[0,0] = T.float32(3)
    """,
    "realize": """
        C = T.Buffer((16,), 'float32')
        T.realize(C[0:16], 'global')
        C[0] = T.float32(1)
        A[0] = C[0]
    """,
    "realize scope": """
        C = T.Buffer((16,), 'float32')
        with T.realize(C[0:16], 'shared'):
            C[0] = T.float32(1)
            A[0] = C[0]
    """,
    "prefetch": """
        T.prefetch(A, [T.Range(0, 4)])
    """,
    "prefetch2": """
        T.prefetch(A, [(0, 4)])
    """,
    "buffer_store": """
        T.buffer_store(A, 1.0, [3])
        T.buffer_store(A, B[0:4], [T.Ramp(0, 1, 4)])
    """,
    "attr": """
        T.attr(A.data, 'storage_alignment', 64)
        A[0] = T.float32(1)
    """,
    "attr none": """
        T.attr(None, 'pragma_x', 1)
        with T.attr(0, 'pragma_y', 'str'):
            A[0] = T.float32(1)
    """,
    "attr target": """
        T.attr(T.target('llvm'), 'target', 0)
        A[0] = T.float32(1)
    """,
    "attr dict node": """
        T.attr({'a': 1}, 'target', 0)
        A[0] = T.float32(1)
    """,
    "env_thread": """
        tx = T.env_thread('threadIdx.x')
        T.launch_thread(tx, 16)
        A[tx] = B[tx]
    """,
    "launch with": """
        with T.launch_thread('blockIdx.x', 4) as bx:
            with T.launch_thread('threadIdx.x', 4) as tx:
                A[bx*4+tx] = B[bx*4+tx]
    """,
    "launch vthread": """
        with T.launch_thread('vthread', 16) as bx:
            A[bx] = B[bx]
    """,
    "launch vthread.x": """
        bx = T.launch_thread('vthread.x', 16)
        A[bx] = B[bx]
    """,
    "thread_binding": """
        for i in T.thread_binding(16, 'threadIdx.x'):
            A[i] = B[i]
        for i in T.thread_binding(0, 16, thread='threadIdx.x', annotations={'a': 1}):
            A[i] = B[i]
        for i in T.thread_binding(0, 16, 'threadIdx.x'):
            A[i]=B[i]
    """,
    "serial": """
        for i in T.serial(0, 16, annotations={'k': 'v'}):
            A[i] = B[i]
        for i in T.unroll(16):
            A[i] = B[i]
        for i in T.vectorized(16):
            A[i] = B[i]
        for i in T.parallel(2, 16):
            A[i] = B[i]
    """,
    "unsigned loop": """
        for i in T.serial(T.uint32(16)):
            A[i] = B[i]
        for j in range(T.int64(3)):
            A[j] = B[j]
    """,
    "while": """
        i = T.decl_buffer((1,), 'int32')
        i[0] = 0
        while i[0] < 4:
            A[i[0]] = B[i[0]]
            i[0] = i[0] + 1
    """,
    "rank0": """
        C = T.decl_buffer((), 'float32')
        C[()] = B[0]
        A[0] = C[()]
    """,
    "func_attr": """
        T.func_attr({'global_symbol': 'main', 'tir.noalias': True, 'x': [1, 2, 'a'],
            'target': T.target('llvm'), 'd': {'a': T.int64(3)}})
        A[0] = B[0]
    """,
    "comm_reducer": """
        T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), 'reduce_scope', T.reinterpret('handle', T.uint64(0)))
        A[0]=B[0]
    """,
    "comm_reducer2": """
        least = T.meta_var(T.min_value('float32'))
        pair = T.meta_var(T.comm_reducer(lambda x, p, y, q: (x + y, T.max(p, q)), [T.float32(0), least]))
        T.attr(pair, 'reduce_scope', 0)
        A[0]=B[0]
    """,
    "index_map": """
        T.func_attr({'m': T.index_map(lambda i, j: (j, i))})
        A[0]=B[0]
    """,
    "index_map inv": """
        T.func_attr({'m': [T.index_map(lambda i, j: [j, i], inverse_index_map=lambda i, j: [j, i])]})
        A[0]=B[0]
    """,
    "iter_var": """
        v = T.int32()
        T.attr(T.iter_var(v, (0, 16), 'ThreadIndex', 'threadIdx.x'), 'thread_extent', 16)
        A[v]=B[v]
    """,
    "call_packed": """
        T.call_packed('f', A, 1, 'x', 2.0)
        T.call_cpacked('g', A)
        T.evaluate(T.call_packed('h', A[0:4]))
    """,
    "call_extern kw": """
        A[0] = T.call_extern('sqrtf', B[0], dtype='float32')
    """,
    "call_llvm": """
        A[0] = T.call_llvm_pure_intrin('float32', 'llvm.sqrt.f32', T.uint32(1), B[0])
        A[0] = T.call_llvm_intrin('float32', 'llvm.fabs.f32', T.uint32(1), B[0])
    """,
    "call_intrin": """
        A[0] = T.call_intrin('float32', 'tir.exp', B[0])
    """,
    "block attrs": """
        with T.block('b'):
            T.where(True)
            T.reads([B[0], B[1:3]])
            T.writes(A[0:2])
            T.block_attr({'a': [1, 'b', None, True], 'c': {'x': 1.5}})
            A[0] = B[0]
    """,
    "block unnamed": """
        with T.block():
            A[0] = B[0]
    """,
    "block no_realize": """
        with T.block('x', no_realize=True):
            A[0] = B[0]
    """,
    "axes": """
        for i, j in T.grid(4, 4):
            with T.block('b'):
                vi = T.axis.S(4, i)
                vj = T.axis.R((0, 4), j)
                A[vi] = A[vi] + B[vj]
    """,
    "axes2": """
        for i, j in T.grid(4, 4):
            with T.block('b'):
                vi = T.axis.scan(T.Range(0, 4), i)
                vj = T.axis.opaque(4, j, dtype='int64')
                A[vi] = B[vj]
    """,
    "remap one": """
        for i in range(16):
            with T.block('b'):
                vi = T.axis.remap('S', [i])
                A[vi] = B[vi]
    """,
    "remap one tuple": """
        for i in range(16):
            with T.block('b'):
                [vi] = T.axis.remap('S', [i])
                A[vi] = B[vi]
    """,
    "init": """
        for i in range(16):
            with T.block('b'):
                v = T.axis.remap('R', [i])
                with T.init():
                    A[0] = T.float32(0)
                A[0] = A[0] + B[v]
    """,
    "axis alone": """
        for i in range(16):
            with T.block('b'):
                T.axis.spatial(16, i)
                A[0] = B[0]
    """,
    "vec types": """
        A[0:4] = T.float32x4(1.0)
        A[0:4] = T.Broadcast(T.float32(1), 4)
    """,
    "size var": """
        n = T.int32(is_size_var=True)
        T.evaluate(n)
    """,
    "float specials": """
        A[0] = T.float32('inf')
        A[1] = T.float32('-inf')
        A[2] = T.float32('nan')
        A[3] = T.infinity('float32')
        A[4] = T.max_value('float32')
    """,
    "buffer_decl": """
        C = T.buffer_decl((16,), data=A.data)
        C[0] = T.float32(0)
    """,
    "select": """
        A[0] = T.Select(B[0] > T.float32(0), B[0], T.float32(0))
        A[1] = T.if_then_else(B[0] > 0.0, B[1], 0.0)
    """,
    "nodes2": """
        A[0:4] = T.Shuffle([B[0:2], B[2:4]], [0, 1, 2, 3])
        T.evaluate(T.StringImm('x'))
        A[0] = T.FloatImm('float32', 2.0)
        v = T.Var('v', 'int32')
        w = T.SizeVar('w', 'int32')
        T.evaluate(v + w)
    """,
    "listcomp": """
        xs = [T.float32(i) for i in range(3)]
        A[0] = xs[0] + xs[2]
        A[1] = sum([B[k] for k in range(4)], T.float32(0))
        ys = {k: v for k, v in zip('ab', (1, 2))}
        A[2] = T.float32(ys['b'])
    """,
    "lambda": """
        f = T.meta_var(lambda x: x * x)
        A[0] = f(B[0])
    """,
    "lambda bare": """
        f = lambda x: x * x
        A[0] = f(B[0])
    """,
    "fstring": """
        with T.block(f'b_{3}'):
            A[0] = B[0]
    """,
    "min py builtins": """
        A[min(1,2)] = B[max(3, 4)]
        A[len([1,2])] = B[0]
    """,
    "access": """
        T.evaluate(A.access_ptr('r'))
        T.evaluate(A.access_ptr('rw', offset=4))
        A.vstore(0, B.vload(0, 'float32x4'))
        T.evaluate(A.offset_of([3])[0])
        T.evaluate(A.elem_offset)
        T.evaluate(A.shape[0])
    """,
    "thread sync": """
        T.tvm_storage_sync('shared')
        A[0]=B[0]
    """,
    "ternary": """
        A[0] = B[0] if B[0] > T.float32(0) else B[1]
        A[1] = B[0] if True else B[1]
    """,
    "reads pointer": """
        with T.block('b'):
            T.reads(B[0:16])
            T.writes(A[0:16])
            T.call_extern('int32', 'f', A.data, B.data)
    """,
    "docstring": """
        '''doc'''
        A[0] = B[0]
    """,
    "pass": """
        pass
    """,
    "if pass": """
        if B[0] > 0.0:
            pass
        else:
            A[0] = T.float32(1)
    """,
    "multi with": """
        with T.attr(0, 'x', 1), T.attr(0, 'y', 2):
            A[0] = B[0]
    """,
    "loop target list": """
        for (i, j) in T.grid(4, 4):
            A[i*4+j] = B[j]
    """,
    "alloc": """
        C = T.alloc_buffer((16,), 'float32', scope='shared')
        for i in range(16):
            with T.block('b'):
                v = T.axis.spatial(16, i)
                D = T.alloc_buffer(16)
                D[v] = B[v]
                C[v] = D[v]
    """,
    "type_annotation": """
        x: T.type_annotation('float32') = B[0]
        A[0] = x
        v = T.var('int32', 'vv')
        T.evaluate(v)
    """,
    "float8": """
        T.evaluate(T.float8(1.0))
        T.evaluate(T.float8x4())
    """,
    "chained ptr let": """
        p: T.handle('float32') = T.address_of(A[0])
        C = T.decl_buffer((16,), data=p)
        C[0] = T.float32(1)
    """,
    "struct": """
        T.tvm_struct_set(A.data, 0, 3, 4)
        x: T.handle = T.tvm_struct_get(A.data, 0, 1, dtype='handle')
        T.evaluate(x)
    """,
    "ctl": """
        T.assume(B[0] > 0.0)
        if T.likely(B[0] > 1.0):
            A[0] = T.undef()
        if T.isnullptr(A.data):
            A[0] = T.reinterpret('float32', T.int32(3))
    """,
    "mem": """
        T.evaluate(T.tvm_access_ptr(T.type_annotation('float32'), A.data, 0, 16, 1))
        T.evaluate(T.address_of(A[0]))
        T.tvm_throw_last_error()
        T.evaluate(T.lookup_param('p0'))
        T.tvm_check_return(0, -1, 3)
    """,
    "stack": """
        s: T.handle('float32') = T.tvm_stack_alloca('array', 1)
        T.evaluate(T.tvm_stack_make_shape(1, 2))
        T.evaluate(T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(16), 0, 1, T.float32(0), 0))
        T.tvm_tuple(1, 2)
        w: T.handle = T.TVMBackendAllocWorkspace(1, 0, T.uint64(4), 2, 32)
        T.TVMBackendFreeWorkspace(1, 0, w)
    """,
    "packedf": """
        T.tvm_call_packed('f', A)
        T.tvm_call_cpacked('f', A)
        T.call_packed_lowered('f', A.data, A.data, 0, 1)
        T.call_cpacked_lowered('f', A.data, 0, 1)
        T.tvm_call_packed_lowered('f', A.data, 0,1)
        T.tvm_call_cpacked_lowered('f', A.data, 0, 1)
    """,
    "llvm id": """
        A[0] = T.call_llvm_pure_intrin('float32', T.llvm_lookup_intrinsic_id('llvm.sqrt.f32'), T.uint32(1), B[0])
    """,
    "warp": """
        T.evaluate(T.tvm_warp_shuffle(T.tvm_warp_activemask(), A[0], 0, 32, 32))
        T.evaluate(T.tvm_warp_shuffle_up(T.uint32(1), A[0], 0, 32, 32))
        T.evaluate(T.tvm_warp_shuffle_down(T.uint32(1), A[0], 0, 32, 32))
        T.evaluate(T.tvm_warp_shuffle_xor(T.uint32(1), A[0], 0, 32, 32))
        T.tvm_thread_allreduce(T.uint32(1), A[0], T.bool(True), B.data, 0)
    """,
    "wmma": """
        T.tvm_load_matrix_sync(A.data, 16, 16, 16, 0, A.access_ptr('r'), 16, 'row_major')
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, 0, A.access_ptr('w'), 16, 'row_major')
        T.tvm_mma_sync(A.data, 0, A.data, 0, A.data, 0, A.data, 0)
        T.tvm_bmma_sync(A.data, 0, A.data, 0, A.data, 0, A.data, 0)
        T.tvm_fill_fragment(A.data, 16, 16, 16, 0, T.float32(0))
    """,
    "ptx": """
        T.ptx_mma('float32', 'm16n8k16', 'row', 'col', 'fp16', 'fp16', 'fp32', A.data, 0, A.data, 0, A.data, 0, False)
        kinds = T.meta_var(('m16n8k16', 'row', 'col', 'fp16', 'fp16', 'fp32'))
        T.ptx_mma(*kinds, A.data, 0, A.data, 0, A.data, 0, False, dtype='float32')
        T.ptx_mma_sp('float32', *kinds, A.data, 0, A.data, 0, A.data, 0, A.data, 0, 0, False)
        T.ptx_ldmatrix('float16', False, 4, '.b16', A.data, 0, B.data, 0)
        T.mma_store('float32', 16, 16, A.data, B.data, 0, 16)
        T.mma_fill('float32', 8, A.data, 0)
        T.ptx_cp_async('float32', A.data, 0, B.data, 0, 16)
        T.ptx_cp_async_bulk('float32', A.data, 0, B.data, 0, 16, 0)
        T.ptx_commit_group()
        T.ptx_wait_group(1)
        T.ptx_cp_async_barrier(0)
        T.ptx_init_barrier_thread_count(0, 32)
        T.ptx_arrive_barrier(0)
        T.ptx_arrive_barrier_expect_tx(0, 16)
        T.ptx_wait_barrier(0)
        T.create_barriers(4)
    """,
    "vecparts": """
        A[0:2] = T.vectorlow('float32x2', B[0:4])
        A[0:2] = T.vectorhigh('float32x2', B[0:4])
        A[0:4] = T.vectorcombine('float32x4', B[0:2], B[2:4])
    """,
    "profile": """
        T.start_profile_intrinsic(3)
        T.end_profile_intrinsic(3)
    """,
    "stray dtype": """
        A[0] = T.exp(B[0], dtype='float32')
        A[1] = T.if_then_else(B[0] > 0.0, B[0], B[1], dtype='float32')
        T.call_packed('f', A[0], dtype='int32')
        A[2] = T.max(B[0], B[1], dtype='float32')
    """,
    "producerload": """
        total = T.meta_var(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]))
        k = T.meta_var(T.iter_var('k', (0, 3), 'CommReduce', ''))
        T.evaluate(T.Reduce(total, [B[0]], [k], True, 0))
    """,
    "Range": """
        T.attr(T.Range(2, 5), 'x', 0)
        A[0]=B[0]
    """,
    "bool fold": """
        if 1 < 2:
            A[0]=B[0]
        if not False:
            A[1] = B[1]
    """,
    "evaluate load": """
        T.evaluate(A[0])
        A[0]
    """,
    "target host": """
        T.func_attr({'target': T.target({'kind': 'llvm'}, host='llvm')})
        A[0]=B[0]
    """,
    "target host2": """
        T.func_attr({'target': T.target('llvm', host={'kind': 'llvm'})})
        A[0]=B[0]
    """,
}

INTS = {
    "augassign ints": """
        for i in range(16):
            A[i] //= 3
            A[i] %= 5
            A[i] <<= 1
            A[i] >>= 1
            A[i] &= 7
            A[i] |= 8
            A[i] ^= 3
    """,
    "int ctor": """
        A[0] = T.int8(3) + T.int8(4)
        A[1] = T.cast(B[0], 'int32')
        A[2] = T.int32(B[0])
        A[3] = T.Cast('int32', T.int64(3))
    """,
    "ops": """
        A[0] = B[0] + 1 - 2 * B[1] // 3 % 4
        A[1] = (B[0] << 2) >> 1 & 3 | 4 ^ ~B[1]
        A[2] = -B[0]
        if 0 < B[0] < 3 and not (B[1] == 2 or B[2] != 3):
            A[3] = 1
    """,
    "nodes": """
        A[0] = T.Add(B[0], 1)
        A[1] = T.Min(B[0], T.int32(2))
        A[2] = T.FloorMod(B[0], T.int32(3))
        A[3] = T.Cast('int32', T.EQ(B[0], T.int32(1)))
        A[4]=T.Select(T.And(T.LT(B[0],T.int32(3)), T.Not(T.GE(B[0],T.int32(2)))), T.IntImm('int32', 3), T.int32(4))
        A[5]=T.BufferLoad(B,[3])
        A[6]=T.Call('int32','tir.abs',[B[0]])
    """,
}

OTHERS = {
    "declare var tuple": """
        @T.prim_func
        def main(c: T.handle):
            m, n = T.int32(), T.int32()
            C = T.match_buffer(c, (m, n))
            C[0, 0] = T.float32(1)
    """,
    "string strides": """
        @T.prim_func
        def main(c: T.handle):
            C = T.match_buffer(c, (16, 16), strides=('s0', 's1'), elem_offset='off')
            C[0, 0] = T.float32(1)
            T.evaluate(C.strides[0]+C.elem_offset)
    """,
    "ret": """
        @T.prim_func
        def main(A: T.Buffer((16,), "float32")):
            T.ret(A[0])
    """,
    "evaluate ret": """
        @T.prim_func
        def main(A: T.Buffer((16,), "float32")):
            T.evaluate(T.ret(A[0]))
    """,
    "ret type": """
        @T.prim_func
        def main(n: T.int32) -> T.int32:
            T.ret(n + 1)
    """,
    "ret type none": """
        @T.prim_func
        def main(n: T.int32) -> None:
            T.evaluate(n)
    """,
    "handle params": """
        @T.prim_func
        def main(a: T.handle, b: T.handle("float32"), c: T.handle("float32", "shared"), d: T.Ptr(T.float32),
                 e: T.handle("void"), f: T.bool, g: T.float64, h: T.int64(is_size_var=True)):
            T.evaluate(0)
    """,
    "module": """
        @I.ir_module
        class Module:
            I.module_attrs({"a": 1})
            @T.prim_func
            def main(A: T.Buffer((16,), "float32")):
                Module.f(A.data, 3)
                T.call_tir(Module.g)
                Module.g()
            @T.prim_func(private=True)
            def f(a: T.handle("float32"), n: T.int32):
                A = T.Buffer((16,), data=a)
                A[n] = T.float32(1)
            @T.prim_func
            def g():
                T.evaluate(0)
    """,
    "module cls": """
        @I.ir_module
        class Mod2:
            @T.prim_func
            def main(A: T.Buffer((16,), "float32")):
                cls = T.meta_var(Mod2)
                cls.f(A.data)
            @T.prim_func
            def f(a: T.handle("float32")):
                A = T.Buffer((16,), data=a)
                A[0] = T.float32(1)
    """,
    "Buffer[]": """
        @T.prim_func
        def main(A: T.Buffer[(16,), 'float32'], B: T.Buffer[16]):
            A[0] = T.float32(1)
    """,
    "Buffer int shape": """
        @T.prim_func
        def main(A: T.Buffer(16)):
            A[0] = T.float32(1)
    """,
    "Buffer all kw": """
        @T.prim_func
        def main(A: T.Buffer((16, 16), 'float32', strides=(16, 1), elem_offset=0, scope='global',
                             align=4, offset_factor=1, buffer_type='auto', axis_separators=[1])):
            A[0, 0] = T.float32(1)
    """,
    "int64 buffers": """
        @T.prim_func
        def main(A: T.Buffer((T.int64(16),), 'float32'), B: T.Buffer((T.int64(16),), 'float32')):
            for i in T.serial(T.int64(16)):
                A[i] = B[i]
    """,
    "bf16 f8": """
        @T.prim_func
        def main(A: T.Buffer((16,), 'bfloat16')):
            A[0] = T.bfloat16(1.5)
            T.evaluate(T.e4m3_float8(1.0))
    """,
}

INTRINSICS_OF_FLOATS = (
    "abs fabs acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 exp10 floor log log2 log10 log1p nearbyint "
    "round rsqrt sigmoid sin sinh sqrt tan tanh trunc"
).split()
INTRINSICS_OF_TWO_FLOATS = "atan2 copysign fmod hypot nextafter pow power".split()
INTRINSICS_OF_INTS = "clz popcount bitwise_not abs".split()
INTRINSICS_OF_TWO_INTS = (
    "ceildiv floordiv floormod truncdiv truncmod shift_left shift_right bitwise_and bitwise_or bitwise_xor min max"
).split()

# What neither the evaluator nor a CPU can run, and how it is refused: by (evaluator, build); None: runs there.
FREE = ("is used but nothing gives it a value", "is not well formed")
NO_CPU = (None, "which a CPU does not have")
REFUSED = {
    "declare var tuple": (None, r"C\[0, 0\] is outside its shape"),
    "env_thread": NO_CPU,
    "launch with": NO_CPU,
    "thread_binding": NO_CPU,
    "iter_var": NO_CPU,
    "call_packed": ("", "call_packed"),
    "call_llvm": ("tir.call_llvm_pure_intrin is not built", None),
    "llvm id": ("tir.call_llvm_pure_intrin is not built", None),
    "size var": FREE,
    "nodes2": FREE,
    "type_annotation": FREE,
    "float8": FREE,
    "thread sync": ("tir.tvm_storage_sync is not built", "tir.tvm_storage_sync on the llvm target is not built"),
    "reads pointer": ("'f'", None),  # compiled; missing symbols are found when it is loaded
    "struct": ("tir.tvm_struct_set is not built", "tir.tvm_struct_set on the llvm target is not built"),
    "mem": ("tir.tvm_throw_last_error is not built", "tir.tvm_throw_last_error on the llvm target is not built"),
    "stack": ("tir.tvm_stack_alloca is not built", "tir.tvm_stack_alloca on the llvm target is not built"),
    "packedf": ("", "tir.call_packed_lowered on the llvm target is not built"),
    "warp": ("tir.tvm_warp_shuffle is not built", "tir.tvm_warp_shuffle on the llvm target is not built"),
    "wmma": ("tir.tvm_load_matrix_sync is not built", "tir.tvm_load_matrix_sync on the llvm target is not built"),
    "ptx": ("tir.ptx_mma is not built", "tir.ptx_mma on the llvm target is not built"),
    "stray dtype": ("'f'", None),
    "producerload": ("Reduce nodes is not built", "a te reduction stands in a function"),
}
# Programs whose results are not compared: the values are unspecified, or parameters are handles.
NOT_COMPARED = {"ctl", "handle params", "call_extern kw", "bf16 f8"}
