/* SPDX-License-Identifier: MIT */
#include "memory/encode.h"

enum { WORDS = WHIT_MEMORY_WORDS, PLACES = 3 };
#define LETTERS_BYTES ((size_t)PLACES * 256 * WORDS * sizeof(uint64_t))

/* Returns the seed of the hypervector with this kind and number. Both are multiplied by constants, so that consecutive
 * numbers get seeds that differ in many bits. */
static uint64_t seed(uint64_t kind, uint64_t number)
{
    return (kind * 0x9E3779B97F4A7C15u) ^ (number * 0xD6E8FEB86659FD93u);
}

enum { KIND_LETTER = 1, KIND_TIES = 2, KIND_ROLE = 3, KIND_VALUE = 4 };

whit_status whit_encoder_open(const whit_allocator *allocator, whit_encoder *encoder, whit_error *error)
{
    *encoder = (whit_encoder){.allocator = allocator};
    encoder->letters = whit_alloc(allocator, LETTERS_BYTES);
    if (!encoder->letters) return whit_fail_memory(error, "an encoder", LETTERS_BYTES);
    whit_status status = whit_hyper_bundle_open(WORDS, allocator, &encoder->bundle, error);
    if (status != WHIT_OK) {
        whit_encoder_close(encoder);
        return status;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint64_t *letter = encoder->letters + (size_t)byte * WORDS;
        whit_hyper_random(seed(KIND_LETTER, byte), letter, WORDS);
        for (uint32_t place = 1; place < PLACES; place++)
            whit_hyper_permute(letter + (size_t)place * 256 * WORDS, letter, place, WORDS);
    }
    whit_hyper_random(seed(KIND_TIES, 0), encoder->ties, WORDS);
    return WHIT_OK;
}

void whit_encoder_close(whit_encoder *encoder)
{
    whit_free(encoder->allocator, encoder->letters, LETTERS_BYTES);
    if (encoder->bundle.planes) whit_hyper_bundle_close(&encoder->bundle);
    encoder->letters = NULL;
}

static const uint64_t *letter(const whit_encoder *encoder, uint32_t place, uint8_t byte)
{
    return encoder->letters + ((size_t)place * 256 + byte) * WORDS;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

whit_status whit_encode_text(whit_encoder *encoder, const char *text, size_t n_bytes, uint64_t out[WORDS],
                             whit_error *error)
{
    uint8_t window[PLACES] = {' ', ' ', ' '};
    uint64_t trigram[WORDS];
    uint32_t n = 1; /* number of bytes in the window; the blank before the text is the first */
    bool blank = true;
    if (n_bytes > WHIT_MEMORY_MAX_TEXT)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the text has %zu bytes, but at most %d are possible: split it",
                         n_bytes, WHIT_MEMORY_MAX_TEXT);
    whit_hyper_bundle_clear(&encoder->bundle);
    for (size_t i = 0; i <= n_bytes; i++) {
        uint8_t byte = i < n_bytes ? (uint8_t)text[i] : ' ';
        if (byte >= 'A' && byte <= 'Z') byte |= 32;
        if (is_blank(byte)) byte = ' ';
        if (byte == ' ' && blank) continue;
        blank = byte == ' ';
        window[0] = window[1];
        window[1] = window[2];
        window[2] = byte;
        if (++n < PLACES) continue;
        const uint64_t *a = letter(encoder, 0, window[0]), *b = letter(encoder, 1, window[1]);
        const uint64_t *c = letter(encoder, 2, window[2]);
        for (uint32_t w = 0; w < WORDS; w++) trigram[w] = a[w] ^ b[w] ^ c[w];
        (void)whit_hyper_bundle_add(&encoder->bundle, trigram); /* cannot fail, because the text's length is limited */
    }
    whit_hyper_bundle_majority(&encoder->bundle, encoder->ties, out);
    return WHIT_OK;
}

/* Returns the 64-bit FNV-1a hash of a text. */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *text; text++) h = (h ^ (uint8_t)*text) * 0x100000001B3u;
    return h;
}

void whit_encode_triple(whit_encoder *encoder, const char *const parts[3], uint64_t out[WORDS])
{
    uint64_t role[WORDS], value[WORDS];
    whit_hyper_bundle_clear(&encoder->bundle);
    for (uint32_t i = 0; i < 3; i++) {
        if (!parts[i]) continue;
        whit_hyper_random(seed(KIND_ROLE, i), role, WORDS);
        whit_hyper_random(seed(KIND_VALUE, hash(parts[i])), value, WORDS);
        whit_hyper_bind(value, value, role, WORDS);
        (void)whit_hyper_bundle_add(&encoder->bundle, value);
    }
    whit_hyper_bundle_majority(&encoder->bundle, encoder->ties, out);
}
