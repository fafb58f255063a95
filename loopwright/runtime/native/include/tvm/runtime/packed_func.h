/* TVM_DLL_EXPORT_TYPED_FUNC: a C++ function of tensors, numbers and texts under a C name with the packed convention. */
#ifndef LOOPWRIGHT_TVM_RUNTIME_PACKED_FUNC_H_
#define LOOPWRIGHT_TVM_RUNTIME_PACKED_FUNC_H_

#include <tvm/runtime/c_runtime_api.h>

#include <type_traits>
#include <utility>

namespace tvm {
namespace runtime {
namespace loopwright {

template <typename T>
inline T argument(const TVMValue& value, int code) {
  if constexpr (std::is_pointer<T>::value) {
    return static_cast<T>(value.v_handle);
  } else if constexpr (std::is_floating_point<T>::value) {
    return code == kTVMArgFloat ? static_cast<T>(value.v_float64) : static_cast<T>(value.v_int64);
  } else {
    return static_cast<T>(value.v_int64);
  }
}

inline void give(TVMValue* result, int* code, int64_t value) { result->v_int64 = value, *code = kTVMArgInt; }
inline void give(TVMValue* result, int* code, double value) { result->v_float64 = value, *code = kTVMArgFloat; }

template <typename R, typename... Args, size_t... Is>
inline int call(R (*function)(Args...), TVMValue* args, int* codes, int count, TVMValue* result, int* result_code,
                std::index_sequence<Is...>) {
  if (count != static_cast<int>(sizeof...(Args))) return -1;
  if constexpr (std::is_void<R>::value) {
    function(argument<Args>(args[Is], codes[Is])...);
    *result_code = kTVMNullptr;
  } else if constexpr (std::is_floating_point<R>::value) {
    give(result, result_code, static_cast<double>(function(argument<Args>(args[Is], codes[Is])...)));
  } else {
    give(result, result_code, static_cast<int64_t>(function(argument<Args>(args[Is], codes[Is])...)));
  }
  return 0;
}

template <typename R, typename... Args>
inline int call(R (*function)(Args...), TVMValue* args, int* codes, int count, TVMValue* result, int* result_code) {
  return call(function, args, codes, count, result, result_code, std::index_sequence_for<Args...>());
}

}  // namespace loopwright
}  // namespace runtime
}  // namespace tvm

#define TVM_DLL_EXPORT_TYPED_FUNC(Name, Function)                                                                    \
  extern "C" TVM_DLL int Name(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code,    \
                              void* resource_handle) {                                                              \
    (void)resource_handle;                                                                                          \
    return ::tvm::runtime::loopwright::call(Function, args, type_codes, num_args, result, result_code);             \
  }
#endif
