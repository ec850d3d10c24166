// Many clients that ask for one thing at the same moment: how long until the first and the last of them have all of it.
//
//     crowd PORT PATH CLIENTS BYTES [hold]
//
// All connect first; then the clock starts and all ask.  The body is byte i = i modulo 251; the first and the last byte of
// every read are checked.  Prints one line of JSON; with `hold` the connections then stay open until standard input ends.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { head_size = 4096 };

struct client {
    int descriptor;
    long received;            // bytes of the body; -1 while the head is not complete
    size_t used;
    char head[head_size];
};

static char buffer[1 << 18];
static long size;

static void fail(const char *what) {
    fprintf(stderr, "crowd: %s\n", what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void take(struct client *c, const char *bytes, long n) {
    if (n == 0) return;
    if (c->received + n > size) fail("a body is too long");
    if ((unsigned char)bytes[0] != c->received % 251 || (unsigned char)bytes[n - 1] != (c->received + n - 1) % 251)
        fail("a body is wrong");
    c->received += n;
}

static void take_head(struct client *c, const char *bytes, size_t n) {
    size_t before = c->used, more = n < head_size - 1 - before ? n : head_size - 1 - before;
    memcpy(c->head + before, bytes, more);
    c->used += more;
    c->head[c->used] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (end == NULL) {
        if (c->used == head_size - 1) fail("a head is too long");
        return;
    }
    *end = 0;
    char *field = strcasestr(c->head, "\r\nContent-Length:");
    if (strncmp(c->head, "HTTP/1.1 200 ", 13) != 0) fail("an answer's status is not 200");
    if (field == NULL || atol(field + 17) != size) fail("an answer's Content-Length is wrong");
    size_t head = (size_t)(end + 4 - c->head) - before;
    c->received = 0;
    take(c, bytes + head, (long)(n - head));
}

// 1 when the answer is complete.
static int receive(struct client *c) {
    ssize_t n = read(c->descriptor, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) fail("a connection was closed");
    if (c->received < 0) take_head(c, buffer, (size_t)n); else take(c, buffer, n);
    return c->received == size;
}

int main(int argc, char **argv) {
    if (argc < 5) { fprintf(stderr, "usage: crowd PORT PATH CLIENTS BYTES [hold]\n"); return 2; }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int clients = atoi(argv[3]), poll = epoll_create1(EPOLL_CLOEXEC);
    size = atol(argv[4]);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client *all = calloc((size_t)clients, sizeof *all);
    if (all == NULL || poll < 0) fail("no memory");
    for (int i = 0; i < clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        all[i].received = -1;
        all[i].descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (all[i].descriptor < 0 || connect(all[i].descriptor, (struct sockaddr *)&address, sizeof address) != 0
            || epoll_ctl(poll, EPOLL_CTL_ADD, all[i].descriptor, &event) != 0)
            fail(strerror(errno));
    }
    char request[1024];
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", argv[2], argv[1]);
    int left = clients;
    double start = now(), first = 0;
    for (int i = 0; i < clients; i++)
        if (write(all[i].descriptor, request, (size_t)length) != length) fail("a request could not be written");
    while (left > 0) {
        struct epoll_event ready[256];
        int n = epoll_wait(poll, ready, 256, 60000);
        if (n == 0) fail("nothing came for 60 s");
        for (int i = 0; i < n; i++) {
            if (!receive(ready[i].data.ptr)) continue;
            if (first == 0) first = now() - start;
            left--;
        }
    }
    printf("{\"requests\": %d, \"bytes\": %ld, \"first\": %.2f, \"last\": %.2f, \"errors\": 0}\n", clients, clients * size,
           first, now() - start);
    fflush(stdout);
    if (argc > 5)
        while (read(0, buffer, sizeof buffer) > 0) continue;
    return 0;
}
