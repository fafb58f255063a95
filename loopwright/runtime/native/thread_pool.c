/* The native part of Loopwright's runtime: a thread pool, a workspace for temporary buffers, and a timing loop.
 *
 *   lw_parallel_for           cuts [begin, end) into at most one contiguous chunk per thread and waits for all of them
 *   lw_parallel_for_dynamic   the same in small pieces: who is done with its own chunk takes pieces of the others'
 *   lw_workspace_*            temporary memory that is kept and reused, so that repeated calls meet no fresh pages
 *   lw_time_calls             calls a function many times and measures the whole, with no Python in between
 *
 * This file is the one translation unit: it includes the parts and holds the exported functions. It is part of the
 * runtime library and of every exported library that has parallel loops or large temporary buffers. All copies in one
 * process use the pool and the workspace of the copy that was asked first. They find it through one variable, which the
 * dynamic linker keeps once in a process even for libraries that share nothing else (STB_GNU_UNIQUE; it also keeps the
 * library loaded, as its threads need). */
#include "thread_pool.h"

#include "cpus.c"
#include "thread.c"
#include "pool.c"
#include "workspace.c"
#include "timing.c"

#ifndef LW_SOURCE_HASH
#define LW_SOURCE_HASH "unknown"
#endif

EXPORT const char* lw_source_hash(void) { return LW_SOURCE_HASH; }

typedef struct {
  int64_t version; /* members are only ever added, at the end */
  int32_t (*parallel_for)(Body, int64_t, int64_t, void*);
  int32_t (*get_num_threads)(void);
  void (*set_num_threads)(int32_t);
  int32_t (*override_num_threads)(int32_t);
  void (*set_error_hooks)(void (*)(void**), void (*)(void*), int (*)(void*));
  /* from version 2 on */
  int32_t (*parallel_for_dynamic)(Body, int64_t, int64_t, void*, int64_t);
  void* (*workspace_alloc)(int64_t);
  void (*workspace_free)(void*);
  int64_t (*workspace_held)(void);
  void (*workspace_trim)(void);
} Pool;

static const Pool own_pool = {2, parallel_for, get_num_threads, set_num_threads, override_num_threads, set_error_hooks,
                              parallel_for_dynamic, workspace_alloc, workspace_free, workspace_held, workspace_trim};

#if defined(__GLIBC__) /* defined in assembly: C has no word for this kind of symbol */
__asm__(
    ".pushsection .data\n"
    ".balign 8\n"
    ".globl lw_process_pool\n"
    ".type lw_process_pool, %gnu_unique_object\n"
    "lw_process_pool:\n"
    ".zero 8\n"
    ".size lw_process_pool, 8\n"
    ".popsection\n");
extern EXPORT _Atomic(const Pool*) lw_process_pool;
#else
EXPORT _Atomic(const Pool*) lw_process_pool = NULL;
#endif

static const Pool* pool(void) {
  const Pool* found = atomic_load_explicit(&lw_process_pool, memory_order_acquire);
  if (found != NULL) return found;
  atomic_compare_exchange_strong(&lw_process_pool, &found, &own_pool);
  return found != NULL ? found : &own_pool;
}

/* Where a version 2 is needed, and the process began with an older library: this copy's own. */
static const Pool* pool2(void) {
  const Pool* found = pool();
  return found->version >= 2 ? found : &own_pool;
}

EXPORT int32_t lw_parallel_for(Body body, int64_t begin, int64_t end, void* closure) {
  return pool()->parallel_for(body, begin, end, closure);
}

EXPORT int32_t lw_parallel_for_dynamic(Body body, int64_t begin, int64_t end, void* closure, int64_t grain) {
  const Pool* found = pool();
  if (found->version < 2) return found->parallel_for(body, begin, end, closure); /* two pools would be worse */
  return found->parallel_for_dynamic(body, begin, end, closure, grain);
}

EXPORT int32_t lw_get_num_threads(void) { return pool()->get_num_threads(); }

EXPORT void lw_set_num_threads(int32_t count) { pool()->set_num_threads(count); }

EXPORT int32_t lw_override_num_threads(int32_t count) { return pool()->override_num_threads(count); }

EXPORT void lw_set_error_hooks(void (*take)(void**), void (*put)(void*), int (*drop)(void*)) {
  pool()->set_error_hooks(take, put, drop);
}

/* At least `bytes`, aligned to 64, with arbitrary contents; NULL when there is no memory. */
EXPORT void* lw_workspace_alloc(int64_t bytes) { return pool2()->workspace_alloc(bytes); }

EXPORT void lw_workspace_free(void* memory) { pool2()->workspace_free(memory); }

/* Bytes that the calling thread keeps for reuse or has in use. */
EXPORT int64_t lw_workspace_held(void) { return pool2()->workspace_held(); }

/* Give back what the calling thread keeps and does not use, now, and what other threads keep, when they next look. */
EXPORT void lw_workspace_trim(void) { pool2()->workspace_trim(); }
