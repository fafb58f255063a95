/* The CUDA runtime that generated host code and Python call: a thin layer over the driver, libcuda.so.1, which is loaded
 * when the first GPU is asked for. Nothing of CUDA is needed to build this, and nothing of Python.
 *
 * Every function gives 0, or -1 with an error set (`cuda_errors.c`). Devices go by their number, streams and memory by
 * the driver's handles. A loop of threads may call anything; a child of fork() nothing. */
#include "cuda.h"

#include "cuda_errors.c"
#include "cuda_device.c"
#include "cuda_streams.c"
#include "cuda_memory.c"
#include "cuda_modules.c"
#include "cuda_launch.c"
#include "cuda_tensor_map.c"
#include "cuda_embedded.c"

#ifdef LW_SOURCE_HASH /* not in exported libraries, which may have more than one part of the runtime */
EXPORT const char* lw_source_hash(void) { return LW_SOURCE_HASH; }
#endif

/* How errors reach the caller of generated code, and where the current stream comes from: functions of tvm-ffi. `note`
 * is told what a user should hear of although all goes on. Whoever calls this is the runtime of the process. */
EXPORT void lw_cuda_set_hooks(int (*raise)(const char* kind, const char* message), void* (*stream)(int32_t, int32_t),
                              void (*note)(const char* text)) {
  raise_error = raise;
  get_stream = stream;
  tell_user = note;
  become_the_runtime();
}
