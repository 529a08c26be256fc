/* SPDX-License-Identifier: MIT
 * One request for text: JSON into jobs of the engine. */
#ifndef WHIT_SERVER_ASK_H
#define WHIT_SERVER_ASK_H

#include "server/replies.h"

enum { WHIT_API_MOST_ANSWERS = 64 }; /* prompts times answers of each */

typedef struct whit_ask whit_ask;

/* How one API writes the answer of a job. Events of a stream go to `out`. */
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

/* State of a stream. */
typedef struct whit_dialect_state {
    bool open; /* a content part has begun */
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

/* Which tool calls a grammar constrains. */
typedef struct whit_ask_calls {
    bool is_held;     /* a grammar constrains the calls */
    bool is_required; /* the answer must consist of calls */
    bool is_single;   /* at most one call per answer */
    json_t *name;     /* the only function that may be called; NULL: any */
} whit_ask_calls;

/* A request in progress: its jobs, and the facts that the reply needs. It owns all its values. */
struct whit_ask {
    whit_api *api;
    bool is_chat, stream, include_usage, echo, tools;
    bool times_tokens, tells_progress; /* llama.cpp's timings_per_token and return_progress */
    bool is_formed;                    /* a schema constrains the answer from its first byte: no thinking before it */
    bool infill;                       /* the answer belongs between the prompt and `suffix` */
    json_t *suffix;                    /* a string; NULL: empty */
    bool ollama, ollama_chat;          /* Ollama's replies; replies of /api/chat */
    uint32_t n, n_each;                /* number of jobs; of answers to each prompt, whose jobs are adjacent */
    whit_job *jobs[WHIT_API_MOST_ANSWERS];
    whit_chat_prompt *prompt;
    whit_ask_calls calls;
    whit_shared_grammar *grammar;                 /* NULL once the jobs are submitted */
    const char *form_param;                       /* name of the request member that contains the grammar, a constant */
    whit_buf prompt_texts[WHIT_API_MOST_ANSWERS]; /* the prompts' texts, for echo */
    char id[40];
    char request_id[132];      /* X-Request-Id of the request; "": absent */
    unsigned long long number; /* number that is part of the id */
    time_t created;
    int fd;
    const char *path;            /* name of the API in the log, a constant */
    uint64_t begun_ns, key;      /* key: a hash */
    uint64_t conversation;       /* hash of the conversation's name; 0: no name */
    char *body;                  /* body of the request, if texts are logged */
    const whit_dialect *dialect; /* NULL: OpenAI's form, or Ollama's */
    whit_dialect_state state;
};
/* Submits the jobs of a request that a dialect has read into OpenAI's form; on failure the reply is filled in and NULL
 * comes back. Takes `own` (NULL: it could not be read, and the
 * reply is filled in already) and `kinds`, the dialect's kinds of tools, which may be NULL. */
whit_ask *whit_ask_open_own(const whit_call *call, json_t *own, json_t *kinds, bool is_chat);
void whit_ask_close(whit_ask *ask); /* cancels unfinished jobs */
/* Reads tools, tool_choice and parallel_tool_calls into `tools` and `calls`. */
bool whit_calls_read(whit_ask *ask, const json_t *body, whit_web_reply *reply);
/* Makes the grammar of an answer that may contain those calls, or that follows `answer_schema` (NULL: any text). */
whit_status whit_calls_open(const whit_ask *ask, const json_t *body, const char *answer_schema, whit_grammar **grammar,
                            whit_error *error);
enum { WHIT_STRENGTH_MAX = 16 }; /* an adapter's strength is between -16 and 16 */
/* Reads adapters and their strengths from "model", "adapters" or "lora"; without these, the site's defaults. */
bool whit_mounts_read(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply);
/* Renders the prompt of a chat request, which the caller frees; false: refused, and the reply says why. */
bool whit_ask_render(const whit_api *api, const json_t *body, bool with_tools, whit_chat_prompt **prompt,
                     whit_web_reply *reply);
/* Tokenizes the prompts of a completion request: a list of lists of ids, the caller's. NULL: refused, and the reply
 * says why. */
json_t *whit_ask_token_lists(whit_api *api, const json_t *body, whit_web_reply *reply);
/* Counts the tokens of a chat request; false: the reply says why not. */
bool whit_ask_count(whit_api *api, const json_t *body, size_t *n_tokens, whit_web_reply *reply);

#endif
