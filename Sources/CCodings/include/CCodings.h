// Decoders of the content codings gzip, deflate and br: only the room DownloadCore imports this module.
#ifndef DRYDOCK_CCODINGS_H
#define DRYDOCK_CCODINGS_H

// Not <zlib.h>: in an optimised build Swift would take this module for the owner of what that includes.
#include <sys/types.h>

enum { C_CODING_GZIP = 0, C_CODING_ZLIB = 1, C_CODING_RAW_DEFLATE = 2, C_CODING_BROTLI = 3 };

/// What a step came to.
enum {
    /// All bytes that were given are used up.
    C_CODING_HUNGRY = 0,
    /// There is no more room for what comes out.
    C_CODING_FULL = 1,
    /// The coding has ended.
    C_CODING_ENDED = 2,
    /// The bytes are not in this coding, or there is no memory.
    C_CODING_BROKEN = 3
};

/// NULL where there is no memory.
void *c_coding_make(int coding);

/// Decodes: takes from `in` and puts to `out`; both counts say what there is, and then what is left.
int c_coding_step(void *decoder, const unsigned char *in, size_t *in_left, unsigned char *out, size_t *out_left);

void c_coding_free(void *decoder);

#endif
