/* SPDX-License-Identifier: MIT
 * Questions to a project's code graph, answered with text, for models. */
#ifndef WHIT_AGENT_ASK_GRAPH_H
#define WHIT_AGENT_ASK_GRAPH_H

#include "base/mem.h"

#define WHIT_ASK_GRAPH_KINDS                                                                                           \
    "def (where NAME is defined), refs (where it is mentioned), callers, imports (of the file "                        \
    "NAME), like (what has a name and calls like NAME's), map (an outline of the project)"

/* `query` is one of those; `name` may be NULL for map. `result` gets lines in every case. */
void whit_ask_graph(const char *project, const char *query, const char *name, whit_buf *result);

#endif
