// Many answers that are waited for at the same moment: how far from its time each of them comes.
//
//     waiting PORT PREFIX CLIENTS PATHS STEP
//
// Path PREFIXn, for n from 0 to PATHS - 1, answers after 10 s and n times STEP milliseconds.  The clients connect from
// loopback addresses of their own, 20,000 from each, and ask one after the other within 8 s, so that all wait at once;
// then a line `waiting` is printed.  At the end a line of JSON says how much later than it should each answer began, in
// milliseconds.  An answer that comes too early is an error.

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

enum { least = 10000, asking = 8000, each_address = 20000 };

struct client {
    int descriptor;
    double due;               // milliseconds of the monotonic clock; 0 before the request
};

static char buffer[1 << 16];

static void fail(const char *what) {
    fprintf(stderr, "waiting: %s\n", what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 6) { fprintf(stderr, "usage: waiting PORT PREFIX CLIENTS PATHS STEP\n"); return 2; }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int clients = atoi(argv[3]), paths = atoi(argv[4]), step = atoi(argv[5]), poll = epoll_create1(EPOLL_CLOEXEC);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client *all = calloc((size_t)clients, sizeof *all);
    double *late = calloc((size_t)clients, sizeof *late);
    if (clients < 1 || paths < 1 || all == NULL || late == NULL || poll < 0) fail("no memory, or no clients");
    for (int i = 0; i < clients; i++) {
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i / each_address)};
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&own, sizeof own) != 0
            || connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0
            || epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) != 0)
            fail(strerror(errno));
        all[i].descriptor = descriptor;
    }
    double start = now(), first = 0;
    int asked = 0, left = clients;
    while (left > 0) {
        double time = now();
        for (; asked < clients && start + (double)asked * asking / clients <= time; asked++) {
            char request[256];
            int n = asked % paths;
            int length = snprintf(request, sizeof request, "GET %s%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", argv[2], n);
            all[asked].due = now() + least + (double)n * step;
            if (write(all[asked].descriptor, request, (size_t)length) != length) fail("a request could not be written");
        }
        if (asked == clients && first == 0) {
            first = now();
            printf("waiting\n");
            fflush(stdout);
        }
        struct epoll_event ready[256];
        int n = epoll_wait(poll, ready, 256, asked < clients ? 1 : 60000);
        if (n == 0 && asked == clients) fail("nothing came for 60 s");
        for (int i = 0; i < n; i++) {
            struct client *c = &all[ready[i].data.u32];
            double came = now();
            ssize_t count = read(c->descriptor, buffer, sizeof buffer);
            if (count <= 0) fail("a connection was closed");
            if (c->due == 0) fail("there was an answer before a request");
            if (count < 12 || strncmp(buffer, "HTTP/1.1 200", 12) != 0) fail("an answer's status is not 200");
            if (came < c->due) fail("an answer came too early");
            late[clients - left] = came - c->due;
            if (epoll_ctl(poll, EPOLL_CTL_DEL, c->descriptor, NULL) != 0) fail(strerror(errno));
            left--;
        }
    }
    qsort(late, (size_t)clients, sizeof *late, compare);
    printf("{\"requests\": %d, \"p50\": %.3f, \"p99\": %.3f, \"last\": %.3f, \"errors\": 0}\n", clients,
           late[clients / 2], late[(long)clients * 99 / 100], late[clients - 1]);
    return 0;
}
