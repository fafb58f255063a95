/* Tensor maps, which the host makes before a launch and a kernel gets by value. */
#include "cuda.h"
#include "tensor_map.h"

enum { /* CUtensorMapDataType, Interleave, L2promotion, FloatOOBfill */
  MAP_UINT8 = 0,
  MAP_UINT16 = 1,
  MAP_UINT32 = 2,
  MAP_UINT64 = 4,
  MAP_NO_INTERLEAVE = 0,
  MAP_L2_128_BYTES = 2,
  MAP_L2_256_BYTES = 3,
  MAP_ZEROS_OUTSIDE = 0,
};

static Status encode_tensor_map(Api* api, lw_tensor_map* map) {
  const int types[] = {0, MAP_UINT8, MAP_UINT16, 0, MAP_UINT32, 0, 0, 0, MAP_UINT64};
  const int swizzles[] = {0, 1, 0, 2, 0, 0, 0, 3}; /* CUtensorMapSwizzle */
  const int rank = map->rank;
  uint64_t shape[5], strides[5]; /* the innermost dimension first, which has no stride */
  uint32_t box[5], every[5];
  for (int k = 0; k < rank; k++) {
    shape[k] = (uint64_t)map->shape[rank - 1 - k];
    box[k] = (uint32_t)map->box[rank - 1 - k];
    every[k] = 1;
    if (k > 0) strides[k - 1] = (uint64_t)map->strides[rank - 1 - k];
  }
  const int promotion = box[0] * (uint32_t)map->element_bytes <= 128 ? MAP_L2_128_BYTES : MAP_L2_256_BYTES;
  return api->tensor_map_encode(map->words, types[map->element_bytes], (uint32_t)rank, map->data, shape, strides, box,
                                every, MAP_NO_INTERLEAVE, swizzles[map->swizzle], promotion, MAP_ZEROS_OUTSIDE);
}

/* Where the driver makes no map (it is old, or the tensor is not aligned, or too large) the kernel copies by itself. */
static int32_t make_tensor_map(int32_t number, void* given, void* data, const int64_t* sizes, int32_t rank,
                               int32_t element_bytes, int32_t swizzle) {
  lw_tensor_map* map = given;
  if (!lw_describe_tensor(map, data, (const long long*)sizes, rank, element_bytes, swizzle)) return 0;
  ENTER_OR_FAIL(number);
  if (api->tensor_map_encode != NULL) map->is_encoded = encode_tensor_map(api, map) == SUCCESS;
  return leave(&entered, 0);
}
