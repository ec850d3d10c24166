// Asks for many keys over keep-alive connections, and checks that each answer is the one of its key.
//
//     walk PORT PATH KEYS CONNECTIONS SECONDS FIELDS
//
// It asks for PATH0 to PATH(KEYS-1): at random for SECONDS, or each of them once when SECONDS is 0.  FIELDS are field lines
// with their CRLF.  Every body must begin with "key N\n"; where FIELDS have If-None-Match, every answer must be a 304, whose
// Content-Length says nothing about the message (wrk waits for a body then).  Prints one line of JSON.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { input_size = 65536, buckets = 1 << 20 };

struct connection {
    int descriptor;
    long key;          // -1: it has nothing to do any more
    size_t used;
    uint64_t start;
    char input[input_size];
};

static uint32_t latencies[buckets];    // by microseconds; the last one has what took longer
static const char *path, *fields;
static long keys, next_key, requests, bytes;
static int once, is_conditional;
static uint64_t state = 88172645463325252u;

static void fail(const char *what) {
    fprintf(stderr, "walk: %s\n", what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static long choose(void) {
    if (once) return next_key < keys ? next_key++ : -1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (long)(state % (uint64_t)keys);
}

static void ask(struct connection *c) {
    char request[8192];
    c->key = choose();
    if (c->key < 0) return;
    int length = snprintf(request, sizeof request, "GET %s%ld HTTP/1.1\r\n%s\r\n", path, c->key, fields);
    c->used = 0;
    c->start = now();
    if (write(c->descriptor, request, (size_t)length) != length) fail("a request could not be written at once");
}

// 1 when the answer is complete.
static int is_complete(struct connection *c) {
    c->input[c->used] = 0;
    char *end = strstr(c->input, "\r\n\r\n");
    if (end == NULL) return 0;
    size_t head = (size_t)(end + 4 - c->input);
    if (strncmp(c->input, is_conditional ? "HTTP/1.1 304 " : "HTTP/1.1 200 ", 13) != 0) fail("an answer has the wrong status");
    if (is_conditional) {
        if (c->used != head) fail("a 304 has a body");
        bytes += (long)head;
        return 1;
    }
    *end = 0;
    char *field = strcasestr(c->input, "\r\nContent-Length:");
    *end = '\r';
    if (field == NULL) fail("an answer has no Content-Length");
    size_t length = head + strtoul(field + 17, NULL, 10);
    if (length >= input_size) fail("an answer is too long");
    if (c->used < length) return 0;
    char start[32];
    size_t n = (size_t)snprintf(start, sizeof start, "key %ld\n", c->key);
    if (c->used != length || memcmp(c->input + head, start, n) != 0) fail("an answer is not the one of its key");
    bytes += (long)length;
    return 1;
}

static void receive(struct connection *c) {
    ssize_t n = read(c->descriptor, c->input + c->used, input_size - 1 - c->used);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) fail("a connection was closed");
    c->used += (size_t)n;
    if (!is_complete(c)) return;
    uint64_t took = now() - c->start;
    latencies[took < buckets ? took : buckets - 1]++;
    requests++;
    ask(c);
}

static double percentile(double share) {
    uint64_t wanted = (uint64_t)((double)requests * share), seen = 0;
    for (long i = 0; i < buckets; i++)
        if ((seen += latencies[i]) > wanted) return (double)i / 1000;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 7) { fprintf(stderr, "usage: walk PORT PATH KEYS CONNECTIONS SECONDS FIELDS\n"); return 2; }
    path = argv[2];
    keys = atol(argv[3]);
    fields = argv[6];
    int connections = atoi(argv[4]), poll = epoll_create1(EPOLL_CLOEXEC);
    double seconds = atof(argv[5]);
    once = seconds <= 0;
    is_conditional = strstr(fields, "If-None-Match:") != NULL;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct connection *all = calloc((size_t)connections, sizeof *all);
    if (all == NULL || poll < 0) fail("no memory");
    uint64_t start = now(), end = start + (uint64_t)(seconds * 1e6);
    for (int i = 0; i < connections; i++) {
        int one = 1;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        all[i].descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(all[i].descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail(strerror(errno));
        setsockopt(all[i].descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (epoll_ctl(poll, EPOLL_CTL_ADD, all[i].descriptor, &event) != 0) fail(strerror(errno));
        ask(&all[i]);
    }
    while (once ? requests < keys : now() < end) {
        struct epoll_event ready[64];
        int n = epoll_wait(poll, ready, 64, once ? 30000 : 1000);
        if (n == 0 && once) fail("no answer for 30 s");
        for (int i = 0; i < n; i++) receive(ready[i].data.ptr);
    }
    printf("{\"requests\": %ld, \"bytes\": %ld, \"seconds\": %f, \"p50\": %.3f, \"p99\": %.3f, \"errors\": 0}\n", requests,
           bytes, (double)(now() - start) / 1e6, percentile(0.5), percentile(0.99));
    return 0;
}
