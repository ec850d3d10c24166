// Thin wrappers over Linux calls that need _GNU_SOURCE.
#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int c_linux_accept(int listener, struct sockaddr_storage *peer, socklen_t *length) {
    *length = sizeof(*peer);
    return accept4(listener, (struct sockaddr *)peer, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int c_linux_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

ssize_t c_linux_send_files(int socket, const void *bytes, size_t count, const int *files, unsigned int files_count) {
    union {
        char room[CMSG_SPACE(sizeof(int) * c_linux_most_files)];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (files_count > c_linux_most_files) {
        errno = E2BIG;
        return -1;
    }
    if (files_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * files_count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * files_count);
        memcpy(CMSG_DATA(rights), files, sizeof(int) * files_count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t c_linux_receive_files(int socket, void *bytes, size_t count, int *files, unsigned int *files_count) {
    union {
        char room[CMSG_SPACE(sizeof(int) * c_linux_most_files)];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {.iov_base = bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    *files_count = 0;
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return -1;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL; one = CMSG_NXTHDR(&message, one)) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
        unsigned int more = (unsigned int)((one->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        // The kernel passes no more than the room holds, in one header.
        if (more > c_linux_most_files - *files_count) more = c_linux_most_files - *files_count;
        memcpy(files + *files_count, CMSG_DATA(one), sizeof(int) * more);
        *files_count += more;
    }
    if (message.msg_flags & MSG_CTRUNC) {
        for (unsigned int index = 0; index < *files_count; index++) close(files[index]);
        *files_count = 0;
        errno = EMSGSIZE;
        return -1;
    }
    return received;
}

int c_linux_memory_file(size_t size) {
    int descriptor = memfd_create("drydock", MFD_CLOEXEC);
    if (descriptor >= 0 && ftruncate(descriptor, (off_t)size) != 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

void c_linux_name_thread(const char *name) {
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(pthread_self(), short_name);
}

int c_linux_thread_number(void) { return (int)gettid(); }

int c_linux_pipe(int ends[2], int size) {
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -1;
    fcntl(ends[1], F_SETPIPE_SZ, size);
    return 0;
}

ssize_t c_linux_splice(int from, int to, size_t count) {
    return splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

void c_linux_bound_waits(int socket, int seconds) {
    struct timeval limit = {.tv_sec = seconds, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

int c_linux_timer(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); }

void c_linux_timer_set(int timer, unsigned long time) {
    struct itimerspec when = {{0, 0}, {(time_t)(time / 1000000000), (long)(time % 1000000000)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void c_linux_trim(void) { malloc_trim(0); }

void c_linux_keep_freed(int kept, int mapped) {
    mallopt(M_TRIM_THRESHOLD, kept);
    mallopt(M_MMAP_THRESHOLD, mapped);
}
