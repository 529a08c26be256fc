/* SPDX-License-Identifier: MIT
 * Implements the core of byte pair encoding: from words and their counts it learns characters and merged pieces, in
 * this order. Only files of this folder include it. */
#ifndef WHIT_TOKENIZER_LEARN_MERGES_H
#define WHIT_TOKENIZER_LEARN_MERGES_H

#include "base/mem.h"

typedef struct whit_text_entry {
    uint64_t count;           /* 0 in a new entry; the caller sets it */
    uint32_t offset, n_bytes; /* position in `texts` of the table */
} whit_text_entry;

/* Distinct texts, numbered in the order of their first occurrence. */
typedef struct whit_text_table {
    const whit_allocator *allocator;
    whit_buf texts, entries;
    uint32_t *slots; /* hash table: number of a text, plus 1; 0: free */
    size_t n, n_slots;
} whit_text_table;

whit_text_table whit_text_table_init(const whit_allocator *allocator);
void whit_text_table_free(whit_text_table *table);
/* Returns the entry of a text, which is added if it is new. It is valid until the next call. NULL if memory is
 * exhausted. */
whit_text_entry *whit_text_table_add(whit_text_table *table, const void *text, size_t n_bytes);
static inline whit_text_entry *whit_text_table_at(const whit_text_table *table, size_t i)
{
    return (whit_text_entry *)(void *)table->entries.data + i;
}

typedef struct whit_merges {
    whit_text_table pieces; /* characters, then merged pieces in the order of learning */
    size_t n_characters;
} whit_merges;

/* Learns characters and merges, at most n_pieces pieces in total. The caller must free `merges` even after a
 * failure. */
whit_status whit_merges_learn(whit_merges *merges, const whit_text_table *words, size_t n_pieces,
                              const whit_allocator *allocator, whit_error *error);
void whit_merges_free(whit_merges *merges);

#endif
