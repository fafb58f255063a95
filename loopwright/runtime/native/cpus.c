/* How many threads a loop uses: the processors of this process, unless the program or its user says otherwise.
 *
 * Processors are those of its affinity, and no more than the CPU quota of its container. `LOOPWRIGHT_NUM_THREADS` and
 * `lw_set_num_threads` replace the number for the process, `lw_override_num_threads` for one calling thread. */
#include "thread_pool.h"

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

static void set_up(void) {
  int32_t count = available_cpus();
  atomic_store(&cpus_here, count);
  const char* text = getenv("LOOPWRIGHT_NUM_THREADS");
  long wanted = text == NULL ? 0 : strtol(text, NULL, 10);
  if (wanted > 0) count = wanted > MAX_THREADS ? MAX_THREADS : (int32_t)wanted;
  atomic_store(&process_threads, count > MAX_THREADS ? MAX_THREADS : count);
  pthread_atfork(NULL, NULL, forget_workers);
}

/* The environment is read and the handler of forks installed by whichever function is called first. */
static void set_up_once(void) { pthread_once(&once, set_up); }

static int32_t num_cpus(void) { return atomic_load_explicit(&cpus_here, memory_order_relaxed); }

static int32_t get_num_threads(void) {
  set_up_once();
  return thread_override > 0 ? thread_override : atomic_load(&process_threads);
}

/* For the whole process; 0 or less: what the affinity and the quota allow now. */
static void set_num_threads(int32_t count) {
  set_up_once();
  if (count <= 0) atomic_store(&cpus_here, count = available_cpus());
  atomic_store(&process_threads, count > MAX_THREADS ? MAX_THREADS : count);
}

/* For loops started by the calling thread; 0: none. Returns the override before. */
static int32_t override_num_threads(int32_t count) {
  int32_t before = thread_override;
  thread_override = count < 0 ? 0 : count > MAX_THREADS ? MAX_THREADS : count;
  return before;
}
