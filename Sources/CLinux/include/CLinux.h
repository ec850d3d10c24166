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

/// Names the calling thread for ps and gdb; at most 15 characters count.
void c_linux_name_thread(const char *name);

/// preadv2(2) with RWF_NOWAIT on one buffer: -1 and EAGAIN where the bytes are not in the page cache.
ssize_t c_linux_read_resident(int file, void *bytes, size_t count, off_t offset);

/// The credentials of the process at the other end of a unix socket; -1 where there are none.
int c_linux_peer_user(int socket);

#endif
