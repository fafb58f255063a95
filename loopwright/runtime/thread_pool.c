/* The native part of Loopwright's runtime: a thread pool, a workspace for temporary buffers, and a timing loop.
 *
 *   lw_parallel_for           cuts [begin, end) into at most one contiguous chunk per thread and waits for all of them
 *   lw_parallel_for_dynamic   the same in small pieces: who is done with its own chunk takes pieces of the others'
 *   lw_workspace_*            temporary memory that is kept and reused, so that repeated calls meet no fresh pages
 *   lw_time_calls             calls a function many times and measures the whole, with no Python in between
 *
 * There is one pool per process. Workers spin for a moment after a job, where the next one has been following at once,
 * and then sleep. A chunk whose worker has not begun it when the caller is done with its own is run by the caller: a
 * loop never waits for a thread to wake up. A loop inside a loop runs in its caller, and so does a loop that finds the
 * pool taken. After fork() the child has none of its parent's workers: it begins with a new, empty pool.
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
#include <sys/mman.h>
#include <sys/resource.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

#ifndef LW_SOURCE_HASH
#define LW_SOURCE_HASH "unknown"
#endif
#define EXPORT __attribute__((visibility("default")))
#define MAX_THREADS 1024
#define LINE 128       /* processors fetch lines of 64 bytes in pairs */
#define SPIN_NS 50000  /* a few times what waking a sleeping thread costs, and far below one time slice */
#define LONG_SPIN_NS 500000 /* after long parts: as long as a part took, but no longer than that */
#define GLANCE_NS 3000 /* how long to spin where spinning does not pay */
#define GAP_NS 100000  /* a spinning thread that misses so much time was taken off its processor */
#define LATE_NS 20000   /* a thread that is awake and has not begun its part by then has no processor */
#define CROWDED_NS 10000000 /* how long to trust that others want the processors */
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

/* ---- Waiting --------------------------------------------------------------------------------------------------- */

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

/* park: sleep while *word is `value`; it may return early. unpark: wake who sleeps on *word, which has been changed. */
#if defined(__linux__) && defined(SYS_futex)
static void park(_Atomic int32_t* word, int32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void unpark(_Atomic int32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
static void forget_sleepers(void) {}
#else
static pthread_mutex_t park_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t park_wake = PTHREAD_COND_INITIALIZER;
static void park(_Atomic int32_t* word, int32_t value) {
  pthread_mutex_lock(&park_lock);
  if (atomic_load(word) == value) pthread_cond_wait(&park_wake, &park_lock);
  pthread_mutex_unlock(&park_lock);
}
static void unpark(_Atomic int32_t* word) {
  (void)word;
  pthread_mutex_lock(&park_lock);
  pthread_cond_broadcast(&park_wake);
  pthread_mutex_unlock(&park_lock);
}
static void forget_sleepers(void) {
  pthread_mutex_init(&park_lock, NULL);
  pthread_cond_init(&park_wake, NULL);
}
#endif

/* ---- How numbers are rounded ------------------------------------------------------------------------------------ */

/* Rounding mode and treatment of denormals belong to a thread. A chunk must give the same bits wherever it runs, so a
 * worker takes over those of the thread that started the loop. */
typedef struct {
  uint64_t vectors;
  uint64_t x87;
} FloatControl;

static inline FloatControl float_control(void) {
  FloatControl control = {0, 0};
#if defined(__x86_64__)
  uint16_t word;
  __asm__ __volatile__("fnstcw %0" : "=m"(word));
  control.vectors = __builtin_ia32_stmxcsr() & 0xffc0; /* below are flags, which are results */
  control.x87 = word;
#elif defined(__aarch64__)
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(control.vectors));
#elif defined(__riscv_flen)
  unsigned long mode;
  __asm__ __volatile__("frrm %0" : "=r"(mode));
  control.vectors = mode;
#elif defined(__arm__) && defined(__ARM_FP)
  uint32_t word;
  __asm__ __volatile__("vmrs %0, fpscr" : "=r"(word));
  control.vectors = word & 0x07f79f00;
#endif
  return control;
}

static inline void set_float_control(FloatControl control) { /* writing is slow, and hardly ever needed */
  FloatControl mine = float_control();
  if (mine.vectors != control.vectors) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((uint32_t)control.vectors | (__builtin_ia32_stmxcsr() & 0x3f));
#elif defined(__aarch64__)
    __asm__ __volatile__("msr fpcr, %0" : : "r"(control.vectors));
#elif defined(__riscv_flen)
    __asm__ __volatile__("fsrm %0" : : "r"((unsigned long)control.vectors));
#elif defined(__arm__) && defined(__ARM_FP)
    __asm__ __volatile__("vmsr fpscr, %0" : : "r"((uint32_t)control.vectors));
#endif
  }
#if defined(__x86_64__)
  if (mine.x87 != control.x87) {
    uint16_t word = (uint16_t)control.x87;
    __asm__ __volatile__("fldcw %0" : : "m"(word));
  }
#endif
}

