/* SPDX-License-Identifier: MIT
 * Serves the Agent Client Protocol, version 1, by which an editor opens sessions for folders and gives tasks in lines
 * of JSON. */
#ifndef WHIT_AGENT_ACP_H
#define WHIT_AGENT_ACP_H

#include "agent/loop.h"

#include <limits.h>

/* Describes a session to be opened. */
typedef struct whit_acp_wanted {
    /* id NULL: the host's options name the conversation's file; both strings stay valid until close */
    const char *folder, *id;
    json_t *servers; /* MCP servers named by the editor; ownership passes to the host */
    const volatile bool *cancel;
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* receives the answer in pieces */
    void *user;
} whit_acp_wanted;

/* The parts of an open session. The host owns them. */
typedef struct whit_acp_session {
    whit_runner *runner;
    whit_mcp *mcp; /* NULL: the session has no MCP servers */
    const whit_agent_model *answering;
    whit_agent_messages *messages;
    whit_agent_report *report;
} whit_acp_session;

/* Callbacks and settings of the program that owns the models and the conversations. One session is open at a time. */
typedef struct whit_acp_host {
    const char *project, *state_dir;
    bool has_file; /* the options name one conversation file, so no other session can be loaded */
    bool may_write;
    uint32_t n_turns_max, n_tokens_max;
    int in, out; /* descriptors of the connection to the editor */
    const volatile bool *stop;
    /* Finds the model's server if the options name no model. Errors: argument (no server answers). */
    whit_status (*find_server)(void *user, whit_error *error);
    /* Opens a session. Returns false after printing the reason on stderr; `close` is called in that case, too. */
    bool (*open)(void *user, const whit_acp_wanted *wanted, whit_acp_session *session);
    void (*close)(void *user);
    /* Saves the open session's conversation to its file. Errors: io. */
    whit_status (*keep)(void *user, whit_error *error);
    /* Writes the path of a session's conversation file. Errors: io. */
    whit_status (*path)(void *user, const char *folder, const char *id, char path[PATH_MAX], whit_error *error);
    void *user;
} whit_acp_host;

/* Answers the requests of an editor until its input ends or *stop is set. Errors: memory, limit (too many messages at
 * once, or no thread). */
whit_status whit_acp_serve(const whit_acp_host *host, whit_error *error);

#endif
