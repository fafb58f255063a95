/* The native part of Loopwright's runtime: a thread pool, a workspace for temporary buffers, and a timing loop.
 *
 *   lw_parallel_for   cuts [begin, end) into at most one contiguous chunk per thread and waits for all of them
 *   lw_workspace_*    temporary memory that is kept and reused, so that repeated calls meet no fresh pages
 *   lw_time_calls     calls a function many times and measures the whole, with no Python in between
 *
 * There is one pool per process. Workers spin for a moment after a job, because the next loop often follows at
 * once, and then sleep. A loop inside a loop runs in its caller, and so does a loop that finds the pool taken.
 * After fork() the child has none of its parent's workers: it begins with a new, empty pool.
 */
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
#ifdef __linux__
#include <sched.h>
#endif
#include <sys/mman.h>

#ifndef LW_SOURCE_HASH
#define LW_SOURCE_HASH "unknown"
#endif
#define EXPORT __attribute__((visibility("default")))
#define MAX_THREADS 1024
#define SPIN_NS 50000 /* a few times what waking a sleeping thread costs, and far below one time slice */
#define STACK_BYTES (8u << 20)

typedef int32_t (*Body)(int64_t begin, int64_t end, void* closure);

EXPORT const char* lw_source_hash(void) { return LW_SOURCE_HASH; }

/* ---- How many threads ---------------------------------------------------------------------------------------- */

static int32_t affinity_cpus(void) {
#ifdef __linux__
  for (int size = 1024; size <= 1 << 20; size *= 2) { /* the kernel refuses a mask smaller than its own */
    cpu_set_t* set = CPU_ALLOC(size);
    if (set == NULL) break;
    size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set);
    int failed = sched_getaffinity(0, bytes, set);
    int count = failed ? 0 : CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (!failed && count > 0) return count;
    if (failed && errno != EINVAL) break;
  }
#endif
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int32_t)count : 1;
}

static int read_line(const char* directory, const char* path, const char* file, char* out, int size) {
  char name[4096];
  if (snprintf(name, sizeof name, "%s%s/%s", directory, path, file) >= (int)sizeof name) return 0;
  FILE* stream = fopen(name, "r");
  if (stream == NULL) return 0;
  int ok = fgets(out, size, stream) != NULL;
  fclose(stream);
  return ok;
}

static int32_t fewest(int32_t limit, double quota, double period) {
  if (quota <= 0 || period <= 0) return limit;
  double cpus = quota / period;
  int32_t whole = cpus >= MAX_THREADS ? MAX_THREADS : (int32_t)cpus + (cpus > (int32_t)cpus);
  return whole < limit ? whole : limit;
}

/* The CPUs that a container may use: the least quota of this process's group and the groups around it.
 * `membership` is /proc/self/cgroup, `mount` is /sys/fs/cgroup (tests give others). MAX_THREADS means no limit. */
EXPORT int32_t lw_quota_cpus(const char* membership, const char* mount) {
  int32_t limit = MAX_THREADS;
  char line[4096], text[256];
  FILE* stream = fopen(membership, "r");
  if (stream == NULL) return limit;
  while (fgets(line, sizeof line, stream) != NULL) { /* "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1 */
    line[strcspn(line, "\n")] = 0;
    char* controllers = strchr(line, ':');
    char* path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL) continue;
    *path++ = 0;
    controllers++;
    int second = *controllers == 0;
    if (!second && strncmp(controllers, "cpu,", 4) != 0 && strcmp(controllers, "cpu") != 0 &&
        strstr(controllers, ",cpu,") == NULL)
      continue;
    char root[4096];
    if (snprintf(root, sizeof root, second ? "%s" : "%s/cpu", mount) >= (int)sizeof root) continue;
    for (;;) { /* from the innermost group outwards; the last turn, with an empty path, is the mount itself */
      double quota = 0, period = 0;
      size_t length = strlen(path);
      if (length > 0 && path[length - 1] == '/') path[--length] = 0;
      if (second) {
        if (read_line(root, path, "cpu.max", text, sizeof text) && sscanf(text, "%lf %lf", &quota, &period) == 2)
          limit = fewest(limit, quota, period);
      } else if (read_line(root, path, "cpu.cfs_quota_us", text, sizeof text) && sscanf(text, "%lf", &quota) == 1 &&
                 read_line(root, path, "cpu.cfs_period_us", text, sizeof text) && sscanf(text, "%lf", &period) == 1) {
        limit = fewest(limit, quota, period);
      }
      char* slash = strrchr(path, '/');
      if (slash == NULL) break;
      *slash = 0;
    }
  }
  fclose(stream);
  return limit;
}

