/* SPDX-License-Identifier: MIT
 * Handles chats as items of a measurement (compare, eval): they are read from lines of JSON, answered greedily, and
 * judged. */
#ifndef WHIT_CLI_CHAT_ITEMS_H
#define WHIT_CLI_CHAT_ITEMS_H

#include "base/items.h"
#include "cli/cli.h"
#include "whit/conversation.h"

/* Represents a line of the file: {"messages": [...], "tools": [...], "answer": TEXT, "calls": bool}, or {"prompt":
 * TEXT}. */
typedef struct cli_chat_item {
    size_t line;
    json_t *object;
    char *messages, *tools; /* JSON; tools NULL: no tools */
    const char *wanted;     /* an answer is right if it has this text; NULL: not judged */
    bool must_call;         /* "calls": true: a grammar constrains the answer to calls that follow the schema */
} cli_chat_item;

typedef struct cli_chat_items {
    cli_chat_item *items;
    size_t n;
    bool has_tools, has_wanted; /* at least one item has tools; at least one item has a wanted text */
} cli_chat_items;

/* Reads a file of items. The result is CLI_OK or a status already reported; free the items in every case. */
int cli_chat_items_read(cli_call *call, const char *path, cli_chat_items *items);
void cli_chat_items_free(cli_chat_items *items);

/* Holds one answer; if zero-initialised, it is empty. */
typedef struct cli_chat_answer {
    whit_buf text; /* as the model writes it, with markers of calls and thinking */
    whit_buf ids;  /* int32_t[]: ids of the prompt and of the answer, except the answer's last id */
    size_t n_prompt;
    /* Counts all calls, the calls whose arguments are an object, and the calls for which the tool's schema holds. */
    uint32_t n_calls, n_parsed, n_valid;
    bool is_right, is_held; /* contains the expected text; a grammar constrained its calls */
} cli_chat_answer;
void cli_chat_answer_free(cli_chat_answer *answer);

/* Holds sums over chats; if zero-initialised, they are empty. */
typedef struct cli_chat_tally {
    size_t n;                          /* chats */
    size_t n_wanted, n_right;          /* chats with a wanted text; right answers */
    size_t n_tooled, n_calling;        /* chats with tools; answers that call */
    size_t n_calls, n_parsed, n_valid; /* as in cli_chat_answer */
    bool is_held;                      /* a grammar constrained calls */
} cli_chat_tally;

void cli_chat_tally_add(cli_chat_tally *tally, const cli_chat_item *item, const cli_chat_answer *answer);
/* Reports on stderr that a grammar constrained calls, if so. */
void cli_chat_tally_note(const cli_chat_tally *tally);

/* Answers an item in a new conversation of the session, always with the likeliest token, at most n_tokens. The result
 * is CLI_OK or a status already reported. */
int cli_chat_items_answer(cli_call *call, const cli_chat_item *item, const char *path, const whit_model *model,
                          whit_session *session, const whit_chat_template *chat, uint32_t n_tokens,
                          cli_chat_answer *answer);

/* Opens the model's own chat template, with tools described in words if it does not know tools. */
int cli_chat_items_template(cli_call *call, const whit_model *model, whit_chat_template **chat);

#endif
