/* A tensor map as kernels get it: what the driver made of it, and what a kernel needs to copy without that.
 *
 * The CUDA text declares the same structure (`tensor_copies.py`), and emulated kernels take it from here: so nothing is
 * included, and it is C++ too. Dimensions are in numpy's order, the outermost first. */
#ifndef LW_TENSOR_MAP_H
#define LW_TENSOR_MAP_H

typedef struct __attribute__((aligned(64))) lw_tensor_map {
  unsigned long long words[16]; /* CUtensorMap, where `is_encoded` */
  unsigned char* data;
  long long shape[5], strides[5]; /* elements; bytes */
  int box[5];
  int rank, element_bytes, box_bytes;
  int swizzle; /* 0, 1, 3, 7: a ^ (a >> 7 & swizzle) << 4 */
  int is_encoded;
} lw_tensor_map;

/* Fill all but the words; `sizes` are shape, strides and box, in elements. Whether the hardware can take such a tensor. */
static inline int lw_describe_tensor(lw_tensor_map* map, void* data, const long long* sizes, int rank, int element_bytes,
                                     int swizzle) {
  const lw_tensor_map empty = {{0}, 0, {0}, {0}, {0}, 0, 0, 0, 0, 0};
  *map = empty;
  map->data = (unsigned char*)data;
  map->rank = rank;
  map->element_bytes = element_bytes;
  map->swizzle = swizzle == 0 ? 0 : swizzle / 16 - 1;
  map->box_bytes = element_bytes;
  int fits = data != 0 && (unsigned long long)data % 16 == 0;
  for (int k = 0; k < rank; k++) {
    map->shape[k] = sizes[k];
    map->strides[k] = sizes[rank + k] * element_bytes;
    map->box[k] = (int)sizes[2 * rank + k];
    map->box_bytes *= map->box[k];
    if (sizes[k] < 1 || sizes[k] > 1LL << 32) fits = 0;
    const long long most = (1LL << 40) / element_bytes;
    if (k < rank - 1 && (sizes[rank + k] < 1 || sizes[rank + k] >= most || map->strides[k] % 16 != 0)) fits = 0;
  }
  return fits && map->box[rank - 1] * element_bytes % 16 == 0;
}

#endif
