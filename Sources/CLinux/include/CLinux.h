// What the kernel offers and Swift cannot see: only the room EventLoop imports this module.
#ifndef DRYDOCK_CLINUX_H
#define DRYDOCK_CLINUX_H

// Not <sys/socket.h>: in an optimised build Swift would take this module for the owner of its types and hide Glibc's.
#include <sys/types.h>

struct sockaddr_storage;

/// accept4(2) with SOCK_NONBLOCK and SOCK_CLOEXEC; -1 and errno on failure.
int c_linux_accept(int listener, struct sockaddr_storage *peer, unsigned int *length);

/// eventfd(2), non-blocking and close-on-exec.
int c_linux_eventfd(void);

/// The most descriptors that one message carries (SCM_MAX_FD).
enum { c_linux_most_files = 253 };

/// sendmsg(2) of bytes with descriptors (SCM_RIGHTS), at most `c_linux_most_files`; the peer gets copies of its own. -1 and errno on failure.
ssize_t c_linux_send_files(int socket, const void *bytes, size_t count, const int *files, unsigned int files_count);

/// recvmsg(2) of at most `count` bytes with descriptors, which are close-on-exec. `files` has room for `c_linux_most_files`. -1 and errno on failure;
/// EMSGSIZE where more came than there is room for, and then none is kept.
ssize_t c_linux_receive_files(int socket, void *bytes, size_t count, int *files, unsigned int *files_count);

/// memfd_create(2), close-on-exec, of `size` bytes; -1 and errno on failure.
int c_linux_memory_file(size_t size);

/// Names the calling thread for ps and gdb; at most 15 characters count.
void c_linux_name_thread(const char *name);

/// The kernel's number of the calling thread, as in /proc/self/task.
int c_linux_thread_number(void);

/// pipe2(2), both ends non-blocking and close-on-exec, with room for `size` bytes where the kernel allows it; the end to read
/// from first. -1 and errno on failure.
int c_linux_pipe(int ends[2], int size);

/// splice(2) of at most `count` bytes, without waiting; -1 and errno on failure.
ssize_t c_linux_splice(int from, int to, size_t count);

/// SO_RCVTIMEO and SO_SNDTIMEO: blocking reads and writes of a socket end after so many seconds. It is written in C because
/// CLibevent declares `timeval`, too, and which of the two Swift takes depends on the files that it compiles together.
void c_linux_bound_waits(int socket, int seconds);

/// timerfd_create(2) of the monotonic clock, non-blocking and close-on-exec.
int c_linux_timer(void);

/// Has the timer fire at a time of the monotonic clock, in nanoseconds, which is not 0; a time before that is dropped.
void c_linux_timer_set(int timer, unsigned long time);

/// malloc_trim(3) of all that is free.
void c_linux_trim(void);

/// mallopt(3): up to `kept` bytes that are free at the end of a heap stay there, and only blocks of `mapped` bytes or more
/// are mappings of their own.
void c_linux_keep_freed(int kept, int mapped);

#endif