static int32_t available_cpus(void) {
  int32_t cpus = affinity_cpus();
  int32_t quota = lw_quota_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota < cpus) cpus = quota;
  return cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : cpus;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int32_t cpus_here = 1;        /* what this process may use */
static _Atomic int32_t process_threads = 1;  /* set once from the environment, then by lw_set_num_threads */
static _Thread_local int32_t thread_override; /* of the calling thread; 0: none */
static _Thread_local int inside;              /* this thread is running a chunk */

/* ---- Errors --------------------------------------------------------------------------------------------------- */

/* tvm_ffi keeps the raised error per thread. What a chunk raises in a worker must reach the thread that waits for the
 * loop, so it is taken from the one and put into the other. Without tvm_ffi there is only the status. */
static void (*take_error)(void** error);
static void (*put_error)(void* error);
static int (*drop_error)(void* error);

static void set_error_hooks(void (*take)(void**), void (*put)(void*), int (*drop)(void*)) {
  take_error = take;
  put_error = put;
  drop_error = drop;
}

/* ---- The pool ------------------------------------------------------------------------------------------------ */

typedef struct {
  Body body;
  void* closure;
  int64_t begin;
  uint64_t share, rest; /* every chunk has `share` iterations, the first `rest` chunks one more */
  _Atomic int32_t status;  /* of the first chunk that failed */
  void* error;             /* what that chunk raised */
  _Atomic int32_t pending; /* chunks that workers have not finished */
  int spin;                /* no spinning when threads outnumber processors */
} Job;

typedef struct {
  _Alignas(64) _Atomic uint32_t ticket; /* counts the jobs given to this worker */
  _Atomic int asleep;
  int32_t chunk;
  pthread_mutex_t lock;
  pthread_cond_t wake;
} Worker;

static Job job;
static Worker* workers[MAX_THREADS]; /* [0] is unused: chunk 0 belongs to the caller */
static int32_t worker_count = 1;     /* changed only by the thread that holds `taken` */
static atomic_flag taken = ATOMIC_FLAG_INIT;
static _Alignas(64) _Atomic int caller_asleep;
static pthread_mutex_t caller_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t caller_wake = PTHREAD_COND_INITIALIZER;

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb"); /* `yield` is a no-op on most cores; isb waits about as long as pause does */
#endif
}

static inline int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void run_chunk(int32_t chunk) {
  uint64_t extra = (uint64_t)chunk < job.rest ? (uint64_t)chunk : job.rest;
  int64_t begin = (int64_t)((uint64_t)job.begin + (uint64_t)chunk * job.share + extra);
  int64_t end = (int64_t)((uint64_t)begin + job.share + ((uint64_t)chunk < job.rest));
  inside = 1;
  int32_t status = job.body(begin, end, job.closure);
  inside = 0;
  if (status == 0) return;
  void* error = NULL;
  if (take_error != NULL) take_error(&error);
  int32_t none = 0;
  if (atomic_compare_exchange_strong(&job.status, &none, status))
    job.error = error;
  else if (error != NULL)
    drop_error(error);
}

