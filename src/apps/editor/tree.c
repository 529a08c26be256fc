/* SPDX-License-Identifier: MIT */
#include "editor/state.h"
#include "whit_config.h"

#if WHIT_HAVE_TREE_SITTER
#include <stdlib.h>
#include <string.h>

#include "editor/grammar.h"

/* maximum size in bytes of a text that is coloured by a syntax tree; larger texts are coloured by tables */
#define TEXT_BYTES  (16u << 20)
#define SLICE_US    1500
#define SPANS_MAX   16384
#define MATCHES_MAX 512 /* maximum number of matches that a query processes at the same time */

struct span {
    uint64_t begin, end;
    uint8_t style;
};

struct ed_tree {
    const struct ed_grammar *grammar; /* NULL: no grammar was found; this is not tried again */
    TSParser *parser;
    TSTree *tree; /* latest tree, edited at every change; it gives the colours, and the next parse reuses it */
    TSQueryCursor *cursor;
    whit_text *text;
    /* told: the text after the last change that `tree` knows; parsed: the text that is being parsed */
    whit_snapshot told, parsed;
    bool is_parsing, is_current;
    struct span *spans;
    size_t n_spans;
};

static const char *read_text(void *payload, uint32_t offset, TSPoint position, uint32_t *n)
{
    (void)position;
    const whit_snapshot *snapshot = payload;
    whit_span span = {NULL, 0};
    if (offset < snapshot->size_bytes) span = whit_snapshot_at(snapshot, offset);
    *n = span.size_bytes < 1u << 20 ? (uint32_t)span.size_bytes : 1u << 20;
    return span.size_bytes ? (const char *)span.data : "";
}

static struct ed_tree *open_tree(ed *e, struct ed_doc *doc)
{
    char why[400];
    struct ed_tree *tree = calloc(1, sizeof *tree);
    if (!tree) return NULL;
    tree->text = doc->buffer->text;
    if (!doc->syntax || whit_text_size(tree->text) > TEXT_BYTES) return tree;
    tree->grammar = ed_grammar_for(whit_syntax_name(doc->syntax), why, sizeof why);
    if (*why) ed_complain(e, "%s", why);
    if (!tree->grammar) return tree;
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    tree->parser = ts->ts_parser_new();
    tree->cursor = ts->ts_query_cursor_new();
    tree->spans = malloc(SPANS_MAX * sizeof *tree->spans);
    if (!tree->parser || !tree->cursor || !tree->spans ||
        !ts->ts_parser_set_language(tree->parser, ed_grammar_language(tree->grammar))) {
        tree->grammar = NULL;
        return tree;
    }
    ts->ts_query_cursor_set_match_limit(tree->cursor, MATCHES_MAX);
    ts->ts_parser_set_timeout_micros(tree->parser, SLICE_US);
    tree->told = whit_text_snapshot(tree->text);
    return tree;
}

bool ed_tree_update(ed *e, struct ed_doc *doc, bool *redraw)
{
    if (!doc->tree) {
        doc->tree = open_tree(e, doc);
        if (*e->message) *redraw = true;
        return doc->tree && doc->tree->grammar;
    }
    struct ed_tree *tree = doc->tree;
    if (!tree->grammar || tree->is_current || tree->told.size_bytes > TEXT_BYTES) return false;
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    if (!tree->is_parsing) {
        tree->parsed = whit_text_snapshot(tree->text);
        tree->is_parsing = true;
    }
    TSInput input = {&tree->parsed, read_text, TSInputEncodingUTF8};
    TSTree *made = ts->ts_parser_parse(tree->parser, tree->tree, input);
    if (!made) return true; /* the time slice is over */
    whit_snapshot_release(tree->text, &tree->parsed);
    tree->is_parsing = false;
    if (tree->tree) ts->ts_tree_delete(tree->tree);
    tree->tree = made;
    tree->is_current = true;
    *redraw = doc == e->window->doc;
    return *redraw;
}

/* Returns the position after n bytes of a snapshot that begin at `offset`, whose position is `at`. */
static TSPoint behind(TSPoint at, const whit_snapshot *snapshot, uint64_t offset, uint64_t n)
{
    while (n) {
        whit_span span = whit_snapshot_at(snapshot, offset);
        if (!span.size_bytes) break;
        uint64_t size = span.size_bytes < n ? span.size_bytes : n;
        for (const uint8_t *from = span.data, *end = from + size; from < end;) {
            const uint8_t *feed = memchr(from, '\n', (size_t)(end - from));
            if (!feed) {
                at.column += (uint32_t)(end - from);
                break;
            }
            at = (TSPoint){at.row + 1, 0};
            from = feed + 1;
        }
        offset += size;
        n -= size;
    }
    return at;
}

