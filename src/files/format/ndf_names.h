/* SPDX-License-Identifier: MIT
 * Declares sorted names with a hash index, which are used in place: the common part of key/value tables and of the
 * tensor directory (docs/dev/format.md, "Names").
 *
 * Entries are `stride_bytes` apart and each begins with {u32 name offset, u32 name bytes,
 * u32 name hash}; offsets count from `base`; names are NUL-terminated there. Nothing is owned. */
#ifndef WHIT_FORMAT_NDF_NAMES_H
#define WHIT_FORMAT_NDF_NAMES_H

#include "base/mem.h"

typedef struct whit_ndf_names {
    const uint8_t *base;
    size_t size_bytes; /* bytes at `base` */
    const uint8_t *entries;
    const uint32_t *buckets; /* entry number + 1, or 0 if empty; linear probing */
    size_t stride_bytes;
    uint32_t n_entries, n_buckets;
} whit_ndf_names;

/* Every entry begins with these words. */
typedef struct whit_ndf_name {
    uint32_t name_offset, name_bytes, name_hash;
} whit_ndf_name;

uint32_t whit_ndf_name_hash(const char *name, size_t name_bytes);
/* Returns the smallest power of two that is at least twice n_entries; 0 for 0 entries. */
uint32_t whit_ndf_n_buckets(uint32_t n_entries);
/* Fills `buckets` (n_buckets of them) from n_entries hashes in order. */
void whit_ndf_fill_buckets(const uint8_t *entries, size_t stride_bytes, uint32_t n_entries, uint32_t *buckets,
                           uint32_t n_buckets);

/* Checks everything that find relies on: bounds, terminators, hashes, strict order (so no name comes twice), and an
 * index that finds every name in few steps. The caller has checked that entries and buckets themselves lie inside.
 * Returns NULL or the reason, with the entry at fault. */
const char *whit_ndf_names_check(const whit_ndf_names *names, uint32_t *entry);

static inline const whit_ndf_name *whit_ndf_name_at(const whit_ndf_names *names, uint32_t i)
{
    return (const whit_ndf_name *)(names->entries + names->stride_bytes * i);
}
/* Returns the entry's number, or -1. */
int64_t whit_ndf_names_find(const whit_ndf_names *names, const char *name, size_t name_bytes);

#endif