/* ---- The pool ------------------------------------------------------------------------------------------------ */

/* A job has a number, which only grows, and as many parts as it uses threads. Part w belongs to worker w, part 0 to the
 * caller. To run a part one must claim it, by raising the worker's `claimed` to the job's number: the worker does so
 * when it hears of the job, the caller when it has nothing else left to do. A worker that comes too late finds its part
 * claimed, and a job does not end before all its parts are done: so who holds a claim may read the job. */
typedef struct {
  Body body;
  void* closure;
  int64_t begin;
  uint64_t length;
  int32_t count;
  uint64_t share, rest;   /* every part has `share` iterations, the first `rest` parts one more */
  uint64_t grain, pieces; /* dynamic: iterations a piece, and how many pieces there are; 0 pieces: static */
  FloatControl control;
  int64_t started; /* when the loop began */
  int spin;       /* no spinning when threads outnumber processors */
  int32_t caller; /* the thread that waits, by its number in the system */
  int cpu;        /* where it ran when it started the loop */
} Job;

typedef struct {
  _Alignas(LINE) _Atomic uint64_t claimed; /* the last job whose part for this worker was taken, by it or the caller */
  _Atomic uint64_t done;                   /* the last job whose part was finished */
  _Atomic uint64_t heard;                  /* the last job that the worker knows of */
  _Atomic int32_t asleep;
  _Atomic int32_t thread;                  /* its number in the system */
  _Atomic int32_t avoids;                  /* the processor it is kept off, plus 1; 0: none */
} Worker;

#define NUMBER(call) ((call) >> 16)
#define COUNT(call) ((int32_t)((call) & 0xffff))

static _Alignas(LINE) _Atomic uint64_t announced; /* the job's number and its threads: what workers watch */
static _Alignas(LINE) Job job;
/* Dynamic: the pieces of each thread's own chunk. Threads begin with their own, so that from call to call the same one
 * works on the same memory, and go on with those of the next thread that has some left. */
typedef struct {
  _Alignas(LINE) _Atomic uint64_t next;
  uint64_t end;
} Pieces;
static Pieces pieces_of[MAX_THREADS];
static _Alignas(LINE) _Atomic int32_t waiting_for; /* the worker whose part the caller sleeps for; 0: none */
static _Alignas(LINE) atomic_flag failing = ATOMIC_FLAG_INIT; /* guards the next three */
static _Atomic int32_t job_status;
static _Atomic int64_t failed_at;
static void* job_error;
static _Alignas(LINE) atomic_flag taken = ATOMIC_FLAG_INIT;
static _Alignas(LINE) _Atomic int64_t crowded_until;
static _Atomic int32_t worker_count = 1; /* changed only by the thread that holds `taken` */
static Worker workers[MAX_THREADS];      /* [0] is unused: part 0 belongs to the caller */

static void trim_if_asked(void);

/* How long it pays to spin after work of `busy` nanoseconds. Parts of a loop differ by a share of their length; a thread
 * that slept while it waited for the last one would come late to the next loop, and have the others wait. */
static inline int64_t patience(int64_t busy) {
  return busy < SPIN_NS ? SPIN_NS : busy < LONG_SPIN_NS ? busy : LONG_SPIN_NS;
}

static inline int64_t spin_limit(int64_t now, int pays, int64_t busy) {
  return pays && now >= atomic_load_explicit(&crowded_until, memory_order_relaxed) ? patience(busy) : GLANCE_NS;
}

