/* SPDX-License-Identifier: MIT
 * Stores an associative memory in a file: each frame of type MEMORY has some records and is committed with them
 * (docs/dev/format.md). Committed records are read in place and never change; a store that is killed while it is
 * written loses at most the current batch. */
#ifndef WHIT_MEMORY_STORE_H
#define WHIT_MEMORY_STORE_H

#include "base/threads.h"
#include "format/ndf.h"
#include "memory/encode.h"

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct whit_memory whit_memory;

whit_status whit_memory_open(const char *path, const whit_allocator *allocator, whit_memory **memory,
                             whit_error *error);
void whit_memory_close(whit_memory *memory);

typedef struct whit_memory_stats {
    uint64_t n_records, n_frames, text_bytes, vector_bytes, file_bytes;
} whit_memory_stats;
void whit_memory_stats_of(const whit_memory *memory, whit_memory_stats *stats);

/* Returns record i < n_records: its text (not terminated) and its hypervector, in place. */
void whit_memory_at(const whit_memory *memory, uint64_t i, const char **text, size_t *n_bytes, const uint64_t **vector);

typedef struct whit_memory_hit {
    uint64_t record;
    uint32_t distance; /* number of bits that differ */
} whit_memory_hit;
#define WHIT_MEMORY_MAX_HITS 1000

/* Finds the k nearest records of all, nearest first, older ones first among equals; *n_hits is their number (k or all).
 * Every record is compared; threads of the pool share the work. */
whit_status whit_memory_search(const whit_memory *memory, const whit_quat_kernels *kernels, whit_pool *pool,
                               const uint64_t query[WHIT_MEMORY_WORDS], uint32_t k, whit_memory_hit *hits,
                               uint32_t *n_hits, whit_error *error);

/* ---- writing ---------------------------------------------------------------------------------- */

/* Collects the records for one commit. Zero-initialise with the allocator set. */
typedef struct whit_memory_batch {
    whit_buf vectors, ends, texts; /* ends: u64, the end of each text in texts */
    uint64_t n_records;
    const whit_allocator *allocator;
} whit_memory_batch;
whit_status whit_memory_batch_add(whit_memory_batch *batch, const uint64_t vector[WHIT_MEMORY_WORDS], const char *text,
                                  size_t n_bytes, whit_error *error);
/* Appends the batch to the store at `path`, creating it if absent, and empties the batch. */
whit_status whit_memory_batch_commit(whit_memory_batch *batch, const char *path, whit_error *error);
void whit_memory_batch_free(whit_memory_batch *batch);

#endif
