/* SPDX-License-Identifier: MIT
 * Prints the edges of a folder's code graph, a line each: "C callee caller file" for calls, "I file included" for
 * imports of the project's own files, "D name file" for functions and types. For bench/graph_clangd.py and
 * bench/graph_ctags.py. */
#include "code/graph.h"

#include <stdio.h>

static void print_calls(const whit_graph *graph, const whit_graph_symbol *callee)
{
    whit_graph_run run = whit_graph_mentions_of(graph, callee->name, strlen(callee->name));
    whit_graph_mention mention;
    while (whit_graph_next_mention(graph, &run, &mention)) {
        whit_graph_symbol caller;
        if (!mention.calls || mention.symbol == WHIT_GRAPH_NONE) continue;
        if (!whit_graph_symbol_at(graph, mention.symbol, &caller)) continue;
        if (callee->is_local && strcmp(callee->file, mention.file) != 0) continue;
        printf("C %s %s %s\n", callee->name, caller.name, mention.file);
    }
}

int main(int argc, char **argv)
{
    whit_graph *graph;
    whit_error error;
    whit_graph_symbol symbol;
    if (argc != 2 || whit_graph_open(argv[1], NULL, &graph, &error) != WHIT_OK) {
        fprintf(stderr, "graph_edges FOLDER%s%s\n", argc == 2 ? ": " : "", argc == 2 ? error.message : "");
        return 1;
    }
    whit_graph_run run = whit_graph_all_symbols(graph);
    while (whit_graph_next_symbol(graph, &run, &symbol)) {
        if (symbol.kind == WHIT_SYMBOL_FUNCTION || symbol.kind == WHIT_SYMBOL_TYPE)
            printf("D %s %s\n", symbol.name, symbol.file);
        if (symbol.kind == WHIT_SYMBOL_FUNCTION) print_calls(graph, &symbol);
    }
    for (uint32_t file = 0; file < whit_graph_count(graph).n_files; file++) {
        uint32_t n, first = whit_graph_imports_of(graph, file, &n);
        for (uint32_t i = first; i < first + n; i++) {
            const char *written;
            uint32_t target, line;
            if (whit_graph_import_at(graph, i, &written, &target, &line) && target != WHIT_GRAPH_NONE)
                printf("I %s %s\n", whit_graph_file(graph, file), whit_graph_file(graph, target));
        }
    }
    whit_graph_close(graph);
    return 0;
}
