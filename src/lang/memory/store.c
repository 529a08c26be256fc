/* SPDX-License-Identifier: MIT */
#include "memory/store.h"

#include <stdlib.h>

#include "base/path.h"
#include "format/ndf_append.h"

/* Header of a frame's data. The vectors begin at offset 64; the ends of the texts follow, then the texts. */
struct head {
    char magic[4];
    uint32_t version, n_bits, encoder;
    uint64_t n_records, text_bytes;
    uint8_t reserved[32];
};
_Static_assert(sizeof(struct head) == 64, "vectors begin at a cache line");

static const char magic[4] = "VSA1";
enum { VERSION = 1, ENCODER = 1, VECTOR_BYTES = WHIT_MEMORY_WORDS * 8 };
#define FRAME_NAME "memory"

/* Describes the records of one frame, which are used in place. */
struct part {
    uint64_t first, n; /* number of records in earlier parts, number of records in this part */
    const uint64_t *vectors, *ends;
    const char *texts;
};

struct whit_memory {
    whit_ndf *ndf;
    struct part *parts;
    uint32_t n_parts;
    uint64_t n_records, text_bytes;
    const whit_allocator *allocator;
};

static whit_status open_part(const whit_ndf *ndf, uint32_t i, const whit_ndf_appended *frame, struct part *part,
                             uint64_t *text_bytes, whit_error *error)
{
    struct head head;
    const char *path = whit_ndf_path(ndf);
    if (frame->size_bytes < sizeof head)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: frame %u is too short for a memory: the file is damaged; import its texts again", path,
                         i);
    memcpy(&head, frame->data, sizeof head);
    if (memcmp(head.magic, magic, 4) != 0 || head.version != VERSION || head.n_bits != WHIT_MEMORY_BITS ||
        head.encoder != ENCODER)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: frame %u: the memory was written by another version of whit: import its texts again",
                         path, i);
    if (head.n_records == 0 || head.n_records > frame->size_bytes / VECTOR_BYTES ||
        head.text_bytes > frame->size_bytes ||
        frame->size_bytes != sizeof head + head.n_records * (VECTOR_BYTES + 8) + head.text_bytes)
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: frame %u: its length does not fit its records: the file is damaged; import its texts again", path, i);
    part->n = head.n_records;
    part->vectors = (const uint64_t *)(const void *)(frame->data + sizeof head);
    part->ends = part->vectors + head.n_records * WHIT_MEMORY_WORDS;
    part->texts = (const char *)(part->ends + head.n_records);
    for (uint64_t k = 0, before = 0; k < part->n; before = part->ends[k++])
        if (part->ends[k] < before || part->ends[k] > head.text_bytes)
            return whit_fail(
                error, WHIT_ERROR_FORMAT,
                "%s: frame %u: record %llu is outside the frame: the file is damaged; import its texts again", path, i,
                (unsigned long long)k);
    *text_bytes = head.text_bytes;
    return WHIT_OK;
}

static whit_status open_parts(whit_memory *memory, whit_error *error)
{
    uint32_t n = whit_ndf_n_appended(memory->ndf);
    memory->parts = whit_zalloc_array(memory->allocator, n, sizeof *memory->parts);
    if (n && !memory->parts) return whit_fail_memory(error, "a memory", n * sizeof *memory->parts);
    memory->n_parts = n;
    for (uint32_t i = 0; i < n; i++) {
        whit_ndf_appended frame;
        uint64_t text_bytes = 0;
        WHIT_TRY(whit_ndf_appended_at(memory->ndf, i, &frame, error));
        if (frame.type != WHIT_NDF_MEMORY)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not a memory (frame %u is %s)",
                             whit_ndf_path(memory->ndf), i, whit_ndf_frame_type_name(frame.type));
        struct part *part = &memory->parts[i];
        WHIT_TRY(open_part(memory->ndf, i, &frame, part, &text_bytes, error));
        part->first = memory->n_records;
        memory->n_records += part->n;
        memory->text_bytes += text_bytes;
    }
    return WHIT_OK;
}

whit_status whit_memory_open(const char *path, const whit_allocator *allocator, whit_memory **out, whit_error *error)
{
    whit_memory *memory = whit_zalloc(allocator, sizeof *memory);
    *out = NULL;
    if (!memory) return whit_fail_memory(error, "a memory", sizeof *memory);
    memory->allocator = allocator;
    whit_status status = whit_ndf_open_loose(path, allocator, &memory->ndf, error);
    if (status == WHIT_OK) status = open_parts(memory, error);
    if (status != WHIT_OK) {
        whit_memory_close(memory);
        return status;
    }
    *out = memory;
    return WHIT_OK;
}

