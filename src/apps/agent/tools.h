/* SPDX-License-Identifier: MIT
 * Runs the tools that a model may call. Reading happens at once; writing is only staged for a person's approval. */
#ifndef WHIT_AGENT_TOOLS_H
#define WHIT_AGENT_TOOLS_H

#include "agent/mcp.h"
#include "agent/runs.h"

#include <jansson.h>

#define WHIT_TOOL_RESULT_BYTES 16384 /* maximum size of a result in bytes; a longer one is cut, with a note */

#define WHIT_TOOL_AGENT "agent" /* name of the tool that starts a sub-agent; run by loop.c */

typedef struct whit_tool_place {
    const char *project; /* the project's folder, with links resolved */
    /* changes staged by the current answer, and the texts that are open in an editor */
    whit_changes *staged;
    whit_runner *runner; /* NULL: there is no tool that runs commands */
    whit_mcp *mcp;       /* NULL: there are no MCP servers */
    bool is_alone;       /* no person can approve or answer */
    bool only_reads;     /* a plan is made: a person must approve each call of a server */
    /* Shows a staged change before a command is asked about that would run on it outside the sandbox. */
    whit_status (*show)(void *user, const whit_change *change, whit_error *error);
    /* Asks the person to approve the action that `reason` describes; n_files is 0. */
    bool (*agreed)(void *user, const char *reason, size_t n_files);
    /* Asks the person a question and appends the answer. Returns false if no person can answer. */
    bool (*ask)(void *user, const char *question, whit_buf *answer);
    whit_buf *why;               /* `agreed` appends the person's words about a refusal here; may be NULL */
    const volatile bool *cancel; /* ends a search when it becomes true; NULL: searches are never cancelled */
    void *user;
} whit_tool_place;

/* Appends a question, which consists of `begin` and `text` with every byte made visible (whit_plain_show), and a zero
 * byte. Returns false if it is too long for a person to read, or if memory runs out. */
bool whit_tool_reason(whit_buf *reason, const char *begin, const char *text);

/* Returns the value for the member "tools" of a request. may_run: includes the tool that runs commands. NULL means that
 * memory ran out. */
json_t *whit_tools_schema(bool may_run);

/* Describes a call in one line for a person, such as "reads src/a.c, lines 3 to 9". The line contains no control
 * characters. */
#define WHIT_TOOL_LINE_BYTES 240
void whit_tool_tell(const char *name, const char *arguments, char line[WHIT_TOOL_LINE_BYTES]);

/* Runs a call. `result` gets text for the model in every case: a path that is outside the project, malformed or absent
 * gives an error text, too. Returns true if the call staged a change. */
bool whit_tool_call(const whit_tool_place *place, const char *name, const char *arguments, whit_buf *result);
/* Like whit_tool_call(), for a patch that came as text, without a call. Hunks without a file name change the file
 * `path` (may be NULL). */
bool whit_tool_patch(const whit_tool_place *place, const char *patch, size_t n_bytes, const char *path,
                     whit_buf *result);

#endif
