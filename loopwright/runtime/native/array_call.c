/* A compiled function, called with numpy arrays straight from the interpreter: fresh outputs, no Python in between.
 *
 * An array passes as it is where it is an `ndarray` itself (no subclass) of the very element type and rank that the
 * function takes, row-major without gaps and aligned; the compiled function checks the sizes. Anything else, and a call
 * that the function refuses, goes to a callable of Python's, which converts or explains.
 *
 * Nothing here is compiled against Python or numpy. What is called of them comes as addresses (`lw_set_up_array_calls`),
 * and these layouts are relied on: PyMethodDef, of Python's stable ABI, and the fields of PyArrayObject and PyArray_Descr
 * which every extension module has compiled in and numpy 1 and 2 share. `array_call.py` compares those with an array. */
#include <stddef.h>
#include <stdint.h>

#ifndef LW_SOURCE_HASH
#define LW_SOURCE_HASH "unknown"
#endif
#define EXPORT __attribute__((visibility("default")))

typedef void Object; /* of Python */

typedef struct { /* what follows Python's object header in numpy's PyArrayObject */
  void* data;
  int ndim;
  const intptr_t* shape;
  const intptr_t* strides;
  Object* base;
  Object* element_type;
  int flags;
} ArrayFields;
enum { C_CONTIGUOUS = 0x1, ALIGNED = 0x100 };

typedef struct { /* and in PyArray_Descr */
  Object* scalar_type;
  char kind, type, byte_order, unused;
  int number;
} ElementTypeFields;