void ed_tree_changed(struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    struct ed_tree *tree = doc->tree;
    if (!tree || !tree->grammar) return;
    if (tree->text != doc->buffer->text) { /* the file was read again, and the old text will be closed */
        ed_tree_close(doc);
        return;
    }
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    whit_snapshot now = whit_text_snapshot(tree->text);
    if (tree->is_parsing) {
        ts->ts_parser_reset(tree->parser);
        whit_snapshot_release(tree->text, &tree->parsed);
        tree->is_parsing = false;
    }
    tree->is_current = false;
    tree->n_spans = 0;
    uint64_t line = whit_text_line_at(tree->text, offset);
    if (tree->tree && (now.size_bytes > TEXT_BYTES || line == UINT64_MAX)) {
        ts->ts_tree_delete(tree->tree);
        tree->tree = NULL;
    }
    if (tree->tree) {
        TSPoint at = {(uint32_t)line, (uint32_t)(offset - whit_text_line_begin(tree->text, offset))};
        TSInputEdit edit = {.start_byte = (uint32_t)offset,
                            .old_end_byte = (uint32_t)(offset + n_removed),
                            .new_end_byte = (uint32_t)(offset + n_inserted),
                            .start_point = at,
                            .old_end_point = behind(at, &tree->told, offset, n_removed),
                            .new_end_point = behind(at, &now, offset, n_inserted)};
        ts->ts_tree_edit(tree->tree, &edit);
    }
    whit_snapshot_release(tree->text, &tree->told);
    tree->told = now;
}

bool ed_tree_is_there(const struct ed_doc *doc)
{
    return doc->tree && doc->tree->tree;
}

void ed_tree_prepare(struct ed_doc *doc, uint64_t begin, uint64_t end)
{
    struct ed_tree *tree = doc->tree;
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    tree->n_spans = 0;
    ts->ts_query_cursor_set_byte_range(tree->cursor, (uint32_t)begin, (uint32_t)end);
    ts->ts_query_cursor_exec(tree->cursor, ed_grammar_query(tree->grammar), ts->ts_tree_root_node(tree->tree));
    TSQueryMatch match;
    uint32_t which;
    while (tree->n_spans < SPANS_MAX && ts->ts_query_cursor_next_capture(tree->cursor, &match, &which)) {
        const TSQueryCapture *capture = &match.captures[which];
        whit_style style = ed_grammar_style(tree->grammar, capture->index);
        struct span span = {ts->ts_node_start_byte(capture->node), ts->ts_node_end_byte(capture->node), (uint8_t)style};
        const struct span *last = tree->n_spans ? &tree->spans[tree->n_spans - 1] : NULL;
        if (style == WHIT_STYLE_TEXT || span.end <= begin || span.begin >= end) continue;
        /* the first capture of a node takes precedence */
        if (last && last->begin == span.begin && last->end == span.end) continue;
        if (ed_grammar_holds(tree->grammar, tree->text, &match)) tree->spans[tree->n_spans++] = span;
    }
}

void ed_tree_styles(const struct ed_doc *doc, uint64_t offset, size_t n, uint8_t *styles)
{
    const struct ed_tree *tree = doc->tree;
    memset(styles, WHIT_STYLE_TEXT, n);
    /* spans are sorted by their beginnings, so that inner spans overwrite the outer ones */
    for (size_t i = 0; i < tree->n_spans && tree->spans[i].begin < offset + n; i++) {
        const struct span *span = &tree->spans[i];
        if (span->end <= offset) continue;
        uint64_t from = span->begin > offset ? span->begin - offset : 0, to = span->end - offset;
        memset(styles + from, span->style, (size_t)((to < n ? to : n) - from));
    }
}

void ed_tree_close(struct ed_doc *doc)
{
    struct ed_tree *tree = doc->tree;
    if (!tree) return;
    if (tree->grammar) {
        const struct ed_tree_sitter *ts = ed_tree_sitter();
        if (tree->is_parsing) whit_snapshot_release(tree->text, &tree->parsed);
        whit_snapshot_release(tree->text, &tree->told);
        if (tree->tree) ts->ts_tree_delete(tree->tree);
        ts->ts_parser_delete(tree->parser);
        ts->ts_query_cursor_delete(tree->cursor);
    }
    free(tree->spans);
    free(tree);
    doc->tree = NULL;
}
#else
bool ed_tree_update(ed *e, struct ed_doc *doc, bool *redraw)
{
    (void)e, (void)doc, (void)redraw;
    return false;
}

void ed_tree_changed(struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    (void)doc, (void)offset, (void)n_removed, (void)n_inserted;
}

bool ed_tree_is_there(const struct ed_doc *doc)
{
    (void)doc;
    return false;
}

void ed_tree_prepare(struct ed_doc *doc, uint64_t begin, uint64_t end)
{
    (void)doc, (void)begin, (void)end;
}

void ed_tree_styles(const struct ed_doc *doc, uint64_t offset, size_t n, uint8_t *styles)
{
    (void)doc, (void)offset, (void)n, (void)styles;
}

void ed_tree_close(struct ed_doc *doc)
{
    (void)doc;
}
#endif
