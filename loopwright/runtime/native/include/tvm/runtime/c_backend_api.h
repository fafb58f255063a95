/* Memory for a while, for C sources that a user's compiler writes. */
#ifndef LOOPWRIGHT_TVM_RUNTIME_C_BACKEND_API_H_
#define LOOPWRIGHT_TVM_RUNTIME_C_BACKEND_API_H_

#include <stdlib.h>
#include <tvm/runtime/c_runtime_api.h>

static inline void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int code, int bits) {
  void* result = NULL;
  (void)device_type, (void)device_id, (void)code, (void)bits;
  return posix_memalign(&result, 64, nbytes ? nbytes : 1) ? NULL : result;
}

static inline int TVMBackendFreeWorkspace(int device_type, int device_id, void* memory) {
  (void)device_type, (void)device_id;
  free(memory);
  return 0;
}
#endif
