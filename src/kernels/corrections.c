/* SPDX-License-Identifier: MIT */
#include "kernels/corrections.h"

#include <math.h>

#define ROWS WHIT_TILE_ROWS

static uint32_t tiles_of(const whit_tensor_type *type)
{
    return (type->n_rows + ROWS - 1) / ROWS;
}

bool whit_may_be_corrected(const whit_tensor_type *type)
{
    bool codec = type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5 || type->codec == WHIT_CODEC_B1 ||
        type->codec == WHIT_CODEC_Q2;
    return codec && type->layout == WHIT_LAYOUT_TILE16;
}

const char *whit_corrections_fault(const whit_tensor *w)
{
    const uint8_t *part = w->part[WHIT_PART_OUTLIERS];
    uint64_t bytes = part ? w->part_bytes[WHIT_PART_OUTLIERS] : 0;
    uint32_t n_tiles = tiles_of(&w->type);
    if (!bytes) return NULL;
    if (!whit_may_be_corrected(&w->type)) return "outliers beside a codec that has none";
    uint64_t head = whit_outliers_head_bytes(n_tiles);
    if (bytes <= head) return "its outliers are cut";
    if ((bytes - head) / 2 > (uint64_t)n_tiles * (WHIT_OUTLIERS_HEAD_UNITS + ROWS * UINT8_MAX))
        return "more outliers than its rows have room for";
    if (head + 2 * (uint64_t)whit_load_u32(part + 4 * (uint64_t)n_tiles) != bytes)
        return "its outliers do not end where they say";
    return NULL;
}

void whit_corrections_add_row(const whit_tensor *w, uint32_t row, float *values)
{
    whit_outlier_tile tile;
    if (!w->part_bytes[WHIT_PART_OUTLIERS] || !whit_outliers_of_tile(w, row / ROWS, &tile)) return;
    uint32_t at = 0, col = 0;
    for (uint32_t r = 0; r < row % ROWS; r++) at += tile.counts[r];
    for (uint32_t end = at + tile.counts[row % ROWS]; at < end && at < tile.n_pairs; at++) {
        col += tile.pairs[2 * at];
        if (col >= w->type.n_cols) return;
        values[col] = fmaf((float)(int8_t)tile.pairs[2 * at + 1], tile.scale, values[col]);
    }
}

/* ---- making them ------------------------------------------------------------------------------- */

static bool put(whit_buf *out, uint8_t gap, int8_t value)
{
    const uint8_t pair[2] = {gap, (uint8_t)value};
    return whit_buf_append(out, pair, sizeof pair);
}

/* The record of a tile: its outliers are [begin, end). */
static bool put_tile(whit_buf *out, const whit_outlier *begin, const whit_outlier *end, float scale, bool *fits)
{
    uint32_t counts[ROWS] = {0};
    uint16_t half = whit_f16_from_f32(scale);
    size_t head = out->size_bytes;
    uint8_t zeros[2 * WHIT_OUTLIERS_HEAD_UNITS] = {0};
    if (!whit_buf_append(out, zeros, sizeof zeros)) return false;
    for (const whit_outlier *o = begin; o < end; o++) {
        bool first = o == begin || o[-1].row != o->row;
        uint32_t gap = o->col - (first ? 0 : o[-1].col);
        for (; gap > UINT8_MAX; gap -= UINT8_MAX, counts[o->row % ROWS]++)
            if (!put(out, UINT8_MAX, 0)) return false;
        counts[o->row % ROWS]++;
        if (!put(out, (uint8_t)gap, o->value)) return false;
    }
    memcpy(out->data + head, &half, sizeof half);
    for (uint32_t r = 0; r < ROWS; r++) {
        out->data[head + 2 + r] = (uint8_t)counts[r];
        *fits = *fits && counts[r] <= UINT8_MAX;
    }
    return true;
}

whit_status whit_outliers_build(const whit_tensor_type *type, const whit_outlier *outliers, size_t n,
                                const float *scales, whit_buf *out, whit_error *error)
{
    uint32_t n_tiles = tiles_of(type);
    uint64_t head = whit_outliers_head_bytes(n_tiles);
    bool fits = true, ok = whit_buf_reserve(out, head);
    if (ok) {
        memset(out->data, 0, head);
        out->size_bytes = head;
    }
    const whit_outlier *at = outliers, *end = outliers + n;
    for (uint32_t tile = 0; ok && tile < n_tiles; tile++) {
        const whit_outlier *begin = at;
        while (at < end && at->row / ROWS == tile) at++;
        if (at > begin) ok = put_tile(out, begin, at, scales[tile], &fits);
        uint32_t units = (uint32_t)((out->size_bytes - head) / 2);
        if (ok) memcpy(out->data + 4 * ((uint64_t)tile + 1), &units, sizeof units);
    }
    if (!ok) return whit_fail_memory(error, "outliers", n * sizeof *outliers);
    if (!fits) return whit_fail(error, WHIT_ERROR_LIMIT, "a row has more outliers than it has room for");
    return WHIT_OK;
}

/* ---- identity ---------------------------------------------------------------------------------- */

void whit_corrections_digest(const whit_tensor *w, whit_hash *hash)
{
    for (uint32_t kind = WHIT_PART_PLANE; kind < WHIT_PART_COUNT; kind++) {
        uint64_t bytes = w->part_bytes[kind];
        if (!bytes) continue;
        whit_hash_add(hash, &kind, sizeof kind);
        whit_hash_add(hash, &bytes, sizeof bytes);
        whit_hash_add(hash, w->part[kind], bytes);
    }
}
