/* SPDX-License-Identifier: MIT
 * Parses any bytes as source files of each language, and as a code graph's file (with its checksum made right). */
#include "code/graph.h"
#include "code/graph_file.h"

#include <stdlib.h>

static void look_around(const whit_graph *graph)
{
    whit_graph_symbol symbol;
    whit_graph_mention mention;
    const char *written;
    uint32_t n, file, line;
    whit_graph_run run = whit_graph_all_symbols(graph);
    for (unsigned i = 0; i < 1000 && whit_graph_next_symbol(graph, &run, &symbol); i++) {
        whit_graph_run mentions = whit_graph_mentions_of(graph, symbol.name, strlen(symbol.name));
        for (unsigned k = 0; k < 1000 && whit_graph_next_mention(graph, &mentions, &mention); k++) {
            n += (uint32_t)strlen(mention.file);
            whit_graph_symbol_at(graph, mention.symbol, &symbol);
        }
    }
    whit_graph_count(graph);
    for (uint32_t i = 0; whit_graph_import_at(graph, i, &written, &file, &line); i++) n += (uint32_t)strlen(written);
    for (uint32_t i = 0; whit_graph_file(graph, i); i++) {
        uint32_t entry = whit_graph_imports_of(graph, i, &n);
        for (uint32_t k = 0; k < n && k < 1000; k++) whit_graph_import_at(graph, entry + k, &written, &file, &line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_parse parse = {0};
    for (whit_code_language language = WHIT_CODE_C; language <= WHIT_CODE_OTHER; language++) {
        whit_parse_text(&parse, language, (const char *)data, size);
        for (size_t i = 0; i < parse.n_definitions; i++) {
            const whit_parse_definition *at = &parse.definitions[i];
            bool parent_ok = at->parent == WHIT_PARSE_NONE || at->parent < parse.n_definitions;
            if (!whit_in_bounds(at->name, at->n_name, size) || !parent_ok) __builtin_trap();
        }
        for (size_t i = 0; i < parse.n_mentions; i++) {
            const whit_parse_mention *at = &parse.mentions[i];
            bool inside_ok = at->inside == WHIT_PARSE_NONE || at->inside < parse.n_definitions;
            if (!whit_in_bounds(at->name, at->n_name, size) || !inside_ok) __builtin_trap();
        }
    }
    whit_parse_free(&parse);
    uint8_t *copy = size >= sizeof(struct graph_head) ? whit_alloc(NULL, size) : NULL;
    if (!copy) return 0;
    memcpy(copy, data, size);
    struct graph_head *head = (struct graph_head *)copy;
    whit_graph *graph = calloc(1, sizeof *graph);
    head->size_bytes = size;
    graph_check(copy, size, head->check);
    if (graph && graph_attach(graph, copy, size, "memory", NULL) == WHIT_OK) {
        look_around(graph);
        /* the same bytes as the graph's file of edits */
        whit_buf edits = {0};
        if (whit_buf_append(&edits, data, size)) {
            struct graph_head *edits_head = (struct graph_head *)edits.data;
            edits_head->size_bytes = size;
            memcpy(edits_head->edits_of, head->check, sizeof head->check);
            graph_check(edits.data, size, edits_head->check);
            if (graph_take_edits(graph, &edits)) look_around(graph);
        }
        whit_buf_free(&edits);
    }
    whit_graph_close(graph);
    whit_free(NULL, copy, size);
    return 0;
}
