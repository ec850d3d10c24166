// Lets a process believe that it may have 65,536 files open: loaded with LD_PRELOAD, it answers getrlimit(RLIMIT_NOFILE).  The kernel's own
// limit stays, so it measures connections at rest where the hard limit has no room for the descriptors that they would need at work.

#define _GNU_SOURCE
#include <stddef.h>
#include <sys/resource.h>

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
    int result = prlimit(0, resource, NULL, limit);
    if (result == 0 && resource == RLIMIT_NOFILE) limit->rlim_cur = limit->rlim_max = 65536;
    return result;
}
