// Hit ratios of eviction orders on synthetic request streams: what the memory tier's choice rests on.
//
// One object is one unit of room. Every order sees the same requests: Zipf popularity, Zipf with scans of objects that are
// asked for once, and Zipf whose popular objects change. Built and run by Benchmarks/eviction.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

// MARK: - Requests

static uint64_t random_state = 42;

static uint64_t random_bits(void) {
    // splitmix64
    uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static double random_unit(void) { return (double)(random_bits() >> 11) / 9007199254740992.0; }

typedef struct {
    int count;
    double *share;
    int *other;
} alias_table;

// Walker's alias method: one draw in constant time.
static alias_table zipf(int count, double skew) {
    alias_table table = {count, malloc(sizeof(double) * (size_t)count), malloc(sizeof(int) * (size_t)count)};
    double *weight = malloc(sizeof(double) * (size_t)count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += weight[i] = 1.0 / pow(i + 1, skew);
    int *small = malloc(sizeof(int) * (size_t)count), *large = malloc(sizeof(int) * (size_t)count);
    int small_count = 0, large_count = 0;
    for (int i = 0; i < count; i++) {
        weight[i] *= count / sum;
        if (weight[i] < 1) small[small_count++] = i;
        else large[large_count++] = i;
    }
    while (small_count && large_count) {
        int low = small[--small_count], high = large[--large_count];
        table.share[low] = weight[low];
        table.other[low] = high;
        weight[high] += weight[low] - 1;
        if (weight[high] < 1) small[small_count++] = high;
        else large[large_count++] = high;
    }
    while (large_count) table.share[large[--large_count]] = 1;
    while (small_count) table.share[small[--small_count]] = 1;
    free(weight);
    free(small);
    free(large);
    return table;
}

static int draw(const alias_table *table) {
    int i = (int)(random_bits() % (uint64_t)table->count);
    return random_unit() < table->share[i] ? i : table->other[i];
}

// MARK: - Lists

typedef struct {
    int *newer, *older;
    int newest, oldest, count;
} list;

static list make_list(int universe) {
    list l = {malloc(sizeof(int) * (size_t)universe), malloc(sizeof(int) * (size_t)universe), NONE, NONE, 0};
    return l;
}

static void free_list(list *l) {
    free(l->newer);
    free(l->older);
}

static void push(list *l, int id) {
    l->newer[id] = NONE;
    l->older[id] = l->newest;
    if (l->newest == NONE) l->oldest = id;
    else l->newer[l->newest] = id;
    l->newest = id;
    l->count++;
}

static void unlink_one(list *l, int id) {
    if (l->newer[id] == NONE) l->newest = l->older[id];
    else l->older[l->newer[id]] = l->older[id];
    if (l->older[id] == NONE) l->oldest = l->newer[id];
    else l->newer[l->older[id]] = l->newer[id];
    l->count--;
}

// MARK: - Orders: each answers how many of the requests were hits, those before `warm` not counted

typedef long (*order)(const int *requests, int count, int warm, int universe, int room);

static long lru(const int *requests, int count, int warm, int universe, int room) {
    list held = make_list(universe);
    char *is_held = calloc((size_t)universe, 1);
    long hits = 0;
    for (int i = 0; i < count; i++) {
        int id = requests[i];
        if (is_held[id]) {
            hits += i >= warm;
            unlink_one(&held, id);
        } else {
            if (held.count == room) {
                int victim = held.oldest;
                unlink_one(&held, victim);
                is_held[victim] = 0;
            }
            is_held[id] = 1;
        }
        push(&held, id);
    }
    free_list(&held);
    free(is_held);
    return hits;
}

static long sieve(const int *requests, int count, int warm, int universe, int room) {
    list held = make_list(universe);
    char *is_held = calloc((size_t)universe, 1), *visited = calloc((size_t)universe, 1);
    int hand = NONE;
    long hits = 0;
    for (int i = 0; i < count; i++) {
        int id = requests[i];
        if (is_held[id]) {
            hits += i >= warm;
            visited[id] = 1;
            continue;
        }
        if (held.count == room) {
            int victim = hand == NONE ? held.oldest : hand;
            while (visited[victim]) {
                visited[victim] = 0;
                victim = held.newer[victim] == NONE ? held.oldest : held.newer[victim];
            }
            hand = held.newer[victim];
            unlink_one(&held, victim);
            is_held[victim] = 0;
        }
        is_held[id] = 1;
        visited[id] = 0;
        push(&held, id);
    }
    free_list(&held);
    free(is_held);
    free(visited);
    return hits;
}

// S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth, a main queue with counters to 3, a ghost queue as long as main.
// `needed` uses in the small queue move an object on.
static long s3fifo_with(int needed, const int *requests, int count, int warm, int universe, int room) {
    list small = make_list(universe), main_queue = make_list(universe), ghost = make_list(universe);
    enum { ABSENT, SMALL, MAIN, GHOST };
    char *where = calloc((size_t)universe, 1), *uses = calloc((size_t)universe, 1);
    int small_room = room / 10 ? room / 10 : 1, main_room = room - small_room;
    long hits = 0;
    for (int i = 0; i < count; i++) {
        int id = requests[i];
        if (where[id] == SMALL || where[id] == MAIN) {
            hits += i >= warm;
            if (uses[id] < 3) uses[id]++;
            continue;
        }
        while (small.count + main_queue.count >= room) {
            if (small.count >= small_room) {
                int victim = small.oldest;
                unlink_one(&small, victim);
                if (uses[victim] >= needed) {
                    where[victim] = MAIN;
                    uses[victim] = 0;
                    push(&main_queue, victim);
                } else {
                    where[victim] = GHOST;
                    push(&ghost, victim);
                    if (ghost.count > main_room) {
                        int gone = ghost.oldest;
                        unlink_one(&ghost, gone);
                        where[gone] = ABSENT;
                    }
                }
            }
            if (small.count + main_queue.count < room) break;
            if (main_queue.count > main_room || small.count < small_room) {
                int victim = main_queue.oldest;
                while (uses[victim] > 0) {
                    uses[victim]--;
                    unlink_one(&main_queue, victim);
                    push(&main_queue, victim);
                    victim = main_queue.oldest;
                }
                unlink_one(&main_queue, victim);
                where[victim] = ABSENT;
            }
        }
        int was_ghost = where[id] == GHOST;
        if (was_ghost) unlink_one(&ghost, id);
        uses[id] = 0;
        where[id] = was_ghost ? MAIN : SMALL;
        push(was_ghost ? &main_queue : &small, id);
    }
    free_list(&small);
    free_list(&main_queue);
    free_list(&ghost);
    free(where);
    free(uses);
    return hits;
}

// As published, and as the memory tier has it.
static long s3fifo(const int *requests, int count, int warm, int universe, int room) {
    return s3fifo_with(2, requests, count, warm, universe, room);
}

// As the disk tier and the library's cache have it.
static long s3fifo_one(const int *requests, int count, int warm, int universe, int room) {
    return s3fifo_with(1, requests, count, warm, universe, room);
}

// SIEVE behind a small queue: what is not asked for again within a tenth of the room never reaches the sieve; a ghost queue
// remembers what was turned away, so that its next request is let in at once.
static long guarded(const int *requests, int count, int warm, int universe, int room) {
    list small = make_list(universe), held = make_list(universe), ghost = make_list(universe);
    enum { ABSENT, SMALL, HELD, GHOST };
    char *where = calloc((size_t)universe, 1), *visited = calloc((size_t)universe, 1);
    int small_room = room / 10 ? room / 10 : 1, hand = NONE;
    long hits = 0;
    for (int i = 0; i < count; i++) {
        int id = requests[i];
        if (where[id] == SMALL || where[id] == HELD) {
            hits += i >= warm;
            visited[id] = 1;
            continue;
        }
        while (small.count + held.count >= room) {
            if (small.count >= small_room || held.count == 0) {
                int victim = small.oldest;
                unlink_one(&small, victim);
                if (visited[victim]) {
                    visited[victim] = 0;
                    where[victim] = HELD;
                    push(&held, victim);
                    continue;
                }
                where[victim] = GHOST;
                push(&ghost, victim);
                if (ghost.count > room) {
                    int gone = ghost.oldest;
                    unlink_one(&ghost, gone);
                    where[gone] = ABSENT;
                }
            } else {
                int victim = hand == NONE ? held.oldest : hand;
                while (visited[victim]) {
                    visited[victim] = 0;
                    victim = held.newer[victim] == NONE ? held.oldest : held.newer[victim];
                }
                hand = held.newer[victim];
                unlink_one(&held, victim);
                where[victim] = ABSENT;
            }
        }
        int was_ghost = where[id] == GHOST;
        if (was_ghost) unlink_one(&ghost, id);
        visited[id] = 0;
        where[id] = was_ghost ? HELD : SMALL;
        push(was_ghost ? &held : &small, id);
    }
    free_list(&small);
    free_list(&held);
    free_list(&ghost);
    free(where);
    free(visited);
    return hits;
}

// MARK: - Streams

enum { OBJECTS = 100000, REQUESTS = 6000000, WARM = 1000000 };

typedef struct {
    const char *name;
    double skew;
    // Of the requests, how many belong to scans; a scan is as long as a fifth of the objects.
    double scans;
    // Requests after which a tenth of the ranks belongs to other objects; 0 is never.
    int shift;
} stream;

static const stream streams[] = {
    {"Zipf 0.8", 0.8, 0, 0},
    {"Zipf 1.0", 1.0, 0, 0},
    {"Zipf 0.8, a fifth of it scans", 0.8, 0.2, 0},
    {"Zipf 1.0, a fifth of it scans", 1.0, 0.2, 0},
    {"Zipf 0.8, popularity shifts", 0.8, 0, 200000},
    {"Zipf 1.0, popularity shifts", 1.0, 0, 200000},
};

static int make_requests(const stream *s, int *requests) {
    alias_table table = zipf(OBJECTS, s->skew);
    int *object = malloc(sizeof(int) * OBJECTS);
    for (int i = 0; i < OBJECTS; i++) object[i] = i;
    int next = OBJECTS, scan_length = OBJECTS / 5, in_scan = 0;
    double pause = s->scans > 0 ? scan_length * (1 - s->scans) / s->scans : 0;
    long until_scan = (long)pause;
    for (int i = 0; i < REQUESTS; i++) {
        if (s->shift && i % s->shift == s->shift - 1) {
            for (int k = 0; k < OBJECTS / 10; k++) {
                int rank = k, other = (int)(random_bits() % OBJECTS), kept = object[rank];
                object[rank] = object[other];
                object[other] = kept;
            }
        }
        if (s->scans > 0 && !in_scan && until_scan-- <= 0) in_scan = scan_length;
        if (in_scan) {
            requests[i] = next++;
            if (--in_scan == 0) until_scan = (long)pause;
        } else {
            requests[i] = object[draw(&table)];
        }
    }
    free(table.share);
    free(table.other);
    free(object);
    return next;
}

int main(void) {
    static const struct {
        const char *name;
        order run;
    } orders[] = {
        {"LRU", lru},
        {"SIEVE", sieve},
        {"S3-FIFO", s3fifo},
        {"S3-FIFO, one use", s3fifo_one},
        {"guarded SIEVE", guarded},
    };
    static const int rooms[] = {OBJECTS / 100, OBJECTS / 10};
    int *requests = malloc(sizeof(int) * REQUESTS);
    printf("| requests | room |");
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) printf(" %s |", orders[o].name);
    printf("\n|---|---|");
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) printf("---|");
    printf("\n");
    for (size_t s = 0; s < sizeof streams / sizeof *streams; s++) {
        random_state = 42;
        int universe = make_requests(&streams[s], requests);
        for (size_t r = 0; r < 2; r++) {
            printf("| %s | %d %% |", streams[s].name, rooms[r] * 100 / OBJECTS);
            for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
                long hits = orders[o].run(requests, REQUESTS, WARM, universe, rooms[r]);
                printf(" %.1f %% |", 100.0 * (double)hits / (REQUESTS - WARM));
                fflush(stdout);
            }
            printf("\n");
        }
    }
    free(requests);
    return 0;
}
