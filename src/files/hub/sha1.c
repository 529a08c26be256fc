/* SPDX-License-Identifier: MIT */
#include "hub/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void take_block(whit_sha1 *sha1, const uint8_t *block)
{
    uint32_t w[80];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
            block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = sha1->state[0], b = sha1->state[1], c = sha1->state[2], d = sha1->state[3], e = sha1->state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t f;
        if (i < 20)
            f = (b & c) | (~b & d);
        else if (i >= 40 && i < 60)
            f = (b & c) | (b & d) | (c & d);
        else
            f = b ^ c ^ d;
        static const uint32_t k[] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
        uint32_t next = rotate(a, 5) + f + e + k[i / 20] + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    sha1->state[0] += a;
    sha1->state[1] += b;
    sha1->state[2] += c;
    sha1->state[3] += d;
    sha1->state[4] += e;
}

void whit_sha1_begin(whit_sha1 *sha1)
{
    *sha1 = (whit_sha1){.state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}};
}

void whit_sha1_add(whit_sha1 *sha1, const void *data, size_t size_bytes)
{
    const uint8_t *bytes = data;
    while (size_bytes) {
        size_t held = sha1->n_bytes % 64, n = 64 - held;
        if (n > size_bytes) n = size_bytes;
        memcpy(sha1->block + held, bytes, n);
        sha1->n_bytes += n;
        bytes += n;
        size_bytes -= n;
        if (sha1->n_bytes % 64 == 0) take_block(sha1, sha1->block);
    }
}

void whit_sha1_end(whit_sha1 *sha1, uint8_t digest[WHIT_SHA1_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t n_bits = 8 * sha1->n_bytes;
    size_t held = sha1->n_bytes % 64;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    whit_sha1_add(sha1, padding, held < 56 ? 56 - held : 120 - held);
    whit_sha1_add(sha1, length, sizeof length);
    for (int i = 0; i < WHIT_SHA1_BYTES; i++) digest[i] = (uint8_t)(sha1->state[i / 4] >> (24 - 8 * (i % 4)));
}