/* Whether this thread was taken off its processor for another one since it was last asked. A virtual processor also
 * stands still when its host has other things to do: then sleeping gives nothing to anyone. */
static int was_displaced(void) {
#if defined(__linux__) && defined(RUSAGE_THREAD)
  static _Thread_local long seen;
  struct rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    int more = usage.ru_nivcsw != seen;
    seen = usage.ru_nivcsw;
    return more;
  }
#endif
  return 1;
}

static void note_gap(int64_t before, int64_t now) {
  if (now - before > GAP_NS && was_displaced())
    atomic_store_explicit(&crowded_until, now + CROWDED_NS, memory_order_relaxed);
}

/* Of several errors the one that a loop on one thread would have met is kept: that of the lowest iteration. It is
 * always met, since no part that lies before it is ever left out. */
static void fail(int64_t at, int32_t status) {
  void* error = NULL;
  if (take_error != NULL) take_error(&error);
  while (atomic_flag_test_and_set_explicit(&failing, memory_order_acquire)) relax();
  if (atomic_load(&job_status) == 0 || at < atomic_load(&failed_at)) {
    void* before = job_error;
    atomic_store(&failed_at, at);
    job_error = error;
    error = before;
    atomic_store(&job_status, status);
  }
  atomic_flag_clear_explicit(&failing, memory_order_release);
  if (error != NULL) drop_error(error);
}

static void run_range(uint64_t first, uint64_t count) {
  int64_t begin = (int64_t)((uint64_t)job.begin + first);
  int32_t status = job.body(begin, (int64_t)((uint64_t)begin + count), job.closure);
  if (status != 0) fail(begin, status);
}

/* After an error the iterations behind it do not matter. */
static int is_needless(uint64_t first) {
  if (atomic_load_explicit(&job_status, memory_order_acquire) == 0) return 0;
  return (int64_t)((uint64_t)job.begin + first) > atomic_load_explicit(&failed_at, memory_order_relaxed);
}

static void run_pieces(Pieces* of) {
  while (atomic_load_explicit(&of->next, memory_order_relaxed) < of->end) { /* a look costs less than trying */
    uint64_t piece = atomic_fetch_add_explicit(&of->next, 1, memory_order_relaxed);
    if (piece >= of->end) break;
    uint64_t first = piece * job.grain, left = job.length - first;
    if (is_needless(first)) break; /* and so are those that follow it */
    run_range(first, left < job.grain ? left : job.grain);
  }
}

static void run_part(int32_t part) {
  inside = 1;
  if (job.pieces == 0) {
    uint64_t extra = (uint64_t)part < job.rest ? (uint64_t)part : job.rest;
    run_range((uint64_t)part * job.share + extra, job.share + ((uint64_t)part < job.rest));
  } else {
    for (int32_t i = 0; i < job.count; i++) run_pieces(&pieces_of[(part + i) % job.count]);
  }
  inside = 0;
}

static inline int claim(Worker* worker, uint64_t number) {
  uint64_t before = atomic_load_explicit(&worker->claimed, memory_order_relaxed);
  return before < number && atomic_compare_exchange_strong(&worker->claimed, &before, number);
}

#ifdef __linux__
static _Thread_local int32_t thread_number;
static int32_t this_thread(void) {
  if (thread_number == 0) thread_number = (int32_t)syscall(SYS_gettid);
  return thread_number;
}
static void forget_thread(void) { thread_number = 0; }
static int this_cpu(void) { return sched_getcpu(); }

/* Some systems wake a thread on the processor of the thread that wakes it, and leave both there while others are idle.
 * So a worker found in the way of its caller is kept off that one processor. False: it is already, or cannot be. */
