/* The threads, and the loops that run on them.
 *
 * Workers spin for a moment after a job, where the next one has been following at once, and then sleep. A chunk whose
 * worker has not begun it when the caller is done with its own is run by the caller: a loop never waits for a thread to
 * wake up. A loop inside a loop runs in its caller, and so does a loop that finds the pool taken. After fork() the child
 * has none of its parent's workers: it begins with a new, empty pool. */
#include "thread_pool.h"

#define SPIN_NS 50000  /* a few times what waking a sleeping thread costs, and far below one time slice */
#define LONG_SPIN_NS 500000 /* after long parts: as long as a part took, but no longer than that */
#define GLANCE_NS 3000 /* how long to spin where spinning does not pay */
#define GAP_NS 100000  /* a spinning thread that misses so much time was taken off its processor */
#define LATE_NS 20000   /* a thread that is awake and has not begun its part by then has no processor */
#define CROWDED_NS 10000000 /* how long to trust that others want the processors */
#define STACK_BYTES (8u << 20)

static _Thread_local int inside; /* this thread is running a chunk */

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

/* ---- Jobs and workers ------------------------------------------------------------------------------------------ */

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

/* How long it pays to spin after work of `busy` nanoseconds. Parts of a loop differ by a share of their length; a thread
 * that slept while it waited for the last one would come late to the next loop, and have the others wait. */
static inline int64_t patience(int64_t busy) {
  return busy < SPIN_NS ? SPIN_NS : busy < LONG_SPIN_NS ? busy : LONG_SPIN_NS;
}

static inline int64_t spin_limit(int64_t now, int pays, int64_t busy) {
  return pays && now >= atomic_load_explicit(&crowded_until, memory_order_relaxed) ? patience(busy) : GLANCE_NS;
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
static int keep_off(Worker* worker, int cpu) { return (void)worker, (void)cpu, 0; }
#endif

static void wake(Worker* worker) {
  int32_t asleep = 1;
  if (atomic_load(&worker->asleep) && atomic_compare_exchange_strong(&worker->asleep, &asleep, 0))
    unpark(&worker->asleep);
}

/* For workers that sleep and are to look at what they are asked besides loops. */
static void wake_workers(void) {
  int32_t count = atomic_load(&worker_count);
  for (int32_t i = 1; i < count; i++) wake(&workers[i]);
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
  job.spin = count <= num_cpus();
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
