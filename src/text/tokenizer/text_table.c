/* SPDX-License-Identifier: MIT
 * Implements whit_text_table: distinct texts with numbers. The hash table uses open addressing and is at most half
 * full. */
#include "tokenizer/image.h"
#include "tokenizer/learn_merges.h"

whit_text_table whit_text_table_init(const whit_allocator *allocator)
{
    return (whit_text_table){
        .allocator = allocator, .texts = {.allocator = allocator}, .entries = {.allocator = allocator}};
}

void whit_text_table_free(whit_text_table *table)
{
    whit_buf_free(&table->texts);
    whit_buf_free(&table->entries);
    whit_free(table->allocator, table->slots, table->n_slots * sizeof *table->slots);
    *table = (whit_text_table){0};
}

/* Returns the slot of a text, or the free slot where it can be added. */
static uint32_t *find_slot(const whit_text_table *table, const void *text, size_t n_bytes)
{
    size_t mask = table->n_slots - 1, at = whit_tokenizer_hash(text, n_bytes) & mask;
    for (;; at = (at + 1) & mask) {
        uint32_t number = table->slots[at];
        if (!number) break;
        const whit_text_entry *entry = whit_text_table_at(table, number - 1);
        if (entry->n_bytes == n_bytes && memcmp(table->texts.data + entry->offset, text, n_bytes) == 0) break;
    }
    return &table->slots[at];
}

static bool grow_table(whit_text_table *table)
{
    size_t before = table->n_slots;
    uint32_t *old = table->slots;
    table->n_slots = before ? 2 * before : 4096;
    table->slots = whit_zalloc_array(table->allocator, table->n_slots, sizeof *table->slots);
    if (!table->slots) {
        table->slots = old;
        table->n_slots = before;
        return false;
    }
    for (size_t i = 0; i < table->n; i++) {
        const whit_text_entry *entry = whit_text_table_at(table, i);
        *find_slot(table, table->texts.data + entry->offset, entry->n_bytes) = (uint32_t)i + 1;
    }
    whit_free(table->allocator, old, before * sizeof *old);
    return true;
}

whit_text_entry *whit_text_table_add(whit_text_table *table, const void *text, size_t n_bytes)
{
    if (2 * (table->n + 1) > table->n_slots && !grow_table(table)) return NULL;
    uint32_t *slot = find_slot(table, text, n_bytes);
    if (!*slot) {
        whit_text_entry entry = {.offset = (uint32_t)table->texts.size_bytes, .n_bytes = (uint32_t)n_bytes};
        if (table->texts.size_bytes + n_bytes > UINT32_MAX || !whit_buf_append(&table->texts, text, n_bytes) ||
            !whit_buf_append(&table->entries, &entry, sizeof entry))
            return NULL;
        *slot = (uint32_t)++table->n;
    }
    return whit_text_table_at(table, *slot - 1);
}
