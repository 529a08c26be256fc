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

/* Returns the first occurrence of a text in bytes, or NULL. */
static inline uint8_t *damage_find(uint8_t *bytes, size_t n, const void *text, size_t n_text)
{
    return n_text <= n ? memmem(bytes, n, text, n_text) : NULL;
}

/* Increments a digit, or decrements it if it is 9. */
static inline void damage_digit(uint8_t *digit)
{
    *digit = *digit == '9' ? '8' : (uint8_t)(*digit + 1);
}

/* Damages a tensor's entry in a safetensors header. Returns false if the header has no such tensor. */
static inline bool damage_safetensors(uint8_t *bytes, size_t n, const char *name, int how)
{
    static const char *const fields[N_DAMAGES] = {NULL, "\"shape\":[", "\"dtype\":\"", "\"data_offsets\":["};
    char text[256];
    snprintf(text, sizeof text, "\"%s\":{", name);
    uint8_t *at = damage_find(bytes, n, text, strlen(text));
    if (!at) return false;
    if (how == DAMAGE_NAME) {
        at[strlen(name)] ^= 1; /* the last letter of the name */
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

/* Returns the bytes after a length-prefixed name, which in GGUF files begins the entry of a key or tensor; NULL if
 * there is no such name. */
static inline uint8_t *damage_find_gguf(uint8_t *bytes, size_t n, const char *name)
{
    uint8_t text[8 + 128] = {0};
    const uint64_t length = strlen(name);
    memcpy(text, &length, 8);
    memcpy(text + 8, name, length);
    uint8_t *at = damage_find(bytes, n, text, 8 + length);
    return at ? at + 8 + length : NULL;
}

/* Damages a tensor's entry in a GGUF header. Returns false if the file has no such tensor. */
static inline bool damage_gguf(uint8_t *bytes, size_t n, const char *name, int how)
{
    const uint64_t far_away = (uint64_t)1 << 40;
    uint32_t n_dims;
    uint8_t *at = damage_find_gguf(bytes, n, name);
    if (!at) return false;
    memcpy(&n_dims, at, 4);
    uint8_t *type = at + 4 + 8 * (size_t)n_dims;
    if (how == DAMAGE_NAME) at[-1] ^= 1;
    if (how == DAMAGE_SHAPE) at[4]++; /* the lowest byte of the first dimension */
    if (how == DAMAGE_TYPE) *type = 250;
    if (how == DAMAGE_PLACE) memcpy(type + 4, &far_away, 8);
    return true;
}

#endif
