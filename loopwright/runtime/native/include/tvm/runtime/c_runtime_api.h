/* The values that a packed C function of the older convention takes, for C sources that a user's compiler writes:
 *
 *     int32_t f(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, void* resource)
 *
 * A tensor is a DLTensor* in `v_handle`. Only what such sources use is here.
 */
#ifndef LOOPWRIGHT_TVM_RUNTIME_C_RUNTIME_API_H_
#define LOOPWRIGHT_TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TVM_DLL
#define TVM_DLL __attribute__((visibility("default")))
#endif
#define TVM_WEAK __attribute__((weak))

#ifdef __cplusplus
extern "C" {
#endif

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

/* Codes of types; kDLInt, kDLUInt and kDLFloat come before them. */
typedef enum {
  kTVMArgInt = kDLInt,
  kTVMArgFloat = kDLFloat,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDataType = 5,
  kDLDevice = 6,
  kTVMDLTensorHandle = 7,
  kTVMObjectHandle = 8,
  kTVMModuleHandle = 9,
  kTVMPackedFuncHandle = 10,
  kTVMStr = 11,
  kTVMBytes = 12,
  kTVMNDArrayHandle = 13,
  kTVMObjectRValueRefArg = 14,
  kTVMArgBool = 15
} TVMArgTypeCode;

typedef void* TVMFunctionHandle;
typedef void* TVMModuleHandle;
typedef DLTensor* TVMArrayHandle;

typedef int (*TVMBackendPackedCFunc)(TVMValue* args, int* type_codes, int num_args, TVMValue* out_ret_value,
                                     int* out_ret_tcode, void* resource_handle);

#ifdef __cplusplus
}
#endif
#endif
