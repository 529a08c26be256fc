/* SPDX-License-Identifier: MIT */
#include "editor/text.h"

#include "editor/text_tree.h"

#include <stdlib.h>

#include "editor/pages.h"

#define CHUNK_FIRST_BYTES (16u << 10)
#define CHUNK_LAST_BYTES  (1u << 20)

/* A block of inserted bytes; the bytes never move. */
struct chunk {
    struct chunk *next;
    size_t used_bytes, ready_bytes, capacity_bytes;
    uint8_t data[];
};

struct whit_text {
    struct tree tree;
    struct chunk *chunks; /* chunks, newest first */
};

whit_status whit_text_open(whit_text **text, whit_error *error)
{
    *text = calloc(1, sizeof **text);
    if (!*text) return whit_fail_memory(error, "a text", sizeof **text);
    if (tree_open(&(*text)->tree)) return WHIT_OK;
    whit_text_close(*text);
    *text = NULL;
    return whit_fail_memory(error, "a text", TREE_SLAB_BYTES);
}

void whit_text_close(whit_text *text)
{
    if (!text) return;
    tree_close(&text->tree);
    while (text->chunks) {
        struct chunk *next = text->chunks->next;
        free(text->chunks);
        text->chunks = next;
    }
    free(text);
}

/* Returns a chunk with n contiguous free bytes, or NULL if memory runs out. The caller increases used_bytes. */
static struct chunk *chunk_with(whit_text *text, size_t n)
{
    struct chunk *chunk = text->chunks;
    if (chunk && chunk->capacity_bytes - chunk->used_bytes >= n) {
        chunk->ready_bytes =
            whit_pages_ahead(chunk->data, chunk->used_bytes + n, chunk->ready_bytes, chunk->capacity_bytes);
        return chunk;
    }
    size_t capacity_bytes = chunk ? 2 * chunk->capacity_bytes : CHUNK_FIRST_BYTES;
    if (capacity_bytes > CHUNK_LAST_BYTES) capacity_bytes = CHUNK_LAST_BYTES;
    if (capacity_bytes < n) capacity_bytes = n;
    size_t bytes;
    if (!whit_add_size(sizeof *chunk, capacity_bytes, &bytes) || !(chunk = malloc(bytes))) return NULL;
    *chunk = (struct chunk){.next = text->chunks, .capacity_bytes = capacity_bytes};
    return text->chunks = chunk;
}

static whit_status out_of_range(whit_error *error, uint64_t offset, uint64_t n, uint64_t size)
{
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "bytes %llu to %llu are not in the text, which has %llu bytes",
                     (unsigned long long)offset, (unsigned long long)(offset + n), (unsigned long long)size);
}

/* Divides a span into pieces of at most piece_bytes and inserts them, TREE_INSERT_MAX at a time. */
static bool insert_span(struct tree *tree, uint64_t offset, whit_span span, bool counted, uint64_t piece_bytes)
{
    while (span.size_bytes) {
        struct piece pieces[TREE_INSERT_MAX];
        unsigned n = 0;
        uint64_t bytes = 0;
        while (n < TREE_INSERT_MAX && span.size_bytes) {
            uint32_t size = (uint32_t)(span.size_bytes < piece_bytes ? span.size_bytes : piece_bytes);
            pieces[n++] = (struct piece){span.data, size, counted ? tree_count(span.data, size) : TREE_UNCOUNTED};
            span.data += size;
            span.size_bytes -= size;
            bytes += size;
        }
        if (!tree_replace(tree, offset, offset, pieces, n)) return false;
        offset += bytes;
    }
    return true;
}

whit_status whit_text_adopt(whit_text *text, const uint8_t *data, uint64_t size_bytes, whit_error *error)
{
    uint64_t piece_bytes = size_bytes / 131072; /* a huge file gets larger pieces, so that its tree stays small */
    if (piece_bytes < TREE_PIECE_BYTES) piece_bytes = TREE_PIECE_BYTES;
    if (piece_bytes > UINT32_MAX / 2) piece_bytes = UINT32_MAX / 2;
    whit_snapshot before = whit_text_snapshot(text);
    if (!insert_span(&text->tree, text->tree.sum.bytes, (whit_span){data, size_bytes}, false, piece_bytes)) {
        whit_text_restore(text, &before);
        whit_snapshot_release(text, &before);
        return whit_fail_memory(error, "a text", TREE_SLAB_BYTES);
    }
    whit_snapshot_release(text, &before);
    return WHIT_OK;
}

whit_status whit_text_replace(whit_text *text, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                              const uint8_t **kept, whit_error *error)
{
    if (!whit_in_bounds(offset, n_remove, text->tree.sum.bytes))
        return out_of_range(error, offset, n_remove, text->tree.sum.bytes);
    struct chunk *chunk = NULL;
    whit_span span = {NULL, n_insert};
    if (n_insert) {
        if (!(chunk = chunk_with(text, n_insert))) return whit_fail_memory(error, "the typed text", n_insert);
        span.data = memcpy(chunk->data + chunk->used_bytes, data, n_insert);
    }
    whit_status status = whit_text_splice(text, offset, n_remove, &span, n_insert > 0, error);
    WHIT_TRY(status);
    if (chunk) chunk->used_bytes += n_insert;
    if (kept) *kept = span.data;
    return WHIT_OK;
}