static void* work(void* argument) {
  Worker* self = argument;
  uint32_t seen = 0;
  int spin = 1;
  for (;;) {
    if (spin) {
      int64_t until = now_ns() + SPIN_NS;
      do {
        for (int i = 0; i < 32 && atomic_load_explicit(&self->ticket, memory_order_acquire) == seen; i++) relax();
      } while (atomic_load_explicit(&self->ticket, memory_order_acquire) == seen && now_ns() < until);
    }
    if (atomic_load(&self->ticket) == seen) {
      pthread_mutex_lock(&self->lock);
      atomic_store(&self->asleep, 1); /* before the second look at the ticket: the caller writes them the other way */
      while (atomic_load(&self->ticket) == seen) pthread_cond_wait(&self->wake, &self->lock);
      atomic_store(&self->asleep, 0);
      pthread_mutex_unlock(&self->lock);
    }
    seen = atomic_load(&self->ticket);
    spin = job.spin;
    run_chunk(self->chunk);
    if (atomic_fetch_sub(&job.pending, 1) == 1 && atomic_load(&caller_asleep)) {
      pthread_mutex_lock(&caller_lock);
      pthread_cond_signal(&caller_wake);
      pthread_mutex_unlock(&caller_lock);
    }
  }
  return NULL;
}

/* Have `count` threads, the caller among them, or as many as the system gives. */
static int32_t grow(int32_t count) {
  while (worker_count < count) {
    Worker* worker = NULL;
    if (posix_memalign((void**)&worker, 64, sizeof(Worker)) != 0) break;
    memset(worker, 0, sizeof *worker);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->wake, NULL);
    worker->chunk = worker_count;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t all, before; /* signals belong to the program's own threads, except those a thread brings on itself */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, &attributes, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) {
      free(worker);
      break;
    }
    workers[worker_count++] = worker;
  }
  return worker_count < count ? worker_count : count;
}

/* In the child of a fork no worker runs, and locks may be held by threads that do not exist. */
static void forget_workers(void) {
  worker_count = 1;
  inside = 0;
  pthread_mutex_init(&caller_lock, NULL);
  pthread_cond_init(&caller_wake, NULL);
  atomic_store(&caller_asleep, 0);
  atomic_flag_clear(&taken);
}

static void set_up(void) {
  int32_t count = available_cpus();
  atomic_store(&cpus_here, count);
  const char* text = getenv("LOOPWRIGHT_NUM_THREADS");
  if (text != NULL && atoi(text) > 0) count = atoi(text);
  atomic_store(&process_threads, count > MAX_THREADS ? MAX_THREADS : count);
  pthread_atfork(NULL, NULL, forget_workers);
}

static int32_t get_num_threads(void) {
  pthread_once(&once, set_up);
  return thread_override > 0 ? thread_override : atomic_load(&process_threads);
}

/* For the whole process; 0 or less: what the affinity and the quota allow now. */
static void set_num_threads(int32_t count) {
  pthread_once(&once, set_up);
  if (count <= 0) atomic_store(&cpus_here, count = available_cpus());
  atomic_store(&process_threads, count > MAX_THREADS ? MAX_THREADS : count);
}

/* For loops started by the calling thread; 0: none. Returns the override before. */
static int32_t override_num_threads(int32_t count) {
  int32_t before = thread_override;
  thread_override = count < 0 ? 0 : count > MAX_THREADS ? MAX_THREADS : count;
  return before;
}

static int32_t parallel_for(Body body, int64_t begin, int64_t end, void* closure) {
  if (end <= begin) return 0;
  uint64_t length = (uint64_t)end - (uint64_t)begin;
  int32_t count = inside ? 1 : get_num_threads();
  if ((uint64_t)count > length) count = (int32_t)length;
  if (count <= 1 || atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) return body(begin, end, closure);
  count = grow(count);

  job.body = body;
  job.closure = closure;
  job.begin = begin;
  job.share = length / (uint64_t)count;
  job.rest = length % (uint64_t)count;
  job.spin = count <= atomic_load(&cpus_here);
  job.error = NULL;
  atomic_store(&job.status, 0);
  atomic_store(&job.pending, count - 1);
  for (int32_t i = 1; i < count; i++) {
    Worker* worker = workers[i];
    atomic_fetch_add(&worker->ticket, 1); /* publishes the job */
    if (atomic_load(&worker->asleep)) {
      pthread_mutex_lock(&worker->lock);
      pthread_cond_signal(&worker->wake);
      pthread_mutex_unlock(&worker->lock);
    }
  }
  run_chunk(0);

  if (job.spin) {
    int64_t until = now_ns() + SPIN_NS;
    do {
      for (int i = 0; i < 32 && atomic_load_explicit(&job.pending, memory_order_acquire) > 0; i++) relax();
    } while (atomic_load_explicit(&job.pending, memory_order_acquire) > 0 && now_ns() < until);
  }
  if (atomic_load(&job.pending) > 0) {
    pthread_mutex_lock(&caller_lock);
    atomic_store(&caller_asleep, 1);
    while (atomic_load(&job.pending) > 0) pthread_cond_wait(&caller_wake, &caller_lock);
    atomic_store(&caller_asleep, 0);
    pthread_mutex_unlock(&caller_lock);
  }
  int32_t status = atomic_load(&job.status);
  if (job.error != NULL) {
    put_error(job.error); /* takes a reference of its own */
    drop_error(job.error);
  }
  atomic_flag_clear_explicit(&taken, memory_order_release);
  return status;
}

