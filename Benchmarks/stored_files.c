// Makes many stored files of the disk tier from one that the daemon has written: stored_files FOLDER TEMPLATE COUNT.
//
// The template's URL ends in /0000000; copies have other digits there, so that everything else keeps its place. Each gets
// its own name (SipHash-2-4 with 128 bits of its key, keyed by the folder's secret), file number and checksums.

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BODY = 4096, PREAMBLE = 36, KEY = 56 };

static uint64_t k0, k1;
static uint32_t table[256];

static void fail(const char *what) {
    fprintf(stderr, "stored_files: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t rotate(uint64_t x, int n) { return x << n | x >> (64 - n); }

static void rounds(uint64_t v[4], int count) {
    while (count--) {
        v[0] += v[1]; v[1] = rotate(v[1], 13) ^ v[0]; v[0] = rotate(v[0], 32);
        v[2] += v[3]; v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3]; v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1]; v[1] = rotate(v[1], 17) ^ v[2]; v[2] = rotate(v[2], 32);
    }
}

static void digest(const uint8_t *bytes, size_t count, uint64_t out[2]) {
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
                     k1 ^ 0x7465646279746573};
    uint64_t word, last = (uint64_t)count << 56;
    size_t whole = count / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, bytes + i, 8);
        v[3] ^= word; rounds(v, 2); v[0] ^= word;
    }
    for (size_t i = whole; i < count; i++) last |= (uint64_t)bytes[i] << 8 * (i - whole);
    v[3] ^= last; rounds(v, 2); v[0] ^= last;
    v[2] ^= 0xee; rounds(v, 4); out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd; rounds(v, 4); out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void stamp(uint8_t *bytes, size_t count) {
    uint32_t sum = ~0u;
    for (size_t i = 0; i < count; i++) sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 255];
    sum = ~sum;
    memcpy(bytes + count, &sum, 4);
}

static void make_folder(const char *path) {
    if (mkdir(path, 0700) != 0 && errno != EEXIST) fail(path);
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "usage: stored_files FOLDER TEMPLATE COUNT\n"); return 2; }
    long count = atol(argv[3]);
    char path[4096];
    uint8_t secret[16];
    static uint8_t file[1 << 20];

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0x82f63b78 : value >> 1;
        table[i] = value;
    }
    snprintf(path, sizeof path, "%s/secret", argv[1]);
    int in = open(path, O_RDONLY);
    if (in < 0 || read(in, secret, 16) != 16) fail(path);
    close(in);
    memcpy(&k0, secret, 8);
    memcpy(&k1, secret + 8, 8);

    in = open(argv[2], O_RDONLY);
    ssize_t size = in < 0 ? -1 : read(in, file, sizeof file);
    if (size < BODY + KEY) fail(argv[2]);
    close(in);
    uint64_t length, number;
    memcpy(&length, file + 24, 8);
    memcpy(&number, file + 16, 8);
    uint8_t *record = file + BODY + length;
    size_t recordSize = (size_t)(file + size - record);
    uint32_t keySize;
    memcpy(&keySize, record + 40, 4);
    uint8_t *key = record + KEY, *digits = key + keySize - 7;
    if (memcmp(digits, "0000000", 7) != 0) { fprintf(stderr, "stored_files: the URL does not end in /0000000\n"); return 1; }

    for (long i = 1; i <= count; i++) {
        char text[8];
        uint64_t name[2];
        snprintf(text, sizeof text, "%07ld", i % 10000000);
        memcpy(digits, text, 7);
        number++;
        memcpy(file + 16, &number, 8);
        memcpy(record + 16, &number, 8);
        stamp(file, PREAMBLE - 4);
        stamp(record, recordSize - 12);
        digest(key, keySize, name);
        char hex[33];
        snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)name[0], (unsigned long long)name[1]);
        snprintf(path, sizeof path, "%s/objects/%.2s/%.2s/%s", argv[1], hex, hex + 2, hex);
        int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out < 0) {
            snprintf(path, sizeof path, "%s/objects/%.2s", argv[1], hex);
            make_folder(path);
            snprintf(path, sizeof path, "%s/objects/%.2s/%.2s", argv[1], hex, hex + 2);
            make_folder(path);
            snprintf(path, sizeof path, "%s/objects/%.2s/%.2s/%s", argv[1], hex, hex + 2, hex);
            out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            if (out < 0) fail(path);
        }
        ssize_t rest = size - BODY;
        if (pwrite(out, file, PREAMBLE, 0) != PREAMBLE || pwrite(out, file + BODY, (size_t)rest, BODY) != rest) fail(path);
        close(out);
    }
    return 0;
}