whit_status whit_text_splice(whit_text *text, uint64_t offset, uint64_t n_remove, const whit_span *spans,
                             size_t n_spans, whit_error *error)
{
    struct tree *tree = &text->tree;
    if (!whit_in_bounds(offset, n_remove, tree->sum.bytes))
        return out_of_range(error, offset, n_remove, tree->sum.bytes);
    bool ok;
    if (n_spans <= 1 && (!n_spans || spans->size_bytes <= TREE_PIECE_BYTES)) {
        struct piece piece = {0};
        if (n_spans)
            piece = (struct piece){spans->data, (uint32_t)spans->size_bytes,
                                   tree_count(spans->data, (uint32_t)spans->size_bytes)};
        ok = tree_replace(tree, offset, offset + n_remove, &piece, piece.size > 0);
    } else {
        whit_snapshot before = whit_text_snapshot(text);
        ok = tree_replace(tree, offset, offset + n_remove, NULL, 0);
        uint64_t at = offset;
        for (size_t i = 0; i < n_spans && ok; i++) {
            ok = insert_span(tree, at, spans[i], true, TREE_PIECE_BYTES);
            at += spans[i].size_bytes;
        }
        if (!ok) whit_text_restore(text, &before);
        whit_snapshot_release(text, &before);
    }
    return ok ? WHIT_OK : whit_fail_memory(error, "an edit", TREE_SLAB_BYTES);
}

uint64_t whit_text_size(const whit_text *text)
{
    return text->tree.sum.bytes;
}

whit_span whit_text_at(const whit_text *text, uint64_t offset)
{
    return tree_at(text->tree.root, text->tree.sum.bytes, offset);
}

whit_span whit_text_before(const whit_text *text, uint64_t offset)
{
    if (!offset || offset > text->tree.sum.bytes) return (whit_span){0};
    uint64_t skipped;
    whit_span span = tree_piece(text->tree.root, offset - 1, &skipped);
    return (whit_span){span.data, skipped + 1};
}

size_t whit_text_read(const whit_text *text, uint64_t offset, void *data, size_t n)
{
    size_t done = 0;
    while (done < n) {
        whit_span span = whit_text_at(text, offset + done);
        if (!span.size_bytes) break;
        size_t part = span.size_bytes < n - done ? (size_t)span.size_bytes : n - done;
        memcpy((uint8_t *)data + done, span.data, part);
        done += part;
    }
    return done;
}

int whit_text_byte(const whit_text *text, uint64_t offset)
{
    whit_span span = whit_text_at(text, offset);
    return span.size_bytes ? *span.data : -1;
}

bool whit_text_count(whit_text *text, uint64_t budget_bytes, void (*drop)(void *user, whit_span span), void *user)
{
    uint64_t done = 0;
    while (text->tree.sum.unknown && done < budget_bytes) {
        whit_span span = tree_count_next(&text->tree);
        if (!span.size_bytes) break; /* memory ran out; a later call tries again */
        if (drop) drop(user, span);
        done += span.size_bytes;
    }
    return text->tree.sum.unknown > 0;
}

bool whit_text_is_counted(const whit_text *text)
{
    return !text->tree.sum.unknown;
}

uint64_t whit_text_line_at(const whit_text *text, uint64_t offset)
{
    return tree_line_at(text->tree.root, offset);
}

uint64_t whit_text_n_lines(const whit_text *text)
{
    return text->tree.sum.unknown ? UINT64_MAX : text->tree.sum.lines;
}

uint64_t whit_text_line_start(const whit_text *text, uint64_t line)
{
    if (!line) return 0;
    if (!text->tree.sum.unknown && line > text->tree.sum.lines) return text->tree.sum.bytes;
    return tree_line_start(text->tree.root, line);
}

uint64_t whit_text_line_begin(const whit_text *text, uint64_t offset)
{
    while (offset) {
        whit_span span = whit_text_before(text, offset);
        if (!span.size_bytes) break;
        const uint8_t *found = memrchr(span.data, '\n', span.size_bytes);
        if (found) return offset - (uint64_t)(span.data + span.size_bytes - found) + 1;
        offset -= span.size_bytes;
    }
    return offset;
}

uint64_t whit_text_line_end(const whit_text *text, uint64_t offset)
{
    for (;;) {
        whit_span span = whit_text_at(text, offset);
        if (!span.size_bytes) return offset;
        const uint8_t *found = memchr(span.data, '\n', span.size_bytes);
        if (found) return offset + (uint64_t)(found - span.data);
        offset += span.size_bytes;
    }
}

whit_snapshot whit_text_snapshot(const whit_text *text)
{
    text->tree.root->refs++;
    return (whit_snapshot){text->tree.root, text->tree.sum.bytes};
}

void whit_snapshot_release(whit_text *text, whit_snapshot *snapshot)
{
    if (snapshot->root) tree_release(&text->tree, snapshot->root);
    *snapshot = (whit_snapshot){0};
}

whit_span whit_snapshot_at(const whit_snapshot *snapshot, uint64_t offset)
{
    return tree_at(snapshot->root, snapshot->size_bytes, offset);
}

void whit_text_restore(whit_text *text, const whit_snapshot *snapshot)
{
    snapshot->root->refs++;
    tree_release(&text->tree, text->tree.root);
    text->tree.root = snapshot->root;
    text->tree.sum = tree_sum(snapshot->root);
}
