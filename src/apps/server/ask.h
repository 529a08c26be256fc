/* SPDX-License-Identifier: MIT
 * Handles one request for text: converts its JSON to jobs of the engine. */
#ifndef WHIT_SERVER_ASK_H
#define WHIT_SERVER_ASK_H

#include "server/replies.h"

enum { WHIT_API_MOST_ANSWERS = 64 }; /* maximum of prompts times answers of each prompt */

typedef struct whit_ask whit_ask;

/* Holds the functions with which a vendor's API writes the answer of a job. Events of a stream are appended to
 * `out`. */
typedef struct whit_dialect {
    json_t *(*whole)(whit_ask *ask, const json_t *choice); /* builds a whole answer from OpenAI's choice */
    void (*begin)(whit_ask *ask, whit_buf *out);
    void (*event)(whit_ask *ask, const whit_chat_event *event, whit_buf *out);
    void (*end)(whit_ask *ask, whit_buf *out);
    void (*fail)(whit_ask *ask, const whit_error *error, whit_buf *out);
    const char *type;      /* the content type of a stream; NULL: text/event-stream */
    const char *ping;      /* written after a while without output; NULL: ": still at work" */
    const char *logs_name; /* name of the member for log-probabilities; NULL: they are omitted */
} whit_dialect;

/* Holds the state of a stream. */
typedef struct whit_dialect_state {
    bool open; /* a content part was begun and not ended */
    whit_chat_event_kind kind;
    int index; /* index of the part, from 0 */
    uint64_t n_events, n_calls;
    whit_buf text;                /* text of the part so far */
    whit_buf tokens;              /* int32_t ids that the next event includes */
    uint32_t i_job;               /* index of the answer that is being written */
    whit_buf logs;                /* log-probabilities that the next event includes, as JSON */
    char name[200];               /* name of the call */
    bool is_list, shows_thoughts; /* for Gemini: stream as a list; include thinking */
    json_t *output;               /* completed parts */
    json_t *kinds;                /* tools of the request that are not functions, by name; may be NULL */
    json_t *request;              /* request whose fields the answer repeats; may be NULL */
} whit_dialect_state;

/* Holds the constraints on the tool calls of an answer. */
typedef struct whit_ask_calls {
    bool is_held;     /* a grammar constrains the calls */
    bool is_required; /* the answer must consist of calls */
    bool is_single;   /* at most one call per answer */
    json_t *name;     /* the only function that may be called; NULL: any */
} whit_ask_calls;

/* Describes a request in progress: its jobs, and the values that its reply needs. It owns all its values. */
struct whit_ask {
    whit_api *api;
    bool is_chat, stream, include_usage, echo, tools;
    bool times_tokens, tells_progress; /* llama.cpp's timings_per_token and return_progress */
    /* a schema constrains the answer from its first byte, so no thinking precedes it */
    bool is_formed;
    bool infill;              /* the answer belongs between the prompt and `suffix` */
    json_t *suffix;           /* a string; NULL: empty */
    bool ollama, ollama_chat; /* the reply has Ollama's form; it is a reply of /api/chat */
    /* n: number of jobs; n_each: number of answers to each prompt, whose jobs are adjacent */
    uint32_t n, n_each;
    whit_job *jobs[WHIT_API_MOST_ANSWERS];
    whit_chat_prompt *prompt;
    whit_ask_calls calls;
    whit_shared_grammar *grammar; /* grammar of the answers; NULL after the jobs were submitted */
    /* name of the request's member that contains the grammar; a constant */
    const char *form_param;
    whit_buf prompt_texts[WHIT_API_MOST_ANSWERS]; /* the prompts' texts, for echo */
    char id[40];
    char request_id[132];      /* X-Request-Id of the request; "": absent */
    unsigned long long number; /* number that is part of the id */
    time_t created;
    int fd;
    const char *path;            /* name of the API in the log; a constant */
    uint64_t begun_ns, key;      /* key: hash of the API key */
    uint64_t conversation;       /* hash of the conversation's name; 0: no name */
    char *body;                  /* body of the request, if texts are logged */
    const whit_dialect *dialect; /* functions of a vendor's API; NULL: the reply has OpenAI's or Ollama's form */
    whit_dialect_state state;
};
/* Submits the jobs of a request that a dialect has converted to OpenAI's form; on failure fills in the reply and
 * returns NULL. Takes ownership of `own` (NULL: it could not be read, and the reply is already filled in) and of
 * `kinds`, the dialect's kinds of tools, which may be NULL. */
whit_ask *whit_ask_open_own(const whit_call *call, json_t *own, json_t *kinds, bool is_chat);
void whit_ask_close(whit_ask *ask); /* cancels unfinished jobs */
/* Reads tools, tool_choice and parallel_tool_calls into `tools` and `calls`. */
bool whit_calls_read(whit_ask *ask, const json_t *body, whit_web_reply *reply);
/* Makes the grammar of an answer that may contain these calls, or that follows `answer_schema` (NULL: any text). */
whit_status whit_calls_open(const whit_ask *ask, const json_t *body, const char *answer_schema, whit_grammar **grammar,
                            whit_error *error);
enum { WHIT_STRENGTH_MAX = 16 }; /* an adapter's strength is between -16 and 16 */
/* Reads adapters and their strengths from "model", "adapters" or "lora"; if all are absent, uses the site's
 * defaults. */
bool whit_mounts_read(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply);
/* Renders the prompt of a chat request; the caller frees it. Returns false if the request is refused, and fills in the
 * reply. */
bool whit_ask_render(const whit_api *api, const json_t *body, bool with_tools, whit_chat_prompt **prompt,
                     whit_web_reply *reply);
/* Tokenizes the prompts of a completion request. Returns a list of lists of ids, which the caller owns; NULL if the
 * request is refused, and fills in the reply. */
json_t *whit_ask_token_lists(whit_api *api, const json_t *body, whit_web_reply *reply);
/* Counts the tokens of a chat request; returns false if the request is refused, and fills in the reply. */
bool whit_ask_count(whit_api *api, const json_t *body, size_t *n_tokens, whit_web_reply *reply);

#endif
