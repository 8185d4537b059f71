// HandleTable: what is known of a handle of the MPI library, found without a lock. A handle's place is near where its
// hash says, so that a table that is full of others is noticed after a few looks; then it is not kept, and the caller
// counts that. A key is taken out before the call that may give its handle to somebody else, so it is in it once.
#ifndef AIMASTER_PROBE_PMPI_HANDLE_TABLE_H_
#define AIMASTER_PROBE_PMPI_HANDLE_TABLE_H_

#include <stdbool.h>
#include <stdint.h>

enum { kHandleBits = 11, kHandleSlots = 1 << kHandleBits, kHandleLooks = 16 };

struct HandleTable {
  struct HandleSlot {
    uint64_t key;  // 0: empty; 1: being written
    uint64_t value;
  } slots[kHandleSlots + kHandleLooks];
};

static inline struct HandleSlot* HandlePlace(struct HandleTable* table, uint64_t key) {
  return &table->slots[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - kHandleBits)];
}

static inline bool HandleFind(struct HandleTable* table, uint64_t key, uint64_t* value) {
  struct HandleSlot* slot = HandlePlace(table, key);
  for (int i = 0; i < kHandleLooks; ++i, ++slot) {
    if (__atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) != key) continue;
    *value = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);
    return true;
  }
  return false;
}

static inline bool HandleInsert(struct HandleTable* table, uint64_t key, uint64_t value) {
  struct HandleSlot* slot = HandlePlace(table, key);
  for (int i = 0; i < kHandleLooks; ++i, ++slot) {
    uint64_t empty = 0;
    if (__atomic_load_n(&slot->key, __ATOMIC_RELAXED) != 0) continue;
    if (!__atomic_compare_exchange_n(&slot->key, &empty, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

// Finds it and takes it out.
static inline bool HandleTake(struct HandleTable* table, uint64_t key, uint64_t* value) {
  struct HandleSlot* slot = HandlePlace(table, key);
  for (int i = 0; i < kHandleLooks; ++i, ++slot) {
    uint64_t expected = key;
    if (__atomic_load_n(&slot->key, __ATOMIC_RELAXED) != key) continue;
    if (!__atomic_compare_exchange_n(&slot->key, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    *value = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->key, 0, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

#endif  // AIMASTER_PROBE_PMPI_HANDLE_TABLE_H_