static int keep_off(Worker* worker, int cpu) {
  cpu_set_t set;
  int32_t thread = atomic_load(&worker->thread); /* 0, while it is starting, would be ourselves */
  if (thread == 0 || cpu < 0 || cpu >= CPU_SETSIZE || atomic_load(&worker->avoids) == cpu + 1) return 0;
  if (sched_getaffinity(job.caller, sizeof set, &set) != 0 || !CPU_ISSET(cpu, &set)) return 0;
  CPU_CLR(cpu, &set);
  if (CPU_COUNT(&set) == 0 || sched_setaffinity(thread, sizeof set, &set) != 0) return 0;
  atomic_store(&worker->avoids, cpu + 1);
  return 1;
}
#else
static int32_t this_thread(void) { return 0; }
static void forget_thread(void) {}
static int this_cpu(void) { return -1; }
static int keep_off(Worker* worker, int cpu) { return (void)worker, (void)cpu, 0; }
#endif

static void wake(Worker* worker) {
  int32_t asleep = 1;
  if (atomic_load(&worker->asleep) && atomic_compare_exchange_strong(&worker->asleep, &asleep, 0))
    unpark(&worker->asleep);
}

/* Waking costs far more than starting, so it is shared: 0 wakes 1, 2, 4, 8, and 1 wakes 3, 5, 9, and 2 wakes 6, 10. */
static void wake_below(int32_t index, int32_t count) {
  int32_t bit = 1;
  while (bit <= index) bit *= 2;
  for (; index + bit < count; bit *= 2) wake(&workers[index + bit]);
}

/* The next job that wants worker `index`. Whether it spins before it sleeps, it learns: `score` grows when a job comes
 * within the time it would spin, and falls when none does. So threads that are called now and then cost nothing. */
static uint64_t await_job(int32_t index, uint64_t seen, int32_t* score, int spin, int64_t busy, int* slept) {
  Worker* self = &workers[index];
  int64_t since = now_ns(), last = since, limit = spin_limit(since, spin && *score > 0, busy);
  uint64_t call;
  *slept = 0;
  for (;;) {
    for (int i = 0; i < 16; i++) {
      call = atomic_load_explicit(&announced, memory_order_acquire);
      if (call != seen) break;
      relax();
    }
    if (call != seen) { /* no look at the clock now: the caller waits */
      seen = call;
      if (index < COUNT(call)) break;
    }
    int64_t now = now_ns();
    note_gap(last, now);
    last = now;
    if (now - since < limit) continue;
    trim_if_asked();
    atomic_store(&self->asleep, 1); /* before the last look: who announces a job looks at `asleep` after that */
    call = atomic_load(&announced);
    if (call == seen || index >= COUNT(call)) {
      seen = call;
      while (atomic_load(&self->asleep)) park(&self->asleep, 1);
    }
    atomic_store(&self->asleep, 0);
    *slept = 1;
    last = now_ns();
    limit = 0; /* woken for nothing, it sleeps again at once */
  }
  if (last - since < patience(busy)) {
    if (*score < 8) *score += 2;
  } else if (*score > 0) {
    *score -= 1;
  }
  return call;
}

static void* work(void* argument) {
  int32_t index = (int32_t)(intptr_t)argument;
  Worker* self = &workers[index];
  uint64_t seen = atomic_load(&self->claimed) << 16; /* no call: none has 0 threads */
  int32_t score = 4;
  int spin = 1, slept;
  int64_t busy = 0, before = 0; /* of the last two parts the shorter one counts: the other may have been interrupted */
  atomic_store(&self->thread, this_thread());
  for (;;) {
    seen = await_job(index, seen, &score, spin, busy < before ? busy : before, &slept);
    uint64_t number = NUMBER(seen);
    atomic_store_explicit(&self->heard, number, memory_order_relaxed);
    wake_below(index, COUNT(seen));
    if (!claim(self, number)) continue;
    if (slept && this_cpu() == job.cpu) keep_off(self, job.cpu);
    spin = job.spin;
    set_float_control(job.control);
    before = busy;
    int64_t since = now_ns();
    run_part(index);
    busy = now_ns() - since;
    atomic_store(&self->done, number); /* before the look at who waits: the caller does it the other way round */
    int32_t me = index;
    if (atomic_load(&waiting_for) == index && atomic_compare_exchange_strong(&waiting_for, &me, 0))
      unpark(&waiting_for);
  }
  return NULL;
}

