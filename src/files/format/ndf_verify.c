/* SPDX-License-Identifier: MIT
 * Verifies a container: first all leaves are hashed in parallel, then one thread compares them and reports damage. */
#include "format/ndf_verify.h"

#include "base/items.h"
#include "base/threads.h"
#include "format/ndf_file.h"
#include "format/ndf_identity.h"

#include <inttypes.h>
#include <stdio.h>

/* A frame to be checked, and the index of its first leaf in the list of all leaves. */
typedef struct checked {
    const whit_ndf_file_view *file;
    uint32_t file_number, frame;
    uint64_t first_chunk, n_chunks;
} checked;

typedef struct work {
    const whit_ndf *ndf;
    checked *frames;
    uint32_t n_frames;
    uint64_t n_chunks;
    uint8_t *leaves; /* computed hashes (n_chunks, 32) */
    whit_ndf_damage_fn *on_damage;
    void *user;
    whit_ndf_verify_result result;
    char first[512]; /* description of the first damaged place */
} work;

static const whit_ndf_frame *frame_of(const checked *at)
{
    return whit_ndf_chain_at(&at->file->chain, at->frame);
}

static const uint8_t *bytes_of(const checked *at)
{
    return at->file->map.data + frame_of(at)->offset;
}

static void hash_chunks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const work *job = context;
    uint32_t low = 0, high = job->n_frames;
    while (high - low > 1) { /* find the last frame that starts at or before `begin` */
        uint32_t middle = low + (high - low) / 2;
        if (job->frames[middle].first_chunk <= begin)
            low = middle;
        else
            high = middle;
    }
    for (uint32_t i = begin; i < end; i++) {
        while (i >= job->frames[low].first_chunk + job->frames[low].n_chunks) low++;
        const checked *at = &job->frames[low];
        uint64_t offset = (i - at->first_chunk) * WHIT_NDF_CHUNK_BYTES;
        uint64_t rest = frame_of(at)->payload_bytes - offset;
        whit_ndf_leaf(bytes_of(at) + sizeof(whit_ndf_header) + offset,
                      rest < WHIT_NDF_CHUNK_BYTES ? rest : WHIT_NDF_CHUNK_BYTES,
                      job->leaves + (size_t)i * WHIT_HASH_BYTES);
    }
}

static void report_damage(work *job, const char *path, uint32_t frame, uint32_t type, uint64_t offset,
                          uint64_t size_bytes, const char *what)
{
    if (job->result.n_damaged++ == 0) {
        if (type)
            snprintf(job->first, sizeof job->first, "%s: frame %" PRIu32 " (%s), bytes %" PRIu64 " to %" PRIu64 ": %s",
                     path, frame, whit_ndf_frame_type_name(type), offset, offset + size_bytes - 1, what);
        else
            snprintf(job->first, sizeof job->first, "%s: bytes %" PRIu64 " to %" PRIu64 ": %s", path, offset,
                     offset + size_bytes - 1, what);
    }
    whit_ndf_damage damage = {path, frame, type, offset, size_bytes, what};
    if (job->on_damage) job->on_damage(job->user, &damage);
}

static void report_frame(work *job, const checked *at, uint64_t offset_in_frame, uint64_t size_bytes, const char *what)
{
    const whit_ndf_frame *frame = frame_of(at);
    report_damage(job, at->file->map.path, at->frame, frame->type, frame->offset + offset_in_frame, size_bytes, what);
}

/* Appends the names of the tensors that have bytes in [begin, end) of a file's DATA payload, such as "tensors 'a', 'b'
 * and 2 more". */
static void name_tensors(const whit_ndf *ndf, uint32_t file, uint64_t begin, uint64_t end, whit_buf *out)
{
    uint32_t low = 0, high = ndf->n_parts; /* find the first part that ends after `begin` */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const whit_ndf_part_entry *part = &ndf->parts[middle];
        if (part->file < file || (part->file == file && part->offset + part->size_bytes <= begin))
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t n_named = 0, n_more = 0, last = UINT32_MAX;
    for (; low < ndf->n_parts; low++) {
        const whit_ndf_part_entry *part = &ndf->parts[low];
        if (part->file != file || part->offset >= end) break;
        if (part->tensor == last) continue;
        last = part->tensor;
        if (n_named < 3)
            whit_buf_printf(out, "%s'%.80s'", n_named++ ? ", " : " tensors ", whit_ndf_tensor_name(ndf, last));
        else
            n_more++;
    }
    if (n_more) whit_buf_printf(out, " and %" PRIu32 " more", n_more);
    if (!n_named) whit_buf_append_str(out, " padding between tensors");
}

