/* SPDX-License-Identifier: MIT
 * Stores an associative memory in a file: each frame of type MEMORY contains the records of one commit
 * (docs/dev/format.md). Committed records are read in place and never change. If the program is killed while it writes,
 * at most the current batch is lost. */
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

/* Gives record i < n_records: its text, which is not terminated, and its hypervector; both point into the file. */
void whit_memory_at(const whit_memory *memory, uint64_t i, const char **text, size_t *n_bytes, const uint64_t **vector);

typedef struct whit_memory_hit {
    uint64_t record;
    uint32_t distance; /* number of bits in which the record differs from the query */
} whit_memory_hit;
#define WHIT_MEMORY_MAX_HITS 1000

/* Finds the k records nearest to the query, nearest first; at equal distance, older records first. k is at most
 * WHIT_MEMORY_MAX_HITS; a larger one is WHIT_ERROR_LIMIT. *n_hits is the number of hits: k, or less if the store has
 * fewer records. Every record is compared; the threads of the pool share the work. */
whit_status whit_memory_search(const whit_memory *memory, const whit_quat_kernels *kernels, whit_pool *pool,
                               const uint64_t query[WHIT_MEMORY_WORDS], uint32_t k, whit_memory_hit *hits,
                               uint32_t *n_hits, whit_error *error);

/* ---- writing ---------------------------------------------------------------------------------- */

/* Collects the records of one commit. Before its first use it must be zeroed except for the allocator. After a failure
 * of whit_memory_batch_add() it has the same records as before. */
typedef struct whit_memory_batch {
    whit_buf vectors, ends, texts; /* ends: (n_records) u64, the end of each text within `texts` */
    uint64_t n_records;
    const whit_allocator *allocator;
} whit_memory_batch;
whit_status whit_memory_batch_add(whit_memory_batch *batch, const uint64_t vector[WHIT_MEMORY_WORDS], const char *text,
                                  size_t n_bytes, whit_error *error);
/* Appends the batch to the store at `path`, which is created if it is absent; an empty batch changes nothing. A file
 * that is not a memory is refused, unchanged. On success the batch is empty afterwards. */
whit_status whit_memory_batch_commit(whit_memory_batch *batch, const char *path, whit_error *error);
void whit_memory_batch_free(whit_memory_batch *batch);

#endif
