/* SPDX-License-Identifier: MIT
 * Declares chats as items of a measurement (whit compare, whit eval): they are read from lines of JSON, answered
 * greedily, and judged. */
#ifndef WHIT_CLI_CHAT_ITEMS_H
#define WHIT_CLI_CHAT_ITEMS_H

#include "base/items.h"
#include "cli/cli.h"
#include "whit/conversation.h"

/* A line of the file: {"messages": [...], "tools": [...], "answer": TEXT, "calls": bool}, where "prompt": TEXT may
 * replace "messages"; the other members may be absent. */
typedef struct cli_chat_item {
    size_t line;
    json_t *object;
    char *messages, *tools; /* JSON texts; tools: NULL without tools */
    const char *wanted;     /* an answer that contains this text is right; NULL: answers are not judged */
    bool must_call;         /* value of "calls": the answer must consist of calls; a grammar makes them follow the
                             * tools' schemas */
} cli_chat_item;

typedef struct cli_chat_items {
    cli_chat_item *items;
    size_t n;
    bool has_tools, has_wanted; /* has_tools: at least one item has tools; has_wanted: at least one has `wanted` */
} cli_chat_items;

/* Reads a file of items. Returns CLI_OK, or a status that was already reported; the caller frees the items in both
 * cases. */
int cli_chat_items_read(cli_call *call, const char *path, cli_chat_items *items);
void cli_chat_items_free(cli_chat_items *items);

/* An answer to an item; zero-initialised, it is empty. */
typedef struct cli_chat_answer {
    whit_buf text; /* text of the answer as the model generates it, including markers of calls and thinking */
    whit_buf ids;  /* array of int32_t: ids of the prompt and of the answer, without the last id of the answer */
    size_t n_prompt;
    /* number of all calls, of calls whose arguments are a JSON object, and of calls that follow the tool's schema */
    uint32_t n_calls, n_parsed, n_valid;
    bool is_right, is_held; /* is_right: contains the wanted text; is_held: a grammar constrained the calls */
} cli_chat_answer;
void cli_chat_answer_free(cli_chat_answer *answer);

/* Sums over chats; zero-initialised, they are empty. */
typedef struct cli_chat_tally {
    size_t n;                          /* number of chats */
    size_t n_wanted, n_right;          /* number of chats with a wanted text, and of right answers */
    size_t n_tooled, n_calling;        /* number of chats with tools, and of answers with calls */
    size_t n_calls, n_parsed, n_valid; /* sums of the same members of cli_chat_answer */
    bool is_held;                      /* a grammar constrained the calls of some answer */
} cli_chat_tally;

void cli_chat_tally_add(cli_chat_tally *tally, const cli_chat_item *item, const cli_chat_answer *answer);
/* If a grammar constrained calls, says so on stderr. */
void cli_chat_tally_note(const cli_chat_tally *tally);

/* Answers an item greedily, with at most n_tokens tokens, in a new conversation of the session. Returns CLI_OK, or a
 * status that was already reported. */
int cli_chat_items_answer(cli_call *call, const cli_chat_item *item, const char *path, const whit_model *model,
                          whit_session *session, const whit_chat_template *chat, uint32_t n_tokens,
                          cli_chat_answer *answer);

/* Opens the model's own chat template. If it does not support tools, they are described in words. */
int cli_chat_items_template(cli_call *call, const whit_model *model, whit_chat_template **chat);

#endif