/* ---- One pool per process ---------------------------------------------------------------------------------------
 *
 * This file is part of the runtime library and of every exported library that has parallel loops. All copies in one
 * process use the pool of the copy that was asked first. They find it through one variable, which the dynamic linker
 * keeps once in a process even for libraries that share nothing else (STB_GNU_UNIQUE; it also keeps the library loaded,
 * as its threads need). */

typedef struct {
  int64_t version; /* members are only ever added, at the end */
  int32_t (*parallel_for)(Body, int64_t, int64_t, void*);
  int32_t (*get_num_threads)(void);
  void (*set_num_threads)(int32_t);
  int32_t (*override_num_threads)(int32_t);
  void (*set_error_hooks)(void (*)(void**), void (*)(void*), int (*)(void*));
} Pool;

static const Pool own_pool = {1, parallel_for, get_num_threads, set_num_threads, override_num_threads, set_error_hooks};

#if defined(__GLIBC__) /* defined in assembly: C has no word for this kind of symbol */
__asm__(
    ".pushsection .data\n"
    ".balign 8\n"
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

EXPORT int32_t lw_parallel_for(Body body, int64_t begin, int64_t end, void* closure) {
  return pool()->parallel_for(body, begin, end, closure);
}

EXPORT int32_t lw_get_num_threads(void) { return pool()->get_num_threads(); }

EXPORT void lw_set_num_threads(int32_t count) { pool()->set_num_threads(count); }

EXPORT int32_t lw_override_num_threads(int32_t count) { return pool()->override_num_threads(count); }

EXPORT void lw_set_error_hooks(void (*take)(void**), void (*put)(void*), int (*drop)(void*)) {
  pool()->set_error_hooks(take, put, drop);
}

/* ---- The workspace ------------------------------------------------------------------------------------------- */

#define PAGE ((uint64_t)4096)
#define HUGE_PAGE ((uint64_t)2 << 20)

enum { FREE_BLOCK, USED_BLOCK, ORPHAN_BLOCK }; /* orphan: still in use when the thread that made it ended */

typedef struct Block {
  _Alignas(64) struct Block* next; /* the list of the thread that made it; only that thread walks it */
  uint64_t capacity;               /* bytes after this header */
  uint64_t mapped;                 /* bytes of the mapping that the block begins; 0: it came from posix_memalign */
  _Atomic int state;
} Block;

static _Thread_local Block* blocks;
static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void give_back(Block* block) {
  if (block->mapped > 0)
    munmap(block, block->mapped);
  else
    free(block);
}

static void end_thread(void* list) {
  blocks = NULL;
  for (Block *block = list, *next; block != NULL; block = next) {
    next = block->next;
    if (atomic_exchange(&block->state, ORPHAN_BLOCK) == FREE_BLOCK) give_back(block);
  }
}

static void make_key(void) { pthread_key_create(&at_thread_end, end_thread); }

static void set_blocks(Block* list) {
  blocks = list;
  pthread_once(&key_once, make_key);
  pthread_setspecific(at_thread_end, list);
}

static Block* new_block(uint64_t bytes) {
  uint64_t total = bytes + sizeof(Block);
  Block* block = NULL;
  if (total < HUGE_PAGE) {
    total = (total + PAGE - 1) / PAGE * PAGE;
    if (posix_memalign((void**)&block, 64, total) != 0) return NULL;
    block->mapped = 0;
  } else { /* map a whole number of huge pages, and cut off what lies before the first boundary and after the last */
    total = (total + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char* mapping = mmap(NULL, total + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    uint64_t before = (HUGE_PAGE - (uintptr_t)mapping % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) munmap(mapping, before);
    if (before < HUGE_PAGE) munmap(mapping + before + total, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
    madvise(mapping + before, total, MADV_HUGEPAGE); /* a hint: where it is refused the memory works all the same */
#endif
    block = (Block*)(mapping + before);
    block->mapped = total;
  }
  block->capacity = total - sizeof(Block);
  return block;
}

/* At least `bytes`, aligned to 64, with arbitrary contents; NULL when there is no memory. */
EXPORT void* lw_workspace_alloc(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX - (int64_t)(4 * HUGE_PAGE)) return NULL;
  uint64_t need = (uint64_t)bytes;
  uint64_t most = 4 * need + HUGE_PAGE; /* a small request must not take the block a large one will come for */
  Block* best = NULL;
  Block* outgrown = NULL;
  for (Block* block = blocks; block != NULL; block = block->next) {
    if (atomic_load_explicit(&block->state, memory_order_acquire) != FREE_BLOCK) continue;
    if (block->capacity >= need) {
      if (block->capacity <= most && (best == NULL || block->capacity < best->capacity)) best = block;
    } else if (outgrown == NULL || block->capacity > outgrown->capacity) {
      outgrown = block;
    }
  }
  if (best == NULL) {
    if (outgrown != NULL) { /* replaced, so that a thread keeps no more blocks than it once used together */
      Block** link = &blocks;
      while (*link != outgrown) link = &(*link)->next;
      *link = outgrown->next;
      set_blocks(blocks);
      give_back(outgrown);
    }
    best = new_block(need);
    if (best == NULL) return NULL;
    best->next = blocks;
    set_blocks(best);
  }
  atomic_store_explicit(&best->state, USED_BLOCK, memory_order_relaxed);
  return best + 1;
}

EXPORT void lw_workspace_free(void* memory) {
  if (memory == NULL) return;
  Block* block = (Block*)memory - 1;
  int used = USED_BLOCK;
  if (!atomic_compare_exchange_strong(&block->state, &used, FREE_BLOCK)) give_back(block);
}

/* Bytes that the calling thread keeps for reuse or has in use. */
EXPORT int64_t lw_workspace_held(void) {
  int64_t held = 0;
  for (Block* block = blocks; block != NULL; block = block->next) held += (int64_t)block->capacity;
  return held;
}

/* Give back what the calling thread keeps and does not use. */
EXPORT void lw_workspace_trim(void) {
  for (Block** link = &blocks; *link != NULL;) {
    Block* block = *link;
    if (atomic_load(&block->state) == FREE_BLOCK) {
      *link = block->next;
      give_back(block);
    } else {
      link = &block->next;
    }
  }
  set_blocks(blocks);
}

/* ---- The timing loop ----------------------------------------------------------------------------------------- */

typedef struct {
  int32_t type_index;
  uint32_t padding;
  void* value;
} Any; /* TVMFFIAny */

#define FIRST_OBJECT_TYPE 64 /* kTVMFFIStaticObjectBegin: results from here on are counted references */

/* Nanoseconds that `number` calls take; -1 as soon as one fails, its error set as by any call. */
EXPORT int64_t lw_time_calls(int (*call)(void*, Any*, int32_t, Any*), int (*drop)(void*), void* function, Any* arguments,
                             int32_t count, int64_t number) {
  int64_t start = now_ns();
  for (int64_t i = 0; i < number; i++) {
    Any result = {0, 0, NULL};
    if (call(function, arguments, count, &result) != 0) return -1;
    if (result.type_index >= FIRST_OBJECT_TYPE) drop(result.value);
  }
  return now_ns() - start;
}