void whit_memory_close(whit_memory *memory)
{
    if (!memory) return;
    whit_free(memory->allocator, memory->parts, memory->n_parts * sizeof *memory->parts);
    if (memory->ndf) whit_ndf_close(memory->ndf);
    whit_free(memory->allocator, memory, sizeof *memory);
}

void whit_memory_stats_of(const whit_memory *memory, whit_memory_stats *stats)
{
    *stats = (whit_memory_stats){.n_records = memory->n_records,
                                 .n_frames = memory->n_parts,
                                 .text_bytes = memory->text_bytes,
                                 .vector_bytes = memory->n_records * VECTOR_BYTES};
    whit_ndf_file(memory->ndf, 0, &stats->file_bytes);
}

/* Returns the part that contains record i. */
static const struct part *part_of(const whit_memory *memory, uint64_t i)
{
    uint32_t low = 0, high = memory->n_parts;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (memory->parts[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    return &memory->parts[low];
}

void whit_memory_at(const whit_memory *memory, uint64_t i, const char **text, size_t *n_bytes, const uint64_t **vector)
{
    const struct part *part = part_of(memory, i);
    uint64_t k = i - part->first, begin = k ? part->ends[k - 1] : 0;
    *text = part->texts + begin;
    *n_bytes = (size_t)(part->ends[k] - begin);
    *vector = part->vectors + k * WHIT_MEMORY_WORDS;
}

/* ---- search ----------------------------------------------------------------------------------- */

enum {
    BLOCK = 1024, /* number of records that a thread takes at a time */
    STREAMS = 4,  /* number of places in a block from which a thread reads in turn: reading from one place alone would
                   * stall at every page */
};

/* Holds the best hits of one worker, in a heap with the worst hit on top. */
struct best {
    whit_memory_hit *hits;
    uint32_t n;
};

struct search {
    const whit_memory *memory;
    const whit_quat_kernels *kernels;
    const uint64_t *query;
    uint32_t k;
    struct best *workers;
};

static bool worse(const whit_memory_hit *a, const whit_memory_hit *b)
{
    return a->distance != b->distance ? a->distance > b->distance : a->record > b->record;
}

static void sift_down(whit_memory_hit *hits, uint32_t n, uint32_t i)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n) return;
        if (child + 1 < n && worse(&hits[child + 1], &hits[child])) child++;
        if (!worse(&hits[child], &hits[i])) return;
        whit_memory_hit swapped = hits[i];
        hits[i] = hits[child];
        hits[child] = swapped;
        i = child;
    }
}

static void offer(struct best *best, uint32_t k, whit_memory_hit hit)
{
    if (best->n == k) {
        if (!worse(&best->hits[0], &hit)) return;
        best->hits[0] = hit;
        sift_down(best->hits, k, 0);
        return;
    }
    uint32_t i = best->n++;
    for (; i && worse(&hit, &best->hits[(i - 1) / 2]); i = (i - 1) / 2) best->hits[i] = best->hits[(i - 1) / 2];
    best->hits[i] = hit;
}

static void search_blocks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct search *s = context;
    struct best *best = &s->workers[worker];
    uint64_t i = (uint64_t)begin * BLOCK, last = (uint64_t)end * BLOCK;
    if (last > s->memory->n_records) last = s->memory->n_records;
    for (const struct part *part = part_of(s->memory, i); i < last; part++) {
        uint64_t stop = part->first + part->n < last ? part->first + part->n : last;
        uint64_t each = (stop - i) / STREAMS, shared = each * STREAMS;
        for (uint64_t k = 0; k < stop - i; k++) {
            uint64_t record = i + (k < shared ? k % STREAMS * each + k / STREAMS : k);
            const uint64_t *vector = part->vectors + (record - part->first) * WHIT_MEMORY_WORDS;
            uint32_t distance = (uint32_t)s->kernels->distance(vector, s->query, WHIT_MEMORY_WORDS);
            if (best->n < s->k || distance <= best->hits[0].distance)
                offer(best, s->k, (whit_memory_hit){record, distance});
        }
        i = stop;
    }
}

static int by_rank(const void *a, const void *b)
{
    if (worse(a, b)) return 1;
    return worse(b, a) ? -1 : 0;
}

