/* SPDX-License-Identifier: MIT */
#include "format/ndf_names.h"

/* Computes a multiply-and-fold hash of eight bytes per step, which takes a few nanoseconds for a metadata key. Both
 * halves of the product are used: names often differ only in their last characters, which are the high bytes of a word
 * and do not influence the low bits of the low half. Deliberate collisions do little harm, because whit_ndf_names_check
 * limits the number of steps. */
uint32_t whit_ndf_name_hash(const char *name, size_t name_bytes)
{
    uint64_t hash = 0x9E3779B97F4A7C15u ^ name_bytes;
    while (name_bytes > 0) {
        uint64_t word = 0;
        size_t n = name_bytes < 8 ? name_bytes : 8;
        if (n == 8)
            memcpy(&word, name, 8);
        else
            for (size_t i = 0; i < n; i++) word |= (uint64_t)(uint8_t)name[i] << (8 * i);
        unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0xBF58476D1CE4E5B9u;
        hash = (uint64_t)product ^ (uint64_t)(product >> 64);
        name += n;
        name_bytes -= n;
    }
    return (uint32_t)hash;
}

uint32_t whit_ndf_n_buckets(uint32_t n_entries)
{
    if (n_entries == 0) return 0;
    uint32_t n = 2;
    while (n / 2 < n_entries && n < (1u << 31)) n *= 2;
    return n;
}

void whit_ndf_fill_buckets(const uint8_t *entries, size_t stride_bytes, uint32_t n_entries, uint32_t *buckets,
                           uint32_t n_buckets)
{
    memset(buckets, 0, sizeof *buckets * n_buckets);
    for (uint32_t i = 0; i < n_entries; i++) {
        const whit_ndf_name *name = (const whit_ndf_name *)(entries + stride_bytes * i);
        uint32_t bucket = name->name_hash & (n_buckets - 1);
        while (buckets[bucket]) bucket = (bucket + 1) & (n_buckets - 1);
        buckets[bucket] = i + 1;
    }
}

/* Returns the index of a name, or -1, and counts the steps in *n_steps. No bucket may exceed n_entries. */
static int64_t find_name(const whit_ndf_names *names, const char *name, size_t name_bytes, uint32_t hash,
                         uint64_t *n_steps)
{
    uint32_t mask = names->n_buckets - 1, bucket = hash & mask;
    for (uint32_t step = 0; step < names->n_buckets; step++, bucket = (bucket + 1) & mask) {
        uint32_t entry = names->buckets[bucket];
        if (entry == 0) return -1;
        ++*n_steps;
        const whit_ndf_name *found = whit_ndf_name_at(names, entry - 1);
        if (found->name_hash == hash && found->name_bytes == name_bytes &&
            memcmp(names->base + found->name_offset, name, name_bytes) == 0)
            return entry - 1;
    }
    return -1;
}

int64_t whit_ndf_names_find(const whit_ndf_names *names, const char *name, size_t name_bytes)
{
    uint64_t n_steps = 0;
    return find_name(names, name, name_bytes, whit_ndf_name_hash(name, name_bytes), &n_steps);
}

static int compare_names(const whit_ndf_names *names, const whit_ndf_name *a, const whit_ndf_name *b)
{
    size_t n = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    int order = memcmp(names->base + a->name_offset, names->base + b->name_offset, n);
    if (order) return order;
    return (a->name_bytes > b->name_bytes) - (a->name_bytes < b->name_bytes);
}

const char *whit_ndf_names_check(const whit_ndf_names *names, uint32_t *entry)
{
    uint32_t i = 0, n_filled = 0;
    uint64_t n_bytes = 0; /* total length of the names: if names shared bytes, this check would take quadratic time */
    for (; i < names->n_entries; i++) {
        const whit_ndf_name *name = whit_ndf_name_at(names, i);
        *entry = i;
        if (!whit_in_bounds(name->name_offset, (uint64_t)name->name_bytes + 1, names->size_bytes) ||
            names->base[(size_t)name->name_offset + name->name_bytes] != 0)
            return "its name is outside the frame";
        if (name->name_bytes == 0) return "its name is empty";
        n_bytes += (uint64_t)name->name_bytes + 1;
        if (n_bytes > names->size_bytes) return "its name overlaps others";
        const char *text = (const char *)names->base + name->name_offset;
        if (memchr(text, 0, name->name_bytes)) return "its name has a zero byte";
        if (whit_ndf_name_hash(text, name->name_bytes) != name->name_hash) return "the hash of its name is wrong";
        if (i == 0) continue;
        int order = compare_names(names, whit_ndf_name_at(names, i - 1), name);
        if (order == 0) return "its name occurs twice";
        if (order > 0) return "its name is out of order";
    }
    *entry = 0;
    if (names->n_buckets != whit_ndf_n_buckets(names->n_entries)) return "the index has a wrong size";
    for (uint32_t b = 0; b < names->n_buckets; b++) {
        if (names->buckets[b] > names->n_entries) return "the index points outside";
        n_filled += names->buckets[b] != 0;
    }
    if (n_filled != names->n_entries) return "the index has a wrong number of entries";
    uint64_t n_steps = 0, limit = 64 + 16 * (uint64_t)names->n_entries;
    for (i = 0; i < names->n_entries && n_steps <= limit; i++) {
        const whit_ndf_name *name = whit_ndf_name_at(names, i);
        *entry = i;
        if (find_name(names, (const char *)names->base + name->name_offset, name->name_bytes, name->name_hash,
                      &n_steps) != i)
            return "the index does not find it";
    }
    return n_steps > limit ? "the index needs too many steps" : NULL;
}
