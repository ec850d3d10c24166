// The limit that a hit is measured against: libevent for events, read and writev by hand, one fixed answer.
//
//     bare_loop PORT BYTES [KEYS [LOOPS]]     listens on 127.0.0.1:PORT (0: the kernel chooses) and prints the port
//
// Each of LOOPS (default: 1) has a thread; the first accepts the connections and gives each loop its turn.
// With KEYS (not 0) it answers /n/0 to /n/(KEYS-1), each with a head and a body of its own from a hash table, and nothing else.
// It does what no server can leave out and nothing else: keep-alive, pipelining, short writes, a Date that is right.
// Its fields are those of a hit that came from an origin through a proxy, so that both write as many bytes.

#define _GNU_SOURCE
#include <sys/types.h>
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { input_size = 16384, batch = 32 };

// What follows the part of the head that all answers have: the rest of the head, and the body.
struct answer {
    size_t rest_length;
    size_t target_length;
    char *body;
    char *rest;
    char target[24];
};

struct connection {
    struct event readable;
    struct event writable;
    int descriptor;
    int waiting;                      // the writable event is added
    size_t used;                      // bytes in input
    size_t owed;                      // answers not written completely
    size_t written;                   // bytes written of the first of them
    struct answer *answers[batch];    // they
    char input[input_size];
};

static __thread struct event_base *base;
static __thread char head[128];
static __thread size_t head_length;
static __thread time_t head_time;
static int loops = 1;
static int (*wakes)[2];               // a pipe for each loop: descriptors of connections that are its own
static size_t body_length;
static struct answer only;            // without KEYS
static struct answer **table;         // with KEYS: by hash, open addressing
static size_t mask;

static void make_head(void) {
    time_t now = time(NULL);
    if (now == head_time) return;
    head_time = now;
    char date[64];
    struct tm parts;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    head_length = (size_t)snprintf(
        head, sizeof head,
        "HTTP/1.1 200 OK\r\n"
        "Server: nginx/1.22.1\r\n"
        "Date: %s\r\n",
        date);
}

// Rest of the head and body lie together, as they do in a cache that keeps them ready to write.
static void fill(struct answer *answer, const char *start) {
    char rest[512];
    answer->rest_length = (size_t)snprintf(
        rest, sizeof rest,
        "Content-Type: application/octet-stream\r\n"
        "Content-Length: %zu\r\n"
        "Last-Modified: Tue, 01 Jul 2025 10:00:00 GMT\r\n"
        "ETag: \"6863b1a0-400\"\r\n"
        "Cache-Control: max-age=86400\r\n"
        "Accept-Ranges: bytes\r\n"
        "Via: 1.1 drydock\r\n"
        "Age: 1\r\n"
        "Cache-Status: drydock; hit; ttl=86399; detail=memory\r\n"
        "\r\n",
        body_length);
    answer->rest = malloc(answer->rest_length + body_length + 1);
    if (answer->rest == NULL) { fprintf(stderr, "bare_loop: no memory\n"); exit(1); }
    memcpy(answer->rest, rest, answer->rest_length);
    answer->body = answer->rest + answer->rest_length;
    // The same pattern as the origin's files: byte i is i modulo 251.
    for (size_t i = 0; i < body_length; i++) answer->body[i] = (char)(i % 251);
    memcpy(answer->body, start, strlen(start));
}

static uint64_t hash(const char *bytes, size_t length) {
    uint64_t value = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) value = (value ^ (unsigned char)bytes[i]) * 1099511628211u;
    return value ^ value >> 29;
}

static void fill_table(long keys) {
    size_t size = 1024;
    while (size < 2 * (size_t)keys) size *= 2;
    mask = size - 1;
    if ((table = calloc(size, sizeof *table)) == NULL) { fprintf(stderr, "bare_loop: no memory\n"); exit(1); }
    for (long key = 0; key < keys; key++) {
        char start[32];
        struct answer *answer = malloc(sizeof *answer);
        if (answer == NULL) { fprintf(stderr, "bare_loop: no memory\n"); exit(1); }
        snprintf(start, sizeof start, "key %ld\n", key);
        fill(answer, start);
        answer->target_length = (size_t)snprintf(answer->target, sizeof answer->target, "/n/%ld", key);
        size_t at = hash(answer->target, answer->target_length) & mask;
        while (table[at] != NULL) at = (at + 1) & mask;
        table[at] = answer;
    }
}

// The answer to the request that begins here; null when there is none.
static struct answer *find(const char *request, const char *end) {
    if (table == NULL) return &only;
    if (end - request < 5) return NULL;
    const char *target = request + 4, *space = memchr(target, ' ', (size_t)(end - target));
    if (space == NULL) return NULL;
    size_t length = (size_t)(space - target);
    for (size_t at = hash(target, length) & mask; table[at] != NULL; at = (at + 1) & mask)
        if (table[at]->target_length == length && memcmp(table[at]->target, target, length) == 0) return table[at];
    return NULL;
}

static void close_connection(struct connection *c) {
    event_del(&c->readable);
    event_del(&c->writable);
    close(c->descriptor);
    free(c);
}