whit_status whit_memory_search(const whit_memory *memory, const whit_quat_kernels *kernels, whit_pool *pool,
                               const uint64_t query[WHIT_MEMORY_WORDS], uint32_t k, whit_memory_hit *hits,
                               uint32_t *n_hits, whit_error *error)
{
    uint32_t n_workers = whit_pool_size(pool);
    uint64_t n_blocks = (memory->n_records + BLOCK - 1) / BLOCK;
    *n_hits = 0;
    if (!k || !n_blocks) return WHIT_OK;
    if (k > WHIT_MEMORY_MAX_HITS || n_blocks > UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT, "at most %d hits can be requested, and of at most 2^42 records",
                         WHIT_MEMORY_MAX_HITS);
    size_t n_all = (size_t)n_workers * k;
    struct best *workers = whit_zalloc_array(memory->allocator, n_workers, sizeof *workers);
    whit_memory_hit *all = whit_zalloc_array(memory->allocator, n_all, sizeof *all);
    bool ok = workers && all;
    if (ok) {
        for (uint32_t w = 0; w < n_workers; w++) workers[w].hits = all + (size_t)w * k;
        struct search search = {memory, kernels, query, k, workers};
        whit_pool_run(pool, search_blocks, &search, (uint32_t)n_blocks, 0);
        uint32_t n = 0;
        for (uint32_t w = 0; w < n_workers; w++) {
            memmove(all + n, workers[w].hits, workers[w].n * sizeof *all);
            n += workers[w].n;
        }
        qsort(all, n, sizeof *all, by_rank);
        *n_hits = n < k ? n : k;
        memcpy(hits, all, *n_hits * sizeof *hits);
    }
    whit_free(memory->allocator, workers, n_workers * sizeof *workers);
    whit_free(memory->allocator, all, n_all * sizeof *all);
    return ok ? WHIT_OK : whit_fail_memory(error, "a search", n_all * sizeof *all);
}

/* ---- writing ---------------------------------------------------------------------------------- */

whit_status whit_memory_batch_add(whit_memory_batch *batch, const uint64_t vector[WHIT_MEMORY_WORDS], const char *text,
                                  size_t n_bytes, whit_error *error)
{
    const uint64_t end = batch->texts.size_bytes + n_bytes;
    batch->vectors.allocator = batch->ends.allocator = batch->texts.allocator = batch->allocator;
    if (!whit_buf_reserve(&batch->texts, n_bytes) || !whit_buf_reserve(&batch->ends, sizeof end) ||
        !whit_buf_reserve(&batch->vectors, VECTOR_BYTES)) {
        batch->vectors.failed = batch->ends.failed = batch->texts.failed = false; /* no bytes were appended */
        return whit_fail_memory(error, "the records of the memory", batch->vectors.size_bytes);
    }
    whit_buf_append(&batch->texts, text, n_bytes);
    whit_buf_append(&batch->ends, &end, sizeof end);
    whit_buf_append(&batch->vectors, vector, VECTOR_BYTES);
    batch->n_records++;
    return WHIT_OK;
}

whit_status whit_memory_batch_commit(whit_memory_batch *batch, const char *path, whit_error *error)
{
    struct head head = {.version = VERSION,
                        .n_bits = WHIT_MEMORY_BITS,
                        .encoder = ENCODER,
                        .n_records = batch->n_records,
                        .text_bytes = batch->texts.size_bytes};
    whit_buf data = {.allocator = batch->allocator};
    if (!batch->n_records) return WHIT_OK;
    memcpy(head.magic, magic, 4);
    bool ok = whit_buf_append(&data, &head, sizeof head) &&
        whit_buf_append(&data, batch->vectors.data, batch->vectors.size_bytes) &&
        whit_buf_append(&data, batch->ends.data, batch->ends.size_bytes) &&
        whit_buf_append(&data, batch->texts.data, batch->texts.size_bytes);
    whit_status status = WHIT_OK;
    bool is_new = !whit_path_exists(path);
    if (!ok)
        status = whit_fail_memory(error, "the records of the memory", batch->vectors.size_bytes);
    else if (is_new) {
        status = whit_ndf_create_loose(path, WHIT_NDF_MEMORY, FRAME_NAME, data.data, data.size_bytes, batch->allocator,
                                       error);
        is_new = status == WHIT_OK || !whit_path_exists(path); /* if another writer has created the store in the
                                                                * meantime, it is used */
    }
    if (ok && !is_new) {
        whit_memory *memory; /* the store is opened first, because files of another kind must not be changed */
        status = whit_memory_open(path, batch->allocator, &memory, error);
        if (status == WHIT_OK) {
            whit_memory_close(memory);
            status =
                whit_ndf_append(path, WHIT_NDF_MEMORY, FRAME_NAME, data.data, data.size_bytes, batch->allocator, error);
        }
    }
    whit_buf_free(&data);
    if (status == WHIT_OK) {
        batch->n_records = 0;
        batch->vectors.size_bytes = batch->ends.size_bytes = batch->texts.size_bytes = 0;
    }
    return status;
}

void whit_memory_batch_free(whit_memory_batch *batch)
{
    whit_buf_free(&batch->vectors);
    whit_buf_free(&batch->ends);
    whit_buf_free(&batch->texts);
}