static void report_chunk(work *job, const checked *at, uint64_t chunk, bool leaf_known)
{
    uint64_t begin = chunk * WHIT_NDF_CHUNK_BYTES, end = begin + WHIT_NDF_CHUNK_BYTES;
    if (end > frame_of(at)->payload_bytes) end = frame_of(at)->payload_bytes;
    whit_buf what = {.allocator = job->ndf->allocator, .limit_bytes = 1024};
    whit_buf_printf(&what, "chunk %" PRIu64 "%s is damaged", chunk, leaf_known ? "" : " or its hash");
    if (frame_of(at)->type == WHIT_NDF_DATA) {
        whit_buf_append_str(&what, ":");
        name_tensors(job->ndf, at->file_number, begin, end, &what);
    }
    whit_buf_append(&what, "", 1);
    report_frame(job, at, sizeof(whit_ndf_header) + begin, end - begin,
                 what.failed ? "a chunk is damaged" : whit_chars(&what));
    whit_buf_free(&what);
}

static void check_zeros(work *job, const checked *at, uint64_t begin, uint64_t end)
{
    const uint8_t *bytes = bytes_of(at);
    for (uint64_t i = begin; i < end; i++)
        if (bytes[i]) {
            report_frame(job, at, begin, end - begin, "padding is not zero");
            return;
        }
}

static void check_frame(work *job, const checked *at)
{
    const whit_ndf_header *header = (const whit_ndf_header *)bytes_of(at);
    uint64_t payload_bytes = frame_of(at)->payload_bytes;
    uint64_t leaves_at = whit_ndf_leaves_offset(payload_bytes);
    const uint8_t *stored = bytes_of(at) + leaves_at;
    const uint8_t *computed = job->leaves + at->first_chunk * WHIT_HASH_BYTES;
    uint64_t leaves_bytes = at->n_chunks * WHIT_HASH_BYTES;
    uint8_t stored_root[WHIT_HASH_BYTES], computed_root[WHIT_HASH_BYTES];
    whit_ndf_root(stored, at->n_chunks, stored_root);
    whit_ndf_root(computed, at->n_chunks, computed_root);
    bool stored_right = memcmp(stored_root, header->root, WHIT_HASH_BYTES) == 0;
    bool payload_right = memcmp(computed_root, header->root, WHIT_HASH_BYTES) == 0;
    if (!payload_right)
        for (uint64_t i = 0; i < at->n_chunks; i++)
            if (memcmp(computed + i * WHIT_HASH_BYTES, stored + i * WHIT_HASH_BYTES, WHIT_HASH_BYTES) != 0)
                report_chunk(job, at, i, stored_right);
    check_zeros(job, at, sizeof *header + payload_bytes, leaves_at);
    if (!stored_right) report_frame(job, at, leaves_at, leaves_bytes, "the table of chunk hashes is damaged");
    check_zeros(job, at, leaves_at + leaves_bytes, whit_ndf_frame_bytes(payload_bytes));
    job->result.n_bytes += payload_bytes;
}

/* Checks that the seal, the tensors' digests and the identity agree with each other. Only called if all bytes agree
 * with their hashes. */
static void check_seal(work *job)
{
    const whit_ndf *ndf = job->ndf;
    const whit_ndf_seal *seal = ndf->seal;
    uint8_t config[WHIT_HASH_BYTES], tokenizer[WHIT_HASH_BYTES], identity[WHIT_HASH_BYTES];
    whit_ndf_config_digest(&ndf->config, config);
    whit_ndf_tokenizer_digest(ndf->tokenizer, ndf->tokenizer_bytes, tokenizer);
    whit_hash hash;
    whit_ndf_identity_begin(&hash, config, tokenizer, ndf->tensors.n_entries);
    for (uint32_t i = 0; i < ndf->tensors.n_entries; i++) {
        const whit_tensor_type *type = whit_ndf_tensor_type(ndf, i);
        whit_ndf_identity_add(&hash, whit_ndf_tensor_name(ndf, i), type->n_rows, type->n_cols,
                              whit_ndf_tensor_digest(ndf, i));
    }
    whit_hash_end(&hash, identity);
    const checked at = {.file = &ndf->files[0], .frame = ndf->n_base_frames - 2};
    const char *what = NULL;
    if (memcmp(config, seal->config, sizeof config) != 0)
        what = "the configuration differs from the sealed one";
    else if (memcmp(tokenizer, seal->tokenizer, sizeof tokenizer) != 0)
        what = "the tokenizer differs from the sealed one";
    else if (memcmp(identity, seal->identity, sizeof identity) != 0)
        what = "the identity differs from the model's";
    if (what) report_frame(job, &at, sizeof(whit_ndf_header), frame_of(&at)->payload_bytes, what);
}