// Writes what is owed; 0 when the connection had to be closed.
static int flush(struct connection *c) {
    while (c->owed > 0) {
        struct iovec pieces[3 * batch];
        int count = 0;
        size_t skip = c->written;
        for (size_t i = 0; i < c->owed; i++) {
            struct answer *answer = c->answers[i];
            size_t length = answer->rest_length + body_length;
            if (skip < head_length) {
                pieces[count++] = (struct iovec){head + skip, head_length - skip};
                pieces[count++] = (struct iovec){answer->rest, length};
            } else {
                pieces[count++] = (struct iovec){answer->rest + (skip - head_length), length - (skip - head_length)};
            }
            skip = 0;
        }
        ssize_t n = writev(c->descriptor, pieces, count);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) { close_connection(c); return 0; }
            if (!c->waiting) { event_add(&c->writable, NULL); c->waiting = 1; }
            return 1;
        }
        c->written += (size_t)n;
        size_t done = 0;
        for (size_t length; done < c->owed; done++) {
            length = head_length + c->answers[done]->rest_length + body_length;
            if (c->written < length) break;
            c->written -= length;
        }
        c->owed -= done;
        memmove(c->answers, c->answers + done, c->owed * sizeof *c->answers);
    }
    if (c->waiting) { event_del(&c->writable); c->waiting = 0; }
    return 1;
}

// Answers the requests that have been read; what does not fit in a batch waits until that is written.
static void serve(struct connection *c) {
    char *start = c->input, *end;
    size_t left = c->used;
    // A head may only change its Date between answers: one that is partly written keeps its length, which never differs.
    make_head();
    while (!c->waiting && (end = memmem(start, left, "\r\n\r\n", 4)) != NULL) {
        struct answer *answer = find(start, end);
        if (answer == NULL) { close_connection(c); return; }
        c->answers[c->owed++] = answer;
        left -= (size_t)(end + 4 - start);
        start = end + 4;
        if (c->owed == batch && !flush(c)) return;
    }
    memmove(c->input, start, left);
    c->used = left;
    if (c->owed > 0 && !c->waiting) flush(c);
}

static void on_writable(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor; (void)what;
    struct connection *c = context;
    if (flush(c) && !c->waiting && c->used > 0) serve(c);
}

static void on_readable(evutil_socket_t descriptor, short what, void *context) {
    (void)what;
    struct connection *c = context;
    ssize_t n = read(descriptor, c->input + c->used, input_size - c->used);
    // A full buffer holds either a head that is too long, or requests that wait for their turn.
    if (n == 0 && c->used == input_size && c->waiting) return;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) { close_connection(c); return; }
    c->used += (size_t)n;
    if (!c->waiting) serve(c);
}

static void begin(int descriptor) {
    struct connection *c = malloc(sizeof *c);
    if (c == NULL) { close(descriptor); return; }
    c->descriptor = descriptor;
    c->waiting = 0;
    c->used = c->owed = c->written = 0;
    event_assign(&c->readable, base, descriptor, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, base, descriptor, EV_WRITE | EV_PERSIST, on_writable, c);
    event_add(&c->readable, NULL);
}

static void on_wake(evutil_socket_t wake, short what, void *context) {
    (void)what; (void)context;
    int descriptor;
    while (read(wake, &descriptor, sizeof descriptor) == sizeof descriptor) begin(descriptor);
}

static void *run(void *wake) {
    base = event_base_new();
    struct event woken;
    event_assign(&woken, base, *(int *)wake, EV_READ | EV_PERSIST, on_wake, NULL);
    event_add(&woken, NULL);
    event_base_dispatch(base);
    return NULL;
}

static void on_accept(evutil_socket_t listener, short what, void *context) {
    (void)what; (void)context;
    static int turn;
    int descriptor;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int one = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        turn = (turn + 1) % loops;
        if (turn == 0) begin(descriptor);
        else if (write(wakes[turn][1], &descriptor, sizeof descriptor) < 0) close(descriptor);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "usage: bare_loop PORT BYTES [KEYS [LOOPS]]\n"); return 2; }
    signal(SIGPIPE, SIG_IGN);
    body_length = strtoul(argv[2], NULL, 10);
    long keys = argc > 3 ? atol(argv[3]) : 0;
    if (keys > 0) fill_table(keys); else fill(&only, "");
    if (argc > 4) loops = atoi(argv[4]);
    if (loops < 1 || (wakes = calloc((size_t)loops, sizeof *wakes)) == NULL) { fprintf(stderr, "bare_loop: no loops\n"); return 2; }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0
        || getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("bare_loop");
        return 1;
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (int i = 1; i < loops; i++) {
        pthread_t thread;
        if (pipe2(wakes[i], O_NONBLOCK | O_CLOEXEC) != 0 || pthread_create(&thread, NULL, run, &wakes[i][0]) != 0) {
            perror("bare_loop");
            return 1;
        }
    }
    base = event_base_new();
    struct event accepting;
    event_assign(&accepting, base, listener, EV_READ | EV_PERSIST, on_accept, NULL);
    event_add(&accepting, NULL);
    return event_base_dispatch(base) == 0 ? 0 : 1;
}
