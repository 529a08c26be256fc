/* SPDX-License-Identifier: MIT
 * Damages one tensor's entry in the bytes of a safetensors or GGUF file: its name, shape, type or place. */
#ifndef WHIT_TESTS_DAMAGE_TENSORS_H
#define WHIT_TESTS_DAMAGE_TENSORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DAMAGE_NAME, DAMAGE_SHAPE, DAMAGE_TYPE, DAMAGE_PLACE, N_DAMAGES };
static const char *const damage_names[N_DAMAGES] = {"name", "shape", "type", "place"};

/* The first place of a text in bytes; NULL if it is absent. */
static inline uint8_t *damage_find(uint8_t *bytes, size_t n, const void *text, size_t n_text)
{
    return n_text <= n ? memmem(bytes, n, text, n_text) : NULL;
}

/* Raises a digit, or lowers a 9. */
static inline void damage_digit(uint8_t *digit)
{
    *digit = *digit == '9' ? '8' : (uint8_t)(*digit + 1);
}

/* False if the header has no such tensor. */
static inline bool damage_safetensors(uint8_t *bytes, size_t n, const char *name, int how)
{
    static const char *const fields[N_DAMAGES] = {NULL, "\"shape\":[", "\"dtype\":\"", "\"data_offsets\":["};
    char text[256];
    snprintf(text, sizeof text, "\"%s\":{", name);
    uint8_t *at = damage_find(bytes, n, text, strlen(text));
    if (!at) return false;
    if (how == DAMAGE_NAME) {
        at[strlen(name)] ^= 1; /* its last letter */
        return true;
    }
    at = damage_find(at, n - (size_t)(at - bytes), fields[how], strlen(fields[how]));
    if (!at) return false;
    at += strlen(fields[how]);
    if (how == DAMAGE_SHAPE)
        while (at[1] != ']') at++;
    if (how == DAMAGE_TYPE)
        *at = 'X';
    else
        damage_digit(at);
    return true;
}

/* The bytes after a length and a name, as GGUF files have them of keys and tensors; NULL if there are none. */
static inline uint8_t *damage_find_gguf(uint8_t *bytes, size_t n, const char *name)
{
    uint8_t text[8 + 128] = {0};
    const uint64_t length = strlen(name);
    memcpy(text, &length, 8);
    memcpy(text + 8, name, length);
    uint8_t *at = damage_find(bytes, n, text, 8 + length);
    return at ? at + 8 + length : NULL;
}

/* False if the file has no such tensor. */
static inline bool damage_gguf(uint8_t *bytes, size_t n, const char *name, int how)
{
    const uint64_t far_away = (uint64_t)1 << 40;
    uint32_t n_dims;
    uint8_t *at = damage_find_gguf(bytes, n, name);
    if (!at) return false;
    memcpy(&n_dims, at, 4);
    uint8_t *type = at + 4 + 8 * (size_t)n_dims;
    if (how == DAMAGE_NAME) at[-1] ^= 1;
    if (how == DAMAGE_SHAPE) at[4]++; /* the lowest byte of its first dimension */
    if (how == DAMAGE_TYPE) *type = 250;
    if (how == DAMAGE_PLACE) memcpy(type + 4, &far_away, 8);
    return true;
}

#endif
