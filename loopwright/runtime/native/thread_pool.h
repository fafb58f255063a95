/* What the parts of the native runtime share. They are compiled as one translation unit (`thread_pool.c` includes them),
 * so everything but the exported functions is static, and the compiler inlines across them. */
#ifndef LW_THREAD_POOL_H
#define LW_THREAD_POOL_H

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define MAX_THREADS 1024
#define LINE 128 /* processors fetch lines of 64 bytes in pairs */

typedef int32_t (*Body)(int64_t begin, int64_t end, void* closure);

/* cpus.c: how many threads a loop may use. */
static void set_up_once(void);
static int32_t num_cpus(void);
static int32_t get_num_threads(void);
static void set_num_threads(int32_t count);
static int32_t override_num_threads(int32_t count);

/* thread.c: what the system gives one thread. */
typedef struct {
  uint64_t vectors;
  uint64_t x87;
} FloatControl;
static inline void relax(void);
static void park(_Atomic int32_t* word, int32_t value);
static void unpark(_Atomic int32_t* word);
static void forget_sleepers(void);
static inline FloatControl float_control(void);
static inline void set_float_control(FloatControl control);
static int32_t this_thread(void);
static void forget_thread(void);
static int this_cpu(void);
static int was_displaced(void);

/* pool.c: the threads, and loops that run on them. */
static int32_t parallel_for(Body body, int64_t begin, int64_t end, void* closure);
static int32_t parallel_for_dynamic(Body body, int64_t begin, int64_t end, void* closure, int64_t grain);
static void set_error_hooks(void (*take)(void**), void (*put)(void*), int (*drop)(void*));
static void wake_workers(void);
static void forget_workers(void);

/* workspace.c: temporary memory. */
static void* workspace_alloc(int64_t bytes);
static void workspace_free(void* memory);
static int64_t workspace_held(void);
static void workspace_trim(void);
static void trim_if_asked(void);
static void count_kept_blocks(void);

/* timing.c: the clock. */
static inline int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif
