/* SPDX-License-Identifier: MIT
 * Makes a sketch of a text: a few kilobytes that later show how much of another text occurred in it.
 *
 * A shingle is SHINGLE_BYTES consecutive bytes, with each run of white space as one space. The sketch holds the
 * smallest hashes of the text's shingles (bottom-k MinHash; Broder 1997). The shingles of another text whose hashes are
 * within the sketch's range are a random sample of that text's shingles. The share of this sample whose hashes are in
 * the sketch estimates the share of the other text's bytes that are in common passages of at least SHINGLE_BYTES.
 *
 *     begin -> add texts -> finish -> bytes for a file;   open the bytes -> overlap */
#ifndef WHIT_BASE_SKETCH_H
#define WHIT_BASE_SKETCH_H

#include "base/mem.h"

enum { WHIT_SKETCH_SHINGLE_BYTES = 48, WHIT_SKETCH_HASHES_MAX = 512 };

/* The value of the metadata key WHIT_SKETCH_KEY consists of hashes in rising order as little-endian u64. */
#define WHIT_SKETCH_KEY "provenance.text_sketch"

/* A zero-initialised sketch is empty. Its size is fixed, so it needs no allocation. */
typedef struct whit_sketch {
    uint64_t hashes[2 * WHIT_SKETCH_HASHES_MAX]; /* the smallest hashes at the last sorting, and hashes added since */
    size_t n;
    bool is_full;   /* at least WHIT_SKETCH_HASHES_MAX hashes were found; those above `limit` are left out */
    uint64_t limit; /* if is_full: the largest hash of the sketch */
} whit_sketch;

/* Adds the shingles of a text. */
void whit_sketch_add(whit_sketch *sketch, const void *text, size_t n_bytes);
/* Adds the shingles of a file. An empty file is an error. */
whit_status whit_sketch_add_file(whit_sketch *sketch, const char *path, whit_error *error);
/* Sorts the hashes. Call it after the last text. */
void whit_sketch_finish(whit_sketch *sketch);
/* Adds the hashes of another finished sketch, and finishes the result: the sketch of both texts. */
void whit_sketch_join(whit_sketch *sketch, const whit_sketch *other);
/* Writes the n hashes of a finished sketch, 8 n bytes; returns 8 n. `out` has room for 8 WHIT_SKETCH_HASHES_MAX. */
size_t whit_sketch_write(const whit_sketch *sketch, uint8_t *out);
/* Reads the value written by whit_sketch_write. The result is false if its size is wrong, or its hashes are not
 * ascending. */
bool whit_sketch_read(whit_sketch *sketch, const uint8_t *data, size_t n_bytes);

typedef struct whit_sketch_overlap {
    uint64_t n_seen, n_common; /* number of the text's shingles with hashes up to the sketch's limit (all if it is not
                                * full); number of these whose hashes are in the sketch */
} whit_sketch_overlap;
/* Compares the shingles of a text with a finished sketch. */
whit_sketch_overlap whit_sketch_compare(const whit_sketch *sketch, const void *text, size_t n_bytes);

#endif
