// Shows ThreadSanitizer what Swift's runtime hands from thread to thread, loaded with LD_PRELOAD into the sanitized tests.
//
// Mutex.  The fast path of Synchronization.Mutex is atomics that the sanitizer sees.  The slow path hands the lock over in the
// kernel (FUTEX_LOCK_PI), which it does not see, so it takes every contended Mutex for a race.  These two functions take
// the place of the slow path's, call it, and tell the sanitizer about the hand-over.
//
// Continuations.  One that is resumed before its task waits is handed over by an atomic of the runtime, which is not
// sanitized: what the task then reads of the value looks like a race.  A resume releases the task, a wait acquires it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *

// Absent, and so null, in processes that are not sanitized.
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

// Synchronization._MutexHandle._lockSlow(_: UInt32)
SWIFT void lock_slow(uint32_t thread, SELF self) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
// Synchronization._MutexHandle._unlockSlow()
SWIFT void unlock_slow(SELF self) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");

SWIFT void lock_slow(uint32_t thread, SELF self) {
    SWIFT void (*real)(uint32_t, SELF) = dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
    real(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT void unlock_slow(SELF self) {
    SWIFT void (*real)(SELF) = dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
    if (__tsan_release) __tsan_release(self);
    real(self);
}

#define ASYNC __attribute__((swiftasynccall))

extern SWIFT void *swift_task_getCurrent(void) __attribute__((weak));

SWIFT void swift_continuation_resume(void *task) {
    SWIFT void (*real)(void *) = dlsym(RTLD_NEXT, "swift_continuation_resume");
    if (__tsan_release) __tsan_release(task);
    real(task);
}

SWIFT void swift_continuation_throwingResume(void *task) {
    SWIFT void (*real)(void *) = dlsym(RTLD_NEXT, "swift_continuation_throwingResume");
    if (__tsan_release) __tsan_release(task);
    real(task);
}

SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error) {
    SWIFT void (*real)(void *, void *) = dlsym(RTLD_NEXT, "swift_continuation_throwingResumeWithError");
    if (__tsan_release) __tsan_release(task);
    real(task, error);
}

ASYNC void swift_continuation_await(void *context) {
    ASYNC void (*real)(void *) = dlsym(RTLD_NEXT, "swift_continuation_await");
    if (__tsan_acquire && swift_task_getCurrent) __tsan_acquire(swift_task_getCurrent());
    return real(context);
}