typedef struct { /* dlpack.h */
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint32_t dtype;
  const int64_t* shape;
  const int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
enum { CPU = 1 };

typedef struct { /* TVMFFIAny of tvm/ffi/c_api.h */
  int32_t type_index;
  uint32_t padding;
  union {
    int64_t number;
    void* pointer;
  };
} Any;
enum { DL_TENSOR_POINTER = 7, RAISED_IN_PYTHON = -2 };

typedef int SafeCall(void* handle, const Any* args, int32_t num_args, Any* result);

typedef struct {
  Object* element_type; /* numpy's */
  int32_t ndim;
  uint32_t dtype; /* DLPack's code, bits and lanes */
} Argument;

typedef struct {
  SafeCall* function;
  const Argument* arguments;   /* inputs, then outputs */
  const int64_t* output_sizes; /* of all outputs in a row; ~k stands for size k of the inputs in a row */
  int32_t num_inputs, num_outputs;
  int32_t num_sizes; /* of all arguments together */
  Object* otherwise; /* called with the same arguments where they are not such arrays */
  Object* owner;     /* of everything here, this structure too */
} Call;

typedef struct {
  size_t object_header; /* its bytes; its last word is the type */
  Object* array_type;   /* numpy.ndarray */
  Object* (*new_array)(Object* type, Object* element_type, int ndim, const intptr_t* shape, const intptr_t* strides,
                       void* data, int flags, Object* like); /* PyArray_NewFromDescr; takes over `element_type` */
  void (*increase_references)(Object*);
  void (*decrease_references)(Object*);
  Object* (*vectorcall)(Object* callable, Object* const* args, size_t num_args, Object* names);
  void* (*save_thread)(void);
  void (*restore_thread)(void*);
  Object* (*new_list)(ptrdiff_t size);
  int (*set_item)(Object* list, ptrdiff_t index, Object* item); /* takes over `item` */
  void* (*capsule_pointer)(Object* capsule, const char* name);
  void (*take_error)(void** error); /* TVMFFIErrorMoveFromRaised */
  int (*drop_error)(void* error);   /* TVMFFIObjectDecRef */
} Interpreter;

_Static_assert(sizeof(intptr_t) == sizeof(int64_t), "sizes of arrays are those of DLPack");

static Interpreter python; /* set once, before the first call is made */

static Object* other_way(const Call* call, Object* const* given, ptrdiff_t num_given) {
  return python.vectorcall(call->otherwise, given, (size_t)num_given, NULL);
}

static inline const ArrayFields* fields_of(const Object* array) {
  return (const ArrayFields*)((const char*)array + python.object_header);
}

static inline int is_array(const Object* object) {
  return *(Object* const*)((const char*)object + python.object_header - sizeof(Object*)) == python.array_type;
}

/* An array that was pickled has an element type of its own, which is like the one that all others share. */
static int is_like(const Object* given, const Object* wanted) {
  const ElementTypeFields* one = (const ElementTypeFields*)((const char*)given + python.object_header);
  const ElementTypeFields* other = (const ElementTypeFields*)((const char*)wanted + python.object_header);
  return one->scalar_type == other->scalar_type && one->byte_order == other->byte_order && one->number == other->number;
}

static inline void describe(DLTensor* tensor, Any* value, const Argument* argument, void* data, const int64_t* shape) {
  *tensor = (DLTensor){data, CPU, 0, argument->ndim, argument->dtype, shape, NULL, 0};
  *value = (Any){DL_TENSOR_POINTER, 0, {.pointer = tensor}};
}

static void forget(Object** outputs, int32_t count) {
  for (int32_t k = 0; k < count; k++) python.decrease_references(outputs[k]);
}

static Object* results(Object** outputs, int32_t count) {
  if (count == 1) return outputs[0];
  Object* list = python.new_list(count);
  if (list == NULL) {
    forget(outputs, count);
    return NULL;
  }
  for (int32_t k = 0; k < count; k++) python.set_item(list, k, outputs[k]);
  return list;
}

static Object* call_with_arrays(Object* self, Object* const* given, ptrdiff_t num_given) {
  const Call* call = python.capsule_pointer(self, NULL);
  const int32_t num_inputs = call->num_inputs, num_outputs = call->num_outputs;
  if (num_given != num_inputs) return other_way(call, given, num_given);

  const Argument* argument = call->arguments;
  DLTensor tensors[num_inputs + num_outputs];
  Any values[num_inputs + num_outputs];
  int64_t sizes[call->num_sizes + 1]; /* copied: with the GIL released, another thread may reshape an array */
  int64_t* shape = sizes;
  for (int32_t k = 0; k < num_inputs; k++, argument++) {
    if (!is_array(given[k])) return other_way(call, given, num_given);
    const ArrayFields* array = fields_of(given[k]);
    if ((array->element_type != argument->element_type && !is_like(array->element_type, argument->element_type)) ||
        array->ndim != argument->ndim || (array->flags & (C_CONTIGUOUS | ALIGNED)) != (C_CONTIGUOUS | ALIGNED))
      return other_way(call, given, num_given);
    describe(&tensors[k], &values[k], argument, array->data, shape);
    for (int32_t axis = 0; axis < argument->ndim; axis++) *shape++ = array->shape[axis];
  }

  Object* outputs[num_outputs];
  const int64_t* size = call->output_sizes;
  for (int32_t k = 0; k < num_outputs; k++, argument++) {
    int64_t* own = shape;
    for (int32_t axis = 0; axis < argument->ndim; axis++, size++) *shape++ = *size >= 0 ? *size : sizes[~*size];
    python.increase_references(argument->element_type);
    outputs[k] = python.new_array(python.array_type, argument->element_type, argument->ndim, (const intptr_t*)own, NULL,
                                  NULL, 0, NULL);
    if (outputs[k] == NULL) {
      forget(outputs, k);
      return NULL;
    }
    describe(&tensors[num_inputs + k], &values[num_inputs + k], argument, fields_of(outputs[k])->data, own);
  }

  Any result = {0, 0, {0}};
  void* state = python.save_thread();
  int status = call->function(NULL, values, num_inputs + num_outputs, &result);
  python.restore_thread(state);
  if (status == 0) return results(outputs, num_outputs);

  forget(outputs, num_outputs);
  if (status == RAISED_IN_PYTHON) return NULL;
  void* error = NULL;
  python.take_error(&error);
  if (error != NULL) python.drop_error(error);
  return other_way(call, given, num_given);
}

typedef struct { /* PyMethodDef */
  const char* name;
  Object* (*function)(Object* self, Object* const* args, ptrdiff_t num_args);
  int flags;
  const char* doc;
} Method;
enum { FASTCALL = 0x80 };

static const Method method = {"call", call_with_arrays, FASTCALL,
                              "The output for these arrays, or a list of several."};

EXPORT const char* lw_source_hash(void) { return LW_SOURCE_HASH; }

EXPORT void lw_set_up_array_calls(const Interpreter* given) { python = *given; }

/* What PyCFunction_NewEx makes a callable of, with a capsule of a `Call` as its `self`. */
EXPORT const Method* lw_array_call_method(void) { return &method; }

/* The destructor of that capsule. */
EXPORT void lw_drop_array_call(Object* capsule) {
  const Call* call = python.capsule_pointer(capsule, NULL);
  python.decrease_references(call->owner);
}
