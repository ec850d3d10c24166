// Handshakes of TLS 1.3, eight at a time, each with one answer: how many there are in a time.
//
//     shake PORT PATH BYTES SECONDS full|resumed|kept [HOST]
//     shake PORT PATH BYTES CONNECTIONS hold [HOST]
//
// Each connection asks for PATH and is closed; `resumed` ones go on with the session of the one before, and it is an error if the server
// does not take that.  With `kept` each process has one connection, and answers are counted in place of handshakes.  With `hold` all
// connections stay open until standard input ends.  With HOST each connection is inside of a tunnel to it, for which PORT is asked by
// CONNECT.  Prints one line of JSON.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static SSL_SESSION *latest;
static char buffer[1 << 18];

static void fail(const char *what) {
    unsigned long error = ERR_get_error();
    fprintf(stderr, "shake: %s%s%s\n", what, error ? ": " : "", error ? ERR_reason_error_string(error) : "");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int keep(SSL *ssl, SSL_SESSION *session) {
    (void)ssl;
    if (latest != NULL) SSL_SESSION_free(latest);
    latest = session;
    return 1;
}

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return difference < 0 ? -1 : difference > 0;
}

// The body of the answer, which is read to its last byte.
static long answer(SSL *ssl, long size) {
    char head[4096];
    size_t used = 0;
    char *end = NULL;
    while (end == NULL) {
        int n = SSL_read(ssl, head + used, (int)(sizeof head - 1 - used));
        if (n <= 0) fail("an answer was cut");
        used += (size_t)n;
        head[used] = 0;
        end = strstr(head, "\r\n\r\n");
        if (end == NULL && used == sizeof head - 1) fail("a head is too long");
    }
    if (strncmp(head, "HTTP/1.1 200 ", 13) != 0) fail("an answer's status is not 200");
    long received = (long)(head + used - (end + 4));
    while (received < size) {
        int n = SSL_read(ssl, buffer, sizeof buffer);
        if (n <= 0) fail("a body was cut");
        received += n;
    }
    if (received != size) fail("a body is too long");
    return received;
}

// What one process came to.
struct outcome { long requests; double spent, p50, p99; };

struct job {
    struct sockaddr_in address;
    // Where the tunnel leads to; NULL without one.
    const char *host, *request;
    int length;
    long size, number;
    int holds, resumes, keeps;
};

// Has the proxy open a tunnel.
static void tunnel(int descriptor, const char *host) {
    char text[1024];
    int length = snprintf(text, sizeof text, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", host, host), used = 0;
    if (write(descriptor, text, (size_t)length) != length) fail("no CONNECT");
    do {
        ssize_t n = read(descriptor, text + used, sizeof text - 1 - (size_t)used);
        if (n <= 0) fail("the answer to CONNECT was cut");
        used += (int)n;
        text[used] = 0;
    } while (strstr(text, "\r\n\r\n") == NULL && used < (int)sizeof text - 1);
    if (strncmp(text, "HTTP/1.1 200 ", 13) != 0) fail("there is no tunnel");
}

static struct outcome work(const struct job *job) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)) fail("no context");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    if (job->resumes) SSL_CTX_sess_set_new_cb(context, keep);
    enum { kept = 1 << 18 };
    double *times = malloc(kept * sizeof *times), start = now();
    struct outcome outcome = {0};
    if (times == NULL) fail("no memory");
    while (job->holds ? outcome.requests < job->number : outcome.spent < (double)job->number) {
        double began = now();
        int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor < 0 || connect(descriptor, (const struct sockaddr *)&job->address, sizeof job->address) != 0)
            fail("no connection");
        if (job->host != NULL) tunnel(descriptor, job->host);
        SSL *ssl = SSL_new(context);
        if (ssl == NULL || !SSL_set_fd(ssl, descriptor) || !SSL_set_tlsext_host_name(ssl, (char *)(job->host ? job->host : "localhost")))
            fail("no session");
        int goes_on = job->resumes && latest != NULL;
        if (goes_on && !SSL_set_session(ssl, latest)) fail("the session cannot go on");
        if (SSL_connect(ssl) != 1) fail("no handshake");
        if (goes_on && !SSL_session_reused(ssl)) fail("the server began a new session");
        do {
            if (job->keeps) began = now();
            if (SSL_write(ssl, job->request, job->length) != job->length) fail("a request could not be written");
            answer(ssl, job->size);
            if (!job->keeps) break;
            double ended = now();
            if (outcome.requests < kept) times[outcome.requests] = ended - began;
            outcome.requests++;
            outcome.spent = ended - start;
        } while (outcome.spent < (double)job->number);
        if (job->keeps) break;
        if (!job->holds) {
            // Without these flags the session could not go on.
            SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
            SSL_free(ssl);
            close(descriptor);
        }
        double ended = now();
        if (outcome.requests < kept) times[outcome.requests] = ended - began;
        outcome.requests++;
        outcome.spent = ended - start;
    }
    if (job->resumes && latest == NULL) fail("the server gave no ticket");
    long counted = outcome.requests < kept ? outcome.requests : kept;
    qsort(times, (size_t)counted, sizeof *times, compare);
    outcome.p50 = times[counted / 2];
    outcome.p99 = times[counted * 99 / 100];
    return outcome;
}

int main(int argc, char **argv) {
    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: shake PORT PATH BYTES SECONDS|CONNECTIONS full|resumed|kept|hold [HOST]\n");
        return 2;
    }
    struct job job = {.size = atol(argv[3]), .number = atol(argv[4]), .host = argv[6]};
    job.keeps = strcmp(argv[5], "kept") == 0;
    job.holds = strcmp(argv[5], "hold") == 0;
    job.resumes = strcmp(argv[5], "resumed") == 0;
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    job.address.sin_family = AF_INET;
    job.address.sin_port = htons((uint16_t)atoi(argv[1]));
    job.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char request[1024];
    job.request = request;
    job.length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s%s%s\r\n%s\r\n", argv[2],
                          job.host ? job.host : "127.0.0.1", job.host ? "" : ":", job.host ? "" : argv[1],
                          job.holds || job.keeps ? "" : "Connection: close\r\n");
    // Several at a time, so that the server does not wait for the client between two handshakes.
    int processes = job.holds ? 1 : 8, ends[2];
    struct outcome total = {0};
    if (pipe(ends) != 0) fail("no pipe");
    if (job.holds) {
        total = work(&job);
    } else {
        for (int i = 0; i < processes; i++) {
            pid_t child = fork();
            if (child < 0) fail("no process");
            if (child > 0) continue;
            struct outcome outcome = work(&job);
            _exit(write(ends[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
        }
        close(ends[1]);
        int failed = 0;
        for (int status; wait(&status) > 0;) failed |= status;
        if (failed) fail("a process failed");
        for (struct outcome one; read(ends[0], &one, sizeof one) == sizeof one;) {
            total.requests += one.requests;
            if (one.spent > total.spent) total.spent = one.spent;
            total.p50 += one.p50 / processes;
            if (one.p99 > total.p99) total.p99 = one.p99;
        }
    }
    printf("{\"requests\": %ld, \"bytes\": %ld, \"seconds\": %f, \"p50\": %f, \"p99\": %f, \"errors\": 0}\n", total.requests,
           total.requests * job.size, total.spent, total.p50 * 1e3, total.p99 * 1e3);
    fflush(stdout);
    if (job.holds)
        while (read(0, buffer, sizeof buffer) > 0) continue;
    return 0;
}
