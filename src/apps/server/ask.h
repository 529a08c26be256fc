/* SPDX-License-Identifier: MIT
 * Declares a request for generated text, which is converted from JSON to jobs for the engine. */
#ifndef WHIT_SERVER_ASK_H
#define WHIT_SERVER_ASK_H

#include "server/replies.h"

enum { WHIT_API_MOST_ANSWERS = 64 }; /* maximum number of answers per request: prompts times answers for each prompt */

typedef struct whit_ask whit_ask;

/* The functions that write answers in the form of one vendor's API. Events of a stream are appended to `out`. */
typedef struct whit_dialect {
    json_t *(*whole)(whit_ask *ask, const json_t *choice); /* makes a complete answer of an item of OpenAI's
                                                            * "choices" */
    void (*begin)(whit_ask *ask, whit_buf *out);
    void (*event)(whit_ask *ask, const whit_chat_event *event, whit_buf *out);
    void (*end)(whit_ask *ask, whit_buf *out);
    void (*fail)(whit_ask *ask, const whit_error *error, whit_buf *out);
    const char *type;      /* the content type of a stream; NULL: text/event-stream */
    const char *ping;      /* written into a stream after a while without output; NULL: ": still at work" */
    const char *logs_name; /* name of the member that contains log-probabilities; NULL: they are omitted */
} whit_dialect;

/* State of an answer while a vendor's functions write it. */
typedef struct whit_dialect_state {
    bool open; /* a content part has begun and not ended */
    whit_chat_event_kind kind;
    int index; /* index of the current part, from 0 */
    uint64_t n_events, n_calls;
    whit_buf text;                /* text of the current part so far */
    whit_buf tokens;              /* token ids (int32_t) for the next event */
    uint32_t i_job;               /* index of the job whose answer is being written; always 0 in a stream */
    whit_buf logs;                /* log-probabilities for the next event, as JSON text */
    char name[200];               /* name of the current tool call */
    bool is_list, shows_thoughts; /* for Gemini: is_list: the stream is a JSON list; shows_thoughts: thinking is
                                   * included */
    json_t *output;               /* completed parts; for Gemini: the name of the current tool call */
    json_t *kinds;                /* tools of the request that are not functions, by name; may be NULL */
    json_t *request;              /* request whose fields the answer repeats; may be NULL */
} whit_dialect_state;

/* Constraints on the tool calls of an answer. */
typedef struct whit_ask_calls {
    bool is_held;     /* a grammar constrains the calls */
    bool is_required; /* an answer must consist of calls */
    bool is_single;   /* an answer has at most one call */
    json_t *name;     /* the only function that may be called; NULL: any */
} whit_ask_calls;

/* A request in progress: its jobs, and the values that its reply needs. It owns all its values, except those marked as
 * constants. */
struct whit_ask {
    whit_api *api;
    bool is_chat, stream, include_usage, echo, tools;
    bool times_tokens, tells_progress; /* values of llama.cpp's timings_per_token and return_progress */
    /* an answer follows a schema from its first byte, so it has no thinking section before */
    bool is_formed;
    bool infill;              /* the answer is text between the prompt and `suffix` */
    json_t *suffix;           /* a string; NULL: empty */
    bool ollama, ollama_chat; /* ollama: the reply has Ollama's form; ollama_chat: the request came to /api/chat */
    /* n: number of jobs; n_each: number of answers per prompt; jobs of the same prompt are adjacent */
    uint32_t n, n_each;
    whit_job *jobs[WHIT_API_MOST_ANSWERS];
    whit_chat_prompt *prompt;
    whit_ask_calls calls;
    whit_shared_grammar *grammar; /* the grammar that answers follow; NULL without one, and after the jobs were
                                   * submitted */
    /* name of the request's member that determines the grammar, for errors; a constant */
    const char *form_param;
    whit_buf prompt_texts[WHIT_API_MOST_ANSWERS]; /* texts of the prompts, for "echo" */
    char id[40];
    char request_id[132];      /* header X-Request-Id of the request; "" if absent or not usable */
    unsigned long long number; /* number of the request, which is part of its id */
    time_t created;
    int fd;
    const char *path;            /* name of the API for the log; NULL: "chat" or "completion"; a constant */
    uint64_t begun_ns, key;      /* key: hash of the API key, 0 without one */
    uint64_t conversation;       /* hash of the conversation's name; 0: it has no name */
    char *body;                  /* body of the request in OpenAI's form, if the log includes texts; otherwise NULL */
    const whit_dialect *dialect; /* functions of a vendor's API; NULL: the reply has OpenAI's or Ollama's form */
    whit_dialect_state state;
};
/* Submits the jobs of a request whose body was converted to OpenAI's form. On failure fills in the reply and returns
 * NULL. Takes ownership of `own`, the converted body (NULL: the conversion has failed and filled in the reply), and of
 * `kinds`, the request's tools that are not functions, which may be NULL. */
whit_ask *whit_ask_open_own(const whit_call *call, json_t *own, json_t *kinds, bool is_chat);
void whit_ask_close(whit_ask *ask); /* also cancels unfinished jobs */
/* Reads the members tools, tool_choice and parallel_tool_calls into ask->tools and ask->calls; on failure fills in the
 * reply and returns false. */
bool whit_calls_read(whit_ask *ask, const json_t *body, whit_web_reply *reply);
/* Compiles the grammar of an answer that consists of calls to the request's tools or, unless calls are required, of a
 * text that follows `answer_schema` (NULL: any text). */
whit_status whit_calls_open(const whit_ask *ask, const json_t *body, const char *answer_schema, whit_grammar **grammar,
                            whit_error *error);
enum { WHIT_STRENGTH_MAX = 16 }; /* an adapter's strength is from -16 to 16 */
/* Reads the adapters of a job and their strengths from "model" (if it is the name of an adapter), "adapters" and
 * "lora". Without these, even empty ones, uses the strengths of /lora-adapters for the adapters that job->key may use.
 * On failure fills in the reply and returns false. */
bool whit_mounts_read(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply);
/* Returns whether the request itself names adapters, by "adapters", "lora" or the model's name. */
bool whit_mounts_are_named(const whit_api *api, const json_t *body);
/* Renders the prompt of a chat request; the caller frees it. If the request is refused, fills in the reply and returns
 * false. */
bool whit_ask_render(const whit_api *api, const json_t *body, bool with_tools, whit_chat_prompt **prompt,
                     whit_web_reply *reply);
/* Tokenizes the prompts of a completion request. Returns a list with a list of ids for each prompt, which the caller
 * owns. If the request is refused, fills in the reply and returns NULL. */
json_t *whit_ask_token_lists(whit_api *api, const json_t *body, whit_web_reply *reply);
/* Counts the tokens of a chat request. If the request is refused, fills in the reply and returns false. */
bool whit_ask_count(whit_api *api, const json_t *body, size_t *n_tokens, whit_web_reply *reply);

#endif
