/* Calls a function many times and measures the whole, with no Python in between. */
#include "thread_pool.h"

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