/* Have `count` threads, the caller among them, or as many as the system gives. */
static int32_t grow(int32_t count) {
  int32_t have = atomic_load(&worker_count);
  for (; have < count; have++) {
    Worker* worker = &workers[have];
    uint64_t number = NUMBER(atomic_load(&announced));
    atomic_store(&worker->claimed, number);
    atomic_store(&worker->done, number);
    atomic_store(&worker->heard, number);
    atomic_store(&worker->asleep, 0);
    atomic_store(&worker->thread, 0);
    atomic_store(&worker->avoids, 0);
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
    int failed = pthread_create(&thread, &attributes, work, (void*)(intptr_t)have);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) break;
  }
  atomic_store(&worker_count, have);
  return have < count ? have : count;
}

static void count_kept_blocks(void);

/* In the child of a fork no worker runs, and what other threads held they hold for ever. */
static void forget_workers(void) {
  atomic_store(&worker_count, 1);
  atomic_store(&waiting_for, 0);
  forget_sleepers();
  forget_thread();
  job_error = NULL;
  atomic_flag_clear(&failing);
  atomic_flag_clear(&taken);
  count_kept_blocks();
}

static void set_up(void) {
  int32_t count = available_cpus();
  atomic_store(&cpus_here, count);
  const char* text = getenv("LOOPWRIGHT_NUM_THREADS");
  long wanted = text == NULL ? 0 : strtol(text, NULL, 10);
  if (wanted > 0) count = wanted > MAX_THREADS ? MAX_THREADS : (int32_t)wanted;
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

/* Wait until worker `index` has finished its part of job `number`. */
static void await_part(int32_t index, uint64_t number) {
  Worker* worker = &workers[index];
  int64_t since = now_ns(), last = since, limit = spin_limit(since, job.spin, since - job.started);
  while (last - since < limit) {
    for (int i = 0; i < 16; i++) {
      if (atomic_load_explicit(&worker->done, memory_order_acquire) == number) return;
      relax();
    }
    int64_t now = now_ns();
    note_gap(last, now);
    last = now;
  }
  for (;;) {
    atomic_store(&waiting_for, index);
    if (atomic_load(&worker->done) == number) break;
    park(&waiting_for, index);
  }
  atomic_store(&waiting_for, 0);
}

/* A worker that is awake and has not heard of the job in all this time gets no processor: it may wait for ours. */
static void check_place(Worker* worker, uint64_t number, int64_t time) {
  if (time < LATE_NS || atomic_load(&worker->asleep) || atomic_load(&worker->heard) == number) return;
  if (!keep_off(worker, this_cpu())) atomic_store(&crowded_until, now_ns() + CROWDED_NS);
}

/* `grain` iterations are handed out at a time; 0: every thread gets one part, fixed from the start; less: dynamic, too,
 * with a grain chosen here. */
static int32_t start_and_wait(Body body, int64_t begin, int64_t end, void* closure, int64_t grain) {
  if (end <= begin) return 0;
  uint64_t length = (uint64_t)end - (uint64_t)begin;
  int32_t count = inside ? 1 : get_num_threads();
  if ((uint64_t)count > length) count = (int32_t)length;
  if (count <= 1 || atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) return body(begin, end, closure);
  count = grow(count);

  job.body = body;
  job.closure = closure;
  job.begin = begin;
  job.length = length;
  job.count = count;
  job.started = now_ns();
  job.share = length / (uint64_t)count;
  job.rest = length % (uint64_t)count;
  job.pieces = 0;
  if (grain != 0) {
    uint64_t least = length >> 40; /* keeps the number of the next piece far from overflow */
    job.grain = grain > 0 ? (uint64_t)grain : job.share / 16;
    if (job.grain <= least) job.grain = least + 1;
    job.pieces = length / job.grain + (length % job.grain != 0);
    uint64_t each = job.pieces / (uint64_t)count, more = job.pieces % (uint64_t)count, first = 0;
    for (int32_t i = 0; i < count; i++) {
      atomic_store_explicit(&pieces_of[i].next, first, memory_order_relaxed);
      pieces_of[i].end = first += each + ((uint64_t)i < more);
    }
  }
  job.control = float_control();
  job.caller = this_thread();
  job.cpu = this_cpu();
  job.spin = count <= atomic_load_explicit(&cpus_here, memory_order_relaxed);
  job_error = NULL;
  atomic_store_explicit(&job_status, 0, memory_order_relaxed);
  uint64_t number = NUMBER(atomic_load_explicit(&announced, memory_order_relaxed)) + 1;
  atomic_store(&announced, number << 16 | (uint64_t)count);
  wake_below(0, count);
  run_part(0);

  for (int32_t i = count - 1; i > 0; i--) {
    if (!claim(&workers[i], number)) continue;
    int64_t since = now_ns();
    run_part(i);
    atomic_store_explicit(&workers[i].done, number, memory_order_relaxed);
    check_place(&workers[i], number, now_ns() - since);
  }
  for (int32_t i = 1; i < count; i++)
    if (atomic_load_explicit(&workers[i].done, memory_order_acquire) != number) await_part(i, number);
  int32_t status = atomic_load(&job_status);
  if (job_error != NULL) {
    put_error(job_error); /* takes a reference of its own */
    drop_error(job_error);
  }
  atomic_flag_clear_explicit(&taken, memory_order_release);
  return status;
}

static int32_t parallel_for(Body body, int64_t begin, int64_t end, void* closure) {
  return start_and_wait(body, begin, end, closure, 0);
}

static int32_t parallel_for_dynamic(Body body, int64_t begin, int64_t end, void* closure, int64_t grain) {
  return start_and_wait(body, begin, end, closure, grain > 0 ? grain : -1);
}

/* ---- The workspace ------------------------------------------------------------------------------------------- */

/* Every thread keeps the blocks it made and gives them out again: a fresh mapping costs a page fault every 4 KiB, which
 * for a packed panel takes longer than the work on it. All threads together keep at most `keep_limit` bytes unused. */

#define PAGE ((uint64_t)4096)
#define HUGE_PAGE ((uint64_t)2 << 20)
#define MOST_KEPT ((int64_t)1 << 30)

enum { FREE_BLOCK, USED_BLOCK, ORPHAN_BLOCK }; /* orphan: still in use when the thread that made it ended */

typedef struct Block {
  _Alignas(64) struct Block* next; /* the list of the thread that made it; only that thread walks it */
  struct Block** list;             /* whose it is: the address of that list */
  uint64_t capacity;               /* bytes after this header */
  void* base;                      /* where its memory begins, somewhat before this header */
  uint64_t mapped;                 /* bytes of the mapping there; 0: it came from posix_memalign */
  _Atomic int state;
} Block;

static _Thread_local Block* blocks;
static _Thread_local uint32_t blocks_made;
static _Thread_local uint32_t trims_heard;
static _Atomic uint32_t trims_asked;
static _Atomic int64_t kept; /* unused bytes of all threads' blocks */
static int64_t keep_limit;
static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void give_back(Block* block) {
  if (block->mapped > 0)
    munmap(block->base, block->mapped);
  else
    free(block->base);
}

static void end_thread(void* list) {
  blocks = NULL;
  for (Block *block = list, *next; block != NULL; block = next) {
    next = block->next;
    int64_t capacity = (int64_t)block->capacity;
    if (atomic_exchange(&block->state, ORPHAN_BLOCK) != FREE_BLOCK) continue;
    atomic_fetch_sub(&kept, capacity);
    give_back(block);
  }
}

static void set_up_workspace(void) {
  pthread_key_create(&at_thread_end, end_thread);
  int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  keep_limit = memory > 0 && memory / 8 < MOST_KEPT ? memory / 8 : MOST_KEPT;
  pthread_once(&once, set_up); /* what is kept must be counted again after a fork */
}

static void set_blocks(Block* list) {
  blocks = list;
  pthread_once(&key_once, set_up_workspace);
  pthread_setspecific(at_thread_end, list);
}

static void unlink_block(Block* block) {
  Block** link = &blocks;
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  set_blocks(blocks);
}

static Block* new_block(uint64_t bytes) {
  /* Buffers that are used together should not begin at the same place of a page, or their lines compete for the same
   * few places in L1, and loads seem to depend on stores 4096 bytes away. */
  uint64_t before = blocks_made++ * 5 % 16 * 256;
  uint64_t total = before + sizeof(Block) + bytes, mapped = 0;
  char* base = NULL;
  if (total < HUGE_PAGE) {
    total = (total + PAGE - 1) / PAGE * PAGE;
    if (posix_memalign((void**)&base, PAGE, total) != 0) return NULL;
  } else { /* map a whole number of huge pages, and cut off what lies before the first boundary and after the last */
    total = (total + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char* mapping = mmap(NULL, total + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    uint64_t odd = (HUGE_PAGE - (uintptr_t)mapping % HUGE_PAGE) % HUGE_PAGE;
    if (odd > 0) munmap(mapping, odd);
    munmap(mapping + odd + total, HUGE_PAGE - odd);
    base = mapping + odd;
    mapped = total;
#ifdef MADV_HUGEPAGE
    madvise(base, total, MADV_HUGEPAGE); /* a hint: where it is refused the memory works all the same */
#endif
  }
  Block* block = (Block*)(base + before);
  block->base = base;
  block->mapped = mapped;
  block->list = &blocks;
  block->capacity = total - before - sizeof(Block);
  return block;
}

/* Give back the unused blocks of the calling thread. */
static void trim_own(void) {
  for (Block** link = &blocks; *link != NULL;) {
    Block* block = *link;
    if (atomic_load(&block->state) == FREE_BLOCK) {
      *link = block->next;
      atomic_fetch_sub(&kept, (int64_t)block->capacity);
      give_back(block);
    } else {
      link = &block->next;
    }
  }
  set_blocks(blocks);
}

static void trim_if_asked(void) {
  uint32_t asked = atomic_load_explicit(&trims_asked, memory_order_relaxed);
  if (asked == trims_heard) return;
  trims_heard = asked;
  if (blocks != NULL) trim_own();
}

static void workspace_trim(void) {
  atomic_fetch_add(&trims_asked, 1);
  trim_if_asked();
  int32_t count = atomic_load(&worker_count);
  for (int32_t i = 1; i < count; i++) wake(&workers[i]);
}

static void* workspace_alloc(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX - (int64_t)(4 * HUGE_PAGE)) return NULL;
  trim_if_asked();
  uint64_t need = (uint64_t)bytes;
  uint64_t most = need > UINT64_MAX / 8 ? UINT64_MAX : 4 * need + HUGE_PAGE; /* leave large blocks to large requests */
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
  if (best != NULL) {
    atomic_fetch_sub_explicit(&kept, (int64_t)best->capacity, memory_order_relaxed);
  } else {
    if (outgrown != NULL) { /* replaced, so that a thread keeps no more blocks than it once used together */
      unlink_block(outgrown);
      atomic_fetch_sub_explicit(&kept, (int64_t)outgrown->capacity, memory_order_relaxed);
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

static void workspace_free(void* memory) {
  if (memory == NULL) return;
  Block* block = (Block*)memory - 1;
  int64_t capacity = (int64_t)block->capacity;
  if (block->list == &blocks && atomic_load_explicit(&kept, memory_order_relaxed) + capacity > keep_limit) {
    unlink_block(block);
    give_back(block);
    return;
  }
  atomic_fetch_add_explicit(&kept, capacity, memory_order_relaxed);
  int used = USED_BLOCK;
  if (atomic_compare_exchange_strong(&block->state, &used, FREE_BLOCK)) return;
  atomic_fetch_sub_explicit(&kept, capacity, memory_order_relaxed);
  give_back(block);
}

static int64_t workspace_held(void) {
  int64_t held = 0;
  for (Block* block = blocks; block != NULL; block = block->next) held += (int64_t)block->capacity;
  return held;
}

/* After a fork: the blocks of threads that are not there any more do not count. */
static void count_kept_blocks(void) {
  int64_t bytes = 0;
  for (Block* block = blocks; block != NULL; block = block->next)
    if (atomic_load(&block->state) == FREE_BLOCK) bytes += (int64_t)block->capacity;
  atomic_store(&kept, bytes);
}

/* ---- One pool and one workspace per process ----------------------------------------------------------------------
 *
 * This file is part of the runtime library and of every exported library that has parallel loops or large temporary
 * buffers. All copies in one process use what belongs to the copy that was asked first. They find it through one
 * variable, which the dynamic linker keeps once in a process even for libraries that share nothing else
 * (STB_GNU_UNIQUE; it also keeps the library loaded, as its threads need). */

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
