/* SPDX-License-Identifier: MIT */
#include "compress/finished.h"

#include "base/mem.h"
#include "compress/spool.h"

#include <math.h>
#include <stdio.h>

#define DIGEST_ROWS 16
#define LEAST_SPOOL (64 << 10) /* smaller parts stay in memory */

static whit_status find_digest(whit_finished *f, const whit_allocator *a, whit_error *error)
{
    const whit_tensor_type *type = &f->tensor.type;
    size_t row_bytes = whit_codec_canonical_row_bytes(type);
    uint8_t *rows = whit_alloc(a, row_bytes * DIGEST_ROWS);
    if (!rows) return whit_fail_memory(error, f->name, row_bytes * DIGEST_ROWS);
    whit_tensor_type canonical = whit_codec_canonical_type(type);
    whit_hash hash;
    whit_hash_begin(&hash, "whit.tensor");
    whit_hash_add(&hash, &canonical, sizeof canonical);
    for (uint32_t row = 0; row < type->n_rows; row += DIGEST_ROWS) {
        uint32_t n = type->n_rows - row < DIGEST_ROWS ? type->n_rows - row : DIGEST_ROWS;
        whit_codec_canonical_rows(&f->tensor, row, n, rows);
        whit_hash_add(&hash, rows, row_bytes * n);
    }
    whit_corrections_digest(&f->tensor, &hash);
    whit_hash_end(&hash, f->digest);
    whit_free(a, rows, row_bytes * DIGEST_ROWS);
    return WHIT_OK;
}

/* Checks that no scale in the n_rows rows from row_begin on exceeds 65,504, the largest f16. */
static whit_status check_scales(const char *name, const whit_tensor_type *type, uint32_t row_begin, uint32_t n_rows,
                                const whit_rows *rows, whit_error *error)
{
    whit_geometry g = whit_codec_geometry(type);
    const float *fields = rows->fields;
    size_t n = g.row_fields, n_levels = type->codec == WHIT_CODEC_L2 ? g.n_groups : 0;
    for (size_t i = 0; i < n_levels * n_rows; i++)
        if (!isfinite(whit_level_scale(whit_load_u16(rows->fields_u8 + 2 * i))))
            return whit_fail(
                error, WHIT_ERROR_NUMERIC,
                "tensor '%s': row %zu has weights too large for scales of l2, at most 65504: choose another codec",
                name, row_begin + i / n_levels);
    for (size_t i = 0; i < n * n_rows; i++)
        if (!isfinite(fields[i]))
            return whit_fail(
                error, WHIT_ERROR_NUMERIC,
                "tensor '%s': row %zu has weights too large for scales of f16, at most 65504: choose another codec",
                name, row_begin + i / n);
    return WHIT_OK;
}

whit_status whit_finished_begin(whit_finished *f, const char *name, const whit_tensor_type *type,
                                const whit_buf *corrections, const whit_allocator *a, whit_error *error)
{
    *f = (whit_finished){.tensor.type = *type};
    snprintf(f->name, sizeof f->name, "%s", name);
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        uint64_t bytes = 0;
        (void)whit_codec_part_bytes(type, (whit_part)p, &bytes);
        if (p >= WHIT_PART_PLANE && corrections) bytes = corrections[p].size_bytes;
        if (!bytes) continue;
        if (!(f->part[p] = whit_zalloc(a, bytes))) {
            whit_finished_free(f, a);
            return whit_fail_memory(error, name, bytes);
        }
        f->tensor.part[p] = f->part[p];
        f->tensor.part_bytes[p] = bytes;
        if (p >= WHIT_PART_PLANE) memcpy(f->part[p], corrections[p].data, bytes);
    }
    return WHIT_OK;
}

whit_status whit_finished_put(whit_finished *f, uint32_t row_begin, uint32_t n_rows, const whit_rows *rows,
                              whit_error *error)
{
    WHIT_TRY(check_scales(f->name, &f->tensor.type, row_begin, n_rows, rows, error));
    return whit_codec_pack(&f->tensor.type, row_begin, n_rows, rows, f->part, error);
}

whit_status whit_finished_end(whit_finished *f, const whit_allocator *a, whit_error *error)
{
    return find_digest(f, a, error);
}

whit_status whit_finished_make(whit_finished *f, const char *name, const whit_tensor_type *type, const whit_rows *rows,
                               const whit_buf *corrections, const whit_allocator *a, whit_error *error)
{
    WHIT_TRY(whit_finished_begin(f, name, type, corrections, a, error));
    whit_status status = whit_finished_put(f, 0, type->n_rows, rows, error);
    if (status == WHIT_OK) status = whit_finished_end(f, a, error);
    if (status != WHIT_OK) whit_finished_free(f, a);
    return status;
}

void whit_finished_spool(whit_finished *f, const char *folder, const whit_allocator *a)
{
    size_t bytes = 0, at = 0;
    for (int p = 0; p < WHIT_PART_COUNT; p++) bytes += f->part[p] ? whit_round_up(f->tensor.part_bytes[p], 64) : 0;
    uint8_t *memory = bytes >= LEAST_SPOOL ? whit_spool_map(folder, bytes) : NULL;
    if (!memory) return;
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        if (!f->part[p]) continue;
        memcpy(memory + at, f->part[p], f->tensor.part_bytes[p]);
        whit_free(a, f->part[p], f->tensor.part_bytes[p]);
        f->part[p] = NULL;
        f->tensor.part[p] = memory + at;
        at += whit_round_up(f->tensor.part_bytes[p], 64);
    }
    f->spool = memory;
    f->spool_bytes = bytes;
}

void whit_finished_free(whit_finished *f, const whit_allocator *a)
{
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_free(a, f->part[p], f->tensor.part_bytes[p]);
    whit_spool_unmap(f->spool, f->spool_bytes);
    *f = (whit_finished){0};
}
