// The limit that a hit is measured against: libevent for events, read and writev by hand, one fixed answer, one thread.
//
//     bare_loop PORT BYTES        listens on 127.0.0.1:PORT (0: the kernel chooses) and prints the port
//
// It does what no server can leave out and nothing else: keep-alive, pipelining, short writes, a Date that is right.
// Its fields are those of a hit that came from an origin through a proxy, so that both write as many bytes.

#define _GNU_SOURCE
#include <sys/types.h>
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { input_size = 16384, batch = 32 };

struct connection {
    struct event readable;
    struct event writable;
    int descriptor;
    int waiting;         // the writable event is added
    size_t used;         // bytes in input
    size_t owed;         // answers not written completely
    size_t written;      // bytes written of the first of them
    char input[input_size];
};

static struct event_base *base;
static char head[1024];
static size_t head_length;
static char *body;
static size_t body_length;
static time_t head_time;

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
        "Date: %s\r\n"
        "Content-Type: application/octet-stream\r\n"
        "Content-Length: %zu\r\n"
        "Last-Modified: Tue, 01 Jul 2025 10:00:00 GMT\r\n"
        "ETag: \"6863b0e0-400\"\r\n"
        "Cache-Control: max-age=3600\r\n"
        "Accept-Ranges: bytes\r\n"
        "Via: 1.1 drydock\r\n"
        "Age: 1\r\n"
        "Cache-Status: drydock; hit; ttl=3599; detail=memory\r\n"
        "\r\n",
        date, body_length);
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
        struct iovec pieces[2 * batch];
        int count = 0;
        size_t skip = c->written;
        for (size_t answer = 0; answer < c->owed && answer < batch; answer++) {
            if (skip < head_length) {
                pieces[count++] = (struct iovec){head + skip, head_length - skip};
                pieces[count++] = (struct iovec){body, body_length};
            } else {
                pieces[count++] = (struct iovec){body + (skip - head_length), body_length - (skip - head_length)};
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
        size_t length = head_length + body_length;
        c->owed -= c->written / length;
        c->written %= length;
    }
    if (c->waiting) { event_del(&c->writable); c->waiting = 0; }
    return 1;
}

static void on_writable(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor; (void)what;
    flush(context);
}

static void on_readable(evutil_socket_t descriptor, short what, void *context) {
    (void)what;
    struct connection *c = context;
    ssize_t n = read(descriptor, c->input + c->used, input_size - c->used);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) { close_connection(c); return; }
    c->used += (size_t)n;
    char *start = c->input, *end;
    size_t left = c->used;
    // A head may only change its Date between answers: one that is partly written keeps its length, which never differs.
    make_head();
    while ((end = memmem(start, left, "\r\n\r\n", 4)) != NULL) {
        c->owed++;
        left -= (size_t)(end + 4 - start);
        start = end + 4;
    }
    if (left == input_size) { close_connection(c); return; }
    memmove(c->input, start, left);
    c->used = left;
    if (!c->waiting) flush(c);
}

static void on_accept(evutil_socket_t listener, short what, void *context) {
    (void)what; (void)context;
    int descriptor;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int one = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *c = malloc(sizeof *c);
        if (c == NULL) { close(descriptor); continue; }
        c->descriptor = descriptor;
        c->waiting = 0;
        c->used = c->owed = c->written = 0;
        event_assign(&c->readable, base, descriptor, EV_READ | EV_PERSIST, on_readable, c);
        event_assign(&c->writable, base, descriptor, EV_WRITE | EV_PERSIST, on_writable, c);
        event_add(&c->readable, NULL);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) { fprintf(stderr, "usage: bare_loop PORT BYTES\n"); return 2; }
    signal(SIGPIPE, SIG_IGN);
    body_length = strtoul(argv[2], NULL, 10);
    if ((body = malloc(body_length + 1)) == NULL) return 1;
    // The same pattern as the origin's files: byte i is i modulo 251.
    for (size_t i = 0; i < body_length; i++) body[i] = (char)(i % 251);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1024) != 0
        || getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("bare_loop");
        return 1;
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    base = event_base_new();
    struct event accepting;
    event_assign(&accepting, base, listener, EV_READ | EV_PERSIST, on_accept, NULL);
    event_add(&accepting, NULL);
    return event_base_dispatch(base) == 0 ? 0 : 1;
}
