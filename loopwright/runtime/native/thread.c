/* What the system gives one thread: how it sleeps and is woken, how it rounds, its number and its processor. */
#include "thread_pool.h"

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb"); /* `yield` is a no-op on most cores; isb waits about as long as pause does */
#endif
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

/* Rounding mode and treatment of denormals belong to a thread. A chunk must give the same bits wherever it runs, so a
 * worker takes over those of the thread that started the loop. */
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

#ifdef __linux__
static _Thread_local int32_t thread_number;
static int32_t this_thread(void) {
  if (thread_number == 0) thread_number = (int32_t)syscall(SYS_gettid);
  return thread_number;
}
static void forget_thread(void) { thread_number = 0; }
static int this_cpu(void) { return sched_getcpu(); }
#else
static int32_t this_thread(void) { return 0; }
static void forget_thread(void) {}
static int this_cpu(void) { return -1; }
#endif

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
