/* Temporary memory that is kept and reused, so that repeated calls meet no fresh pages.
 *
 * Every thread keeps the blocks it made and gives them out again: a fresh mapping costs a page fault every 4 KiB, which
 * for a packed panel takes longer than the work on it. All threads together keep at most `keep_limit` bytes unused. */
#include "thread_pool.h"

#define PAGE ((uint64_t)4096)
#define HUGE_PAGE ((uint64_t)2 << 20)
#define MOST_KEPT ((int64_t)1 << 30)

enum { FREE_BLOCK, USED_BLOCK, ORPHAN_BLOCK }; /* orphan: still in use when the thread that made it ended */

typedef struct Block {
  _Alignas(64) struct Block* next; /* the list of the thread that made it; only that thread walks it */
  struct Block** list;             /* whose it is: the address of that list */
  uint64_t capacity;               /* bytes after this header */
  void* base;                      /* where its memory begins, somewhat before this header */
  uint64_t mapped;                 /* bytes of the mapping there; 0: it came from posix_memalign */
  _Atomic int state;
} Block;

static _Thread_local Block* blocks;
static _Thread_local uint32_t blocks_made;
static _Thread_local uint32_t trims_heard;
static _Atomic uint32_t trims_asked;
static _Atomic int64_t kept; /* unused bytes of all threads' blocks */
static int64_t keep_limit;
static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void give_back(Block* block) {
  if (block->mapped > 0)
    munmap(block->base, block->mapped);
  else
    free(block->base);
}

static void end_thread(void* list) {
  blocks = NULL;
  for (Block *block = list, *next; block != NULL; block = next) {
    next = block->next;
    int64_t capacity = (int64_t)block->capacity;
    if (atomic_exchange(&block->state, ORPHAN_BLOCK) != FREE_BLOCK) continue;
    atomic_fetch_sub(&kept, capacity);
    give_back(block);
  }
}

static void set_up_workspace(void) {
  pthread_key_create(&at_thread_end, end_thread);
  int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  keep_limit = memory > 0 && memory / 8 < MOST_KEPT ? memory / 8 : MOST_KEPT;
  set_up_once(); /* what is kept must be counted again after a fork */
}

static void set_blocks(Block* list) {
  blocks = list;
  pthread_once(&key_once, set_up_workspace);
  pthread_setspecific(at_thread_end, list);
}

static void unlink_block(Block* block) {
  Block** link = &blocks;
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  set_blocks(blocks);
}

static Block* new_block(uint64_t bytes) {
  /* Buffers that are used together should not begin at the same place of a page, or their lines compete for the same
   * few places in L1, and loads seem to depend on stores 4096 bytes away. */
  uint64_t before = blocks_made++ * 5 % 16 * 256;
  uint64_t total = before + sizeof(Block) + bytes, mapped = 0;
  char* base = NULL;
  if (total < HUGE_PAGE) {
    total = (total + PAGE - 1) / PAGE * PAGE;
    if (posix_memalign((void**)&base, PAGE, total) != 0) return NULL;
  } else { /* map a whole number of huge pages, and cut off what lies before the first boundary and after the last */
    total = (total + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char* mapping = mmap(NULL, total + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    uint64_t odd = (HUGE_PAGE - (uintptr_t)mapping % HUGE_PAGE) % HUGE_PAGE;
    if (odd > 0) munmap(mapping, odd);
    munmap(mapping + odd + total, HUGE_PAGE - odd);
    base = mapping + odd;
    mapped = total;
#ifdef MADV_HUGEPAGE
    madvise(base, total, MADV_HUGEPAGE); /* a hint: where it is refused the memory works all the same */
#endif
  }
  Block* block = (Block*)(base + before);
  block->base = base;
  block->mapped = mapped;
  block->list = &blocks;
  block->capacity = total - before - sizeof(Block);
  return block;
}

/* Give back the unused blocks of the calling thread. */
static void trim_own(void) {
  for (Block** link = &blocks; *link != NULL;) {
    Block* block = *link;
    if (atomic_load(&block->state) == FREE_BLOCK) {
      *link = block->next;
      atomic_fetch_sub(&kept, (int64_t)block->capacity);
      give_back(block);
    } else {
      link = &block->next;
    }
  }
  set_blocks(blocks);
}

static void trim_if_asked(void) {
  uint32_t asked = atomic_load_explicit(&trims_asked, memory_order_relaxed);
  if (asked == trims_heard) return;
  trims_heard = asked;
  if (blocks != NULL) trim_own();
}

static void workspace_trim(void) {
  atomic_fetch_add(&trims_asked, 1);
  trim_if_asked();
  wake_workers();
}

static void* workspace_alloc(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX - (int64_t)(4 * HUGE_PAGE)) return NULL;
  trim_if_asked();
  uint64_t need = (uint64_t)bytes;
  uint64_t most = need > UINT64_MAX / 8 ? UINT64_MAX : 4 * need + HUGE_PAGE; /* leave large blocks to large requests */
  Block* best = NULL;
  Block* outgrown = NULL;
  for (Block* block = blocks; block != NULL; block = block->next) {
    if (atomic_load_explicit(&block->state, memory_order_acquire) != FREE_BLOCK) continue;
    if (block->capacity >= need) {
      if (block->capacity <= most && (best == NULL || block->capacity < best->capacity)) best = block;
    } else if (outgrown == NULL || block->capacity > outgrown->capacity) {
      outgrown = block;
    }
  }
  if (best != NULL) {
    atomic_fetch_sub_explicit(&kept, (int64_t)best->capacity, memory_order_relaxed);
  } else {
    if (outgrown != NULL) { /* replaced, so that a thread keeps no more blocks than it once used together */
      unlink_block(outgrown);
      atomic_fetch_sub_explicit(&kept, (int64_t)outgrown->capacity, memory_order_relaxed);
      give_back(outgrown);
    }
    best = new_block(need);
    if (best == NULL) return NULL;
    best->next = blocks;
    set_blocks(best);
  }
  atomic_store_explicit(&best->state, USED_BLOCK, memory_order_relaxed);
  return best + 1;
}

static void workspace_free(void* memory) {
  if (memory == NULL) return;
  Block* block = (Block*)memory - 1;
  int64_t capacity = (int64_t)block->capacity;
  if (block->list == &blocks && atomic_load_explicit(&kept, memory_order_relaxed) + capacity > keep_limit) {
    unlink_block(block);
    give_back(block);
    return;
  }
  atomic_fetch_add_explicit(&kept, capacity, memory_order_relaxed);
  int used = USED_BLOCK;
  if (atomic_compare_exchange_strong(&block->state, &used, FREE_BLOCK)) return;
  atomic_fetch_sub_explicit(&kept, capacity, memory_order_relaxed);
  give_back(block);
}

static int64_t workspace_held(void) {
  int64_t held = 0;
  for (Block* block = blocks; block != NULL; block = block->next) held += (int64_t)block->capacity;
  return held;
}

/* After a fork: the blocks of threads that are not there any more do not count. */
static void count_kept_blocks(void) {
  int64_t bytes = 0;
  for (Block* block = blocks; block != NULL; block = block->next)
    if (atomic_load(&block->state) == FREE_BLOCK) bytes += (int64_t)block->capacity;
  atomic_store(&kept, bytes);
}
