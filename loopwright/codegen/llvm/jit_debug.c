/* The interface through which gdb learns of code made at run time: it stops at the function and reads the list.
 *
 * gdb manual, "JIT Compilation Interface". The names and layouts are gdb's. */
#include <stdint.h>
#include <stdlib.h>

#ifndef LW_SOURCE_HASH
#define LW_SOURCE_HASH "unknown"
#endif
#define EXPORT __attribute__((visibility("default")))

typedef enum { NO_ACTION, REGISTER, UNREGISTER } Action;

struct jit_code_entry {
  struct jit_code_entry* next;
  struct jit_code_entry* prev;
  const char* symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  struct jit_code_entry* relevant_entry;
  struct jit_code_entry* first_entry;
};

EXPORT struct jit_descriptor __jit_debug_descriptor = {1, NO_ACTION, NULL, NULL};

EXPORT __attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

EXPORT const char* lw_source_hash(void) { return LW_SOURCE_HASH; }

/* `image` stays where it is until the entry is forgotten. The caller holds a lock. */
EXPORT void* lw_show_code(const char* image, uint64_t size) {
  struct jit_code_entry* entry = malloc(sizeof *entry);
  if (entry == NULL) return NULL;
  *entry = (struct jit_code_entry){__jit_debug_descriptor.first_entry, NULL, image, size};
  if (entry->next != NULL) entry->next->prev = entry;
  __jit_debug_descriptor.first_entry = entry;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = REGISTER;
  __jit_debug_register_code();
  return entry;
}

EXPORT void lw_forget_code(void* code) {
  struct jit_code_entry* entry = code;
  if (entry == NULL) return;
  if (entry->prev != NULL)
    entry->prev->next = entry->next;
  else
    __jit_debug_descriptor.first_entry = entry->next;
  if (entry->next != NULL) entry->next->prev = entry->prev;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = UNREGISTER;
  __jit_debug_register_code();
  free(entry);
}
