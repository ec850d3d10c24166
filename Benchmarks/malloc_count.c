// Counts a process's allocations: loaded with LD_PRELOAD, it keeps the count in the file that MALLOC_COUNT names, mapped
// shared, so that it can be read from outside at any time without stopping or signalling the process.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static _Atomic uint64_t before_start;
static _Atomic uint64_t *count = &before_start;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("MALLOC_COUNT");
    if (path == NULL) return;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return;
    if (ftruncate(descriptor, sizeof(uint64_t)) == 0) {
        void *page = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (page != MAP_FAILED) count = page;
    }
    close(descriptor);
}

static void one(void) { atomic_fetch_add_explicit(count, 1, memory_order_relaxed); }

void *malloc(size_t size) { one(); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { one(); return __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { one(); return __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { one(); return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { one(); return __libc_memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
    one();
    void *memory = __libc_memalign(alignment, size);
    if (memory == NULL) return ENOMEM;
    *result = memory;
    return 0;
}
