/* SPDX-License-Identifier: MIT
 * Computes the addresses of a tiled matrix's lines and scales; a kernel does this once per call. The code is the same
 * for every ISA. */
#ifndef WHIT_KERNELS_TILES_H
#define WHIT_KERNELS_TILES_H

#include "kernels/kernels.h"

typedef enum field_kind {
    FIELD_TENSOR,
    FIELD_ROW_F32,
    FIELD_ROW_F16,
    FIELD_GROUP_F32,
    FIELD_GROUP_F16,
    FIELD_GROUP_U8,
    FIELD_GROUP_K4, /* from K4 to E4 a group has one byte or nibble; K4 to K16 are in the order of whit_scale_type */
    FIELD_GROUP_K8,
    FIELD_GROUP_ODD4,
    FIELD_GROUP_E8,
    FIELD_GROUP_E4,
    FIELD_GROUP_L6,  /* a group has two bytes */
    FIELD_GROUP_K16, /* a group has two bytes */
} field_kind;

typedef struct tiles {
    const whit_tensor *w;
    const uint8_t *codes, *row_fields;
    uint64_t tile_bytes;
    field_kind kind;
    uint32_t n_fields;
    uint32_t group_shift; /* column k is in group k >> group_shift (group sizes are powers of two); 31 without
                           * groups */
    uint32_t scale_bytes; /* bytes of a block's scales, which precede its lines of codes (t5: follow them) */
    uint32_t block_cols;  /* columns of a block, which is a set of groups with its scales; 0 if scales are not
                           * interleaved */
    uint32_t block_bytes; /* bytes of a block: scales and lines of codes */
    uint32_t block_shift; /* group g is in block g >> block_shift */
    bool has_offset, in_superblocks;
} tiles;

static inline tiles tiles_of(const whit_tensor *w)
{
    static const field_kind by_type[][WHIT_SCALE_TYPE_COUNT] = {
        [WHIT_SCALE_NONE] = {FIELD_TENSOR},
        [WHIT_SCALE_TENSOR] = {FIELD_TENSOR},
        [WHIT_SCALE_ROW] = {FIELD_ROW_F32, FIELD_ROW_F16},
        [WHIT_SCALE_GROUP] = {FIELD_GROUP_F32, FIELD_GROUP_F16, FIELD_GROUP_U8, FIELD_GROUP_K4, FIELD_GROUP_K8,
                              FIELD_GROUP_ODD4, FIELD_GROUP_E8, FIELD_GROUP_E4, FIELD_GROUP_L6, FIELD_GROUP_K16},
    };
    const whit_tensor_type *type = &w->type;
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    tiles m = {.w = w,
               .codes = w->part[WHIT_PART_CODES],
               .row_fields = w->part[WHIT_PART_ROW_SCALES],
               .tile_bytes = g.tile_bytes,
               .kind = by_type[type->scale_kind][type->scale_type],
               .n_fields = g.n_fields,
               .group_shift = 31,
               .has_offset = type->has_offset};
    if (type->scale_kind != WHIT_SCALE_GROUP) return m;
    m.in_superblocks = type->codec == WHIT_CODEC_T5;
    m.scale_bytes = g.block_lines * WHIT_LINE_BYTES;
    uint32_t block_groups = m.in_superblocks ? 256 / type->group : g.block_groups;
    m.group_shift = (uint32_t)__builtin_ctz(type->group);
    m.block_shift = (uint32_t)__builtin_ctz(block_groups);
    m.block_cols = block_groups * g.group_cols;
    m.block_bytes = m.scale_bytes +
        (m.in_superblocks ? 13 * WHIT_LINE_BYTES : m.block_cols / codec->line_cols * codec->lines * WHIT_LINE_BYTES);
    return m;
}

/* Address of the lines that contain a group's fields, and index of the group's first field among a row's fields there.
 * If a group has bytes or a nibble instead, first / n_fields is the group's index in its block. */
typedef struct group_fields {
    const uint8_t *lines;
    uint32_t first;
} group_fields;

static inline group_fields group_fields_at(const tiles *m, const uint8_t *tile, uint32_t group)
{
    uint32_t block = group >> m->block_shift, place = group & ((1u << m->block_shift) - 1);
    const uint8_t *lines = tile + (uint64_t)block * m->block_bytes;
    if (m->in_superblocks) lines += (m->w->type.n_cols - 256 * block <= 128 ? 7 : 13) * WHIT_LINE_BYTES;
    return (group_fields){lines, place * m->n_fields};
}

/* Returns whether kernels that multiply lines directly may be used: every step of the activations ends at the end of a
 * line, and scales are not in superblocks. Steps of t5 without group scales do not end there unless a step is the whole
 * row, because 20 columns, the columns of a line, divide no step; i8s is unpacked 128 columns at a time. */
static inline bool steps_are_lines(const whit_tensor_type *type, const whit_acts_spec *spec)
{
    if (whit_scale_in_superblocks(type->scale_type)) return false; /* scales in superblocks have separate kernels */
    if (type->codec == WHIT_CODEC_I8S) return spec->step % 128 == 0;
    return type->codec != WHIT_CODEC_T5 || type->scale_kind == WHIT_SCALE_GROUP || !spec->step;
}

static inline uint32_t tiles_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

#endif
