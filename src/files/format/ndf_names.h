/* SPDX-License-Identifier: MIT
 * Declares a sorted list of names with a hash index, which is used in place. Tables and the tensor directory have this
 * structure (docs/dev/format.md, "Names").
 *
 * Entries are `stride_bytes` apart. Each begins with a whit_ndf_name. Its name_offset counts from `base`, where the
 * name is NUL-terminated. whit_ndf_names owns no memory. */
#ifndef WHIT_FORMAT_NDF_NAMES_H
#define WHIT_FORMAT_NDF_NAMES_H

#include "base/mem.h"

typedef struct whit_ndf_names {
    const uint8_t *base;
    size_t size_bytes; /* number of bytes at `base` */
    const uint8_t *entries;
    const uint32_t *buckets; /* index of an entry + 1; 0: empty bucket; collisions use the next buckets (linear
                              * probing) */
    size_t stride_bytes;
    uint32_t n_entries, n_buckets;
} whit_ndf_names;

/* The first members of every entry. */
typedef struct whit_ndf_name {
    uint32_t name_offset, name_bytes, name_hash;
} whit_ndf_name;

uint32_t whit_ndf_name_hash(const char *name, size_t name_bytes);
/* Returns the smallest power of two that is at least 2 * n_entries; 0 if n_entries is 0. */
uint32_t whit_ndf_n_buckets(uint32_t n_entries);
/* Fills the hash index `buckets` (n_buckets) for n_entries entries, in their order. */
void whit_ndf_fill_buckets(const uint8_t *entries, size_t stride_bytes, uint32_t n_entries, uint32_t *buckets,
                           uint32_t n_buckets);

/* Checks everything that whit_ndf_names_find relies on: bounds, terminators, hashes, strict order (which also means
 * that no name occurs twice), and that the index finds every name in few steps. The caller has checked that the arrays
 * of entries and buckets are inside the data. Returns NULL, or the reason, with the index of the invalid entry in
 * *entry. */
const char *whit_ndf_names_check(const whit_ndf_names *names, uint32_t *entry);

static inline const whit_ndf_name *whit_ndf_name_at(const whit_ndf_names *names, uint32_t i)
{
    return (const whit_ndf_name *)(names->entries + names->stride_bytes * i);
}
/* Returns the index of the entry with this name, or -1. */
int64_t whit_ndf_names_find(const whit_ndf_names *names, const char *name, size_t name_bytes);

#endif
