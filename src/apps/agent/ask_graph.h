/* SPDX-License-Identifier: MIT
 * Answers a model's questions about the project's code graph, an index of definitions and mentions, as text. */
#ifndef WHIT_AGENT_ASK_GRAPH_H
#define WHIT_AGENT_ASK_GRAPH_H

#include "base/mem.h"

#define WHIT_ASK_GRAPH_KINDS                                                                                           \
    "def (where NAME is defined), refs (where it is mentioned), callers, imports (of the file "                        \
    "NAME), like (what has a name and calls like NAME's), map (an outline of the project)"

/* Answers a question about the project's code graph. `query` is one of the kinds above; `name` may be NULL for map.
 * `result` gets the answer or an error message, as lines of text. */
void whit_ask_graph(const char *project, const char *query, const char *name, whit_buf *result);

#endif