static void check_appended(work *job)
{
    const whit_ndf *ndf = job->ndf;
    const whit_ndf_chain *chain = &ndf->files[0].chain;
    for (uint32_t i = ndf->n_base_frames; i < chain->n_frames; i++) {
        const checked at = {.file = &ndf->files[0], .frame = i};
        whit_ndf_appended appended;
        whit_error reason;
        if (frame_of(&at)->type == WHIT_NDF_COMMIT) continue;
        if (whit_ndf_read_appended(ndf, i, &appended, &reason) != WHIT_OK)
            report_frame(job, &at, sizeof(whit_ndf_header), frame_of(&at)->payload_bytes,
                         "its name or data location is wrong");
    }
}

static void check_tail(work *job)
{
    const whit_ndf_file_view *file = &job->ndf->files[0];
    uint64_t torn_bytes = whit_ndf_torn_bytes(job->ndf);
    if (torn_bytes == 0) return;
    char what[256];
    snprintf(what, sizeof what, "these bytes are not committed (an append was cut off, or is damaged): %s",
             file->chain.stop);
    report_damage(job, file->map.path, 0, 0, file->chain.end_bytes, torn_bytes, what);
}

static whit_status list_frames(work *job, whit_error *error)
{
    const whit_ndf *ndf = job->ndf;
    for (uint32_t f = 0; f < ndf->n_files; f++) job->n_frames += ndf->files[f].chain.n_frames;
    job->frames = whit_zalloc_array(ndf->allocator, job->n_frames, sizeof *job->frames);
    if (!job->frames) return whit_fail_memory(error, "a list of frames", job->n_frames * sizeof *job->frames);
    uint32_t n = 0;
    for (uint32_t f = 0; f < ndf->n_files; f++)
        for (uint32_t i = 0; i < ndf->files[f].chain.n_frames; i++) {
            checked *at = &job->frames[n++];
            *at = (checked){.file = &ndf->files[f], .file_number = f, .frame = i};
            at->first_chunk = job->n_chunks;
            at->n_chunks = whit_ndf_n_chunks(frame_of(at)->payload_bytes);
            job->n_chunks += at->n_chunks;
        }
    if (job->n_chunks > UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file is larger than 4 PiB, the limit", whit_ndf_path(ndf));
    job->leaves = whit_zalloc_array(ndf->allocator, job->n_chunks, WHIT_HASH_BYTES);
    if (!job->leaves) return whit_fail_memory(error, "the digests of the file", job->n_chunks * WHIT_HASH_BYTES);
    return WHIT_OK;
}

/* Hashes and checks all frames. job->result counts the damaged places. */
static void check_frames(work *job, whit_pool *pool)
{
    whit_pool_run(pool, hash_chunks, job, (uint32_t)job->n_chunks, 1);
    for (uint32_t i = 0; i < job->n_frames; i++) {
        const checked *at = &job->frames[i];
        if (i && at->file_number != at[-1].file_number && at[-1].file_number == 0) check_tail(job);
        check_frame(job, at);
    }
    if (job->ndf->n_files == 1) check_tail(job);
    if (job->result.n_damaged) return;
    if (!whit_ndf_is_loose(job->ndf)) check_seal(job);
    check_appended(job);
}

whit_status whit_ndf_verify(const whit_ndf *ndf, uint32_t n_threads, whit_ndf_damage_fn *on_damage, void *user,
                            whit_ndf_verify_result *result, whit_error *error)
{
    work job = {.ndf = ndf, .on_damage = on_damage, .user = user};
    whit_pool *pool = NULL;
    whit_status status = list_frames(&job, error);
    if (status == WHIT_OK && n_threads != 1) status = whit_pool_open(n_threads, ndf->allocator, &pool, error);
    if (status == WHIT_OK) {
        check_frames(&job, pool);
        if (result) *result = job.result;
    }
    if (job.result.n_damaged == 1)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s", job.first);
    else if (job.result.n_damaged)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s (and %" PRIu64 " more places)", job.first,
                           job.result.n_damaged - 1);
    whit_pool_close(pool);
    whit_free(ndf->allocator, job.leaves, job.n_chunks * WHIT_HASH_BYTES);
    whit_free(ndf->allocator, job.frames, job.n_frames * sizeof *job.frames);
    return status;
}
