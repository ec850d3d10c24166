// What the processor offers and Swift cannot say: only the room CacheStore imports this module.
#ifndef DRYDOCK_CPROCESSOR_H
#define DRYDOCK_CPROCESSOR_H

/// Has the processor fetch the line of memory that holds an address, which may be any: nothing is read, and nothing waits.
static inline void c_processor_prefetch(const void *address) { __builtin_prefetch(address); }

#endif
