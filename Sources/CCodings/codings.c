// The decoders of zlib and brotli behind one function.
#include "CCodings.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <zlib.h>

struct decoder {
    int coding;
    z_stream stream;
    BrotliDecoderState *brotli;
};

static const int window_bits[] = {15 + 16, 15, -15};

void *c_coding_make(int coding) {
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return NULL;
    decoder->coding = coding;
    if (coding == C_CODING_BROTLI) {
        decoder->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
        if (decoder->brotli) return decoder;
    } else if (inflateInit2(&decoder->stream, window_bits[coding]) == Z_OK) {
        return decoder;
    }
    free(decoder);
    return NULL;
}

static int step_brotli(
    struct decoder *decoder, const unsigned char *in, size_t *in_left, unsigned char *out, size_t *out_left
) {
    const uint8_t *next_in = in;
    uint8_t *next_out = out;
    switch (BrotliDecoderDecompressStream(decoder->brotli, in_left, &next_in, out_left, &next_out, NULL)) {
    case BROTLI_DECODER_RESULT_SUCCESS: return C_CODING_ENDED;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return C_CODING_HUNGRY;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return C_CODING_FULL;
    default: return C_CODING_BROKEN;
    }
}

static int step_zlib(
    struct decoder *decoder, const unsigned char *in, size_t *in_left, unsigned char *out, size_t *out_left
) {
    z_stream *stream = &decoder->stream;
    // zlib only reads what `next_in` points at; its counts are narrower than ours.
    const uInt most = (uInt)1 << 30;
    uInt in_count = *in_left > most ? most : (uInt)*in_left;
    uInt out_count = *out_left > most ? most : (uInt)*out_left;
    stream->next_in = (Bytef *)in;
    stream->avail_in = in_count;
    stream->next_out = out;
    stream->avail_out = out_count;
    int result = inflate(stream, Z_NO_FLUSH);
    *in_left -= in_count - stream->avail_in;
    *out_left -= out_count - stream->avail_out;
    switch (result) {
    case Z_STREAM_END:
        // RFC 1952 section 2.2: members may follow one another. Without more bytes this one is the last.
        if (decoder->coding != C_CODING_GZIP || *in_left == 0) return C_CODING_ENDED;
        return inflateReset(stream) == Z_OK ? C_CODING_FULL : C_CODING_BROKEN;
    case Z_OK: return stream->avail_out == 0 ? C_CODING_FULL : C_CODING_HUNGRY;
    case Z_BUF_ERROR: return stream->avail_out == 0 ? C_CODING_FULL : stream->avail_in ? C_CODING_BROKEN : C_CODING_HUNGRY;
    default: return C_CODING_BROKEN;
    }
}

int c_coding_step(void *opaque, const unsigned char *in, size_t *in_left, unsigned char *out, size_t *out_left) {
    struct decoder *decoder = opaque;
    if (decoder->coding == C_CODING_BROTLI) return step_brotli(decoder, in, in_left, out, out_left);
    return step_zlib(decoder, in, in_left, out, out_left);
}

void c_coding_free(void *opaque) {
    struct decoder *decoder = opaque;
    if (!decoder) return;
    if (decoder->brotli) {
        BrotliDecoderDestroyInstance(decoder->brotli);
    } else {
        inflateEnd(&decoder->stream);
    }
    free(decoder);
}
