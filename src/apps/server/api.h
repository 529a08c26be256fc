/* SPDX-License-Identifier: MIT
 * The endpoints: requests as JSON into jobs of the engine, and what comes of them back. */
#ifndef WHIT_SERVER_API_H
#define WHIT_SERVER_API_H

#include <jansson.h>

#include "server/engine.h"
#include "server/metrics.h"
#include "server/http.h"
#include "server/server.h"

/* What all models share. */
typedef struct whit_site {
    const whit_server_options *options;
    const atomic_int *stop;
    struct whit_models *models;
    uint8_t (*keys)[32]; /* hashes of API keys */
    size_t n_keys;
    whit_request_log log;
    atomic_ullong n_ids; /* of replies */
    time_t started;
    char page_policy[400]; /* the page's Content-Security-Policy */
} whit_site;

/* One open model, and what requests of it need. */
typedef struct whit_api {
    whit_site *site;
    const char *name;
    whit_model *model;
    const whit_server_options *options; /* the site's, as are stop and log */
    whit_engine *engine;
    whit_chat_template *chat;                 /* NULL: the model has none */
    whit_grammar_vocabulary *vocabulary;      /* NULL: no tokenizer for grammars */
    whit_grammar_vocabulary *call_vocabulary; /* with the special tokens of calls; NULL: the other one has all */
    const atomic_int *stop;
    whit_request_log log;
    whit_adapter *adapters[WHIT_SERVER_MOST_ADAPTERS]; /* of the options, those that are for this model; else NULL */
    /* Under the lock of the site's models: */
    uint32_t n_users;
    bool is_retired; /* replaced: closed by its last user */
    struct whit_api *next_retired;
} whit_api;

/* Reads keys and opens the log. */
whit_status whit_site_open(whit_site *site, whit_error *error);
void whit_site_close(whit_site *site);
whit_engine_options whit_api_engine_options(const whit_server_options *options);

/* Reads files; then whit_api_start, which starts threads and reads none. */
whit_status whit_api_open(whit_api *api, whit_error *error);
whit_status whit_api_start(whit_api *api, whit_error *error);
void whit_api_close(whit_api *api);
void whit_site_handle(void *user, const whit_web_request *request, whit_web_reply *reply);

/* ---- parts of it ------------------------------------------------------------------------------- */

/* Reads the body; `reason` has to last as long as the request. False: a text in it has a zero byte, which ends it for
 * whoever reads C's strings, and the reply says where. */
bool whit_api_parse(whit_web_request *request, json_error_t *reason, whit_web_reply *reply);
/* The body of a request, a JSON object, which is the caller's; NULL: it is none, and the reply says so. */
json_t *whit_api_body(const whit_web_request *request, whit_web_reply *reply);
/* The reply {"error": {...}}; `type` as OpenAI has it. */
void whit_api_fail(whit_web_reply *reply, int status, const char *type, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void whit_api_fail_error(whit_web_reply *reply, const whit_error *error);
/* Gives that reply a "code", by which clients tell errors apart. */
void whit_api_set_code(whit_web_reply *reply, const char *code);
/* One of the replies above in the form that the path's vendor gives errors. */
void whit_api_translate_error(const char *path, whit_web_reply *reply);
void whit_api_reply(whit_web_reply *reply, json_t *body); /* takes the body over */
/* Bytes that need not be UTF-8, or are cut within a character: what is none is replaced. */
json_t *whit_api_any_text(const char *text);
/* The bytes that a token adds to a text, to be freed. */
whit_buf whit_api_token_bytes(const whit_api *api, int32_t id);
/* Whether they are characters, without a zero byte. */
bool whit_api_is_text(const whit_buf *bytes);
json_t *whit_api_byte_list(const whit_buf *bytes);

/* Vectors of a request's member `key` (a text, token ids, or a list of either): (n, whit_model_embedding_size) values,
 * the caller's. False: the reply says why. */
bool whit_api_embed(whit_api *api, const json_t *body, const char *key, int fd, float **values, size_t *n,
                    size_t *n_tokens, whit_web_reply *reply);
void whit_api_embeddings(whit_api *api, const whit_web_request *request, whit_web_reply *reply);

/* Ollama's endpoints; false: the path is none of them. */
bool whit_ollama_route(whit_api *api, const whit_web_request *request, uint64_t key, whit_web_reply *reply);
/* Of several models: lists of them, and the version. */
bool whit_ollama_route_site(whit_site *site, const char *path, whit_web_reply *reply);
typedef struct whit_ask whit_ask;
/* A line of its streams: text or thinking (NULL: none) and tool calls as in OpenAI's message (NULL: none; not taken
 * over). With `done`, the counts and durations of the ended job. */
json_t *whit_ollama_line(const whit_ask *ask, const char *text, size_t n_text, const char *thinking, size_t n_thinking,
                         const json_t *calls, bool done);

void whit_metrics_reply(whit_site *site, whit_web_reply *reply);

/* The page at /. */
void whit_page_open(whit_site *site);
void whit_page_reply(const whit_site *site, whit_web_reply *reply);

enum { WHIT_API_MOST_ANSWERS = 64 }; /* prompts times answers of each */

/* How the answer of one job is written. Events of a stream go to `out`. */
typedef struct whit_dialect {
    json_t *(*whole)(whit_ask *ask, const json_t *choice); /* of OpenAI's choice */
    void (*begin)(whit_ask *ask, whit_buf *out);
    void (*event)(whit_ask *ask, const whit_chat_event *event, whit_buf *out);
    void (*end)(whit_ask *ask, whit_buf *out);
    void (*fail)(whit_ask *ask, const whit_error *error, whit_buf *out);
} whit_dialect;

/* What a stream is in the middle of. */
typedef struct whit_dialect_state {
    bool open; /* a part has begun */
    whit_chat_event_kind kind;
    int index; /* of the part, from 0 */
    uint64_t n_events, n_calls;
    whit_buf text;   /* of the part so far */
    char name[200];  /* a call's */
    json_t *output;  /* parts that are whole */
    json_t *request; /* of which the answer repeats fields; NULL: none */
} whit_dialect_state;

/* What of its tools is held by a grammar. */
typedef struct whit_ask_calls {
    bool is_held;     /* anything is */
    bool is_required; /* the answer is calls */
    bool is_single;   /* at most one */
    const char *name; /* of the only function that may be called; NULL: any. The body's. */
} whit_ask_calls;

/* One request for text: its jobs, and what the reply needs to know. */
struct whit_ask {
    whit_api *api;
    bool is_chat, stream, include_usage, echo, tools;
    bool is_formed;           /* a schema holds the answer from its first byte: no thinking in front */
    bool infill;              /* the answer belongs between the prompt and `suffix` */
    const json_t *suffix;     /* the body's; NULL: empty */
    bool ollama, ollama_chat; /* replies as Ollama has them; those of /api/chat */
    uint32_t n, n_each;       /* jobs; answers of a prompt, whose jobs lie side by side */
    whit_job *jobs[WHIT_API_MOST_ANSWERS];
    whit_chat_prompt *prompt;
    whit_ask_calls calls;
    whit_buf prompt_texts[WHIT_API_MOST_ANSWERS]; /* with echo, by prompt */
    char id[40];
    unsigned long long number; /* in the id */
    time_t created;
    int fd;
    const char *path;            /* of the request; a constant of the routes */
    uint64_t begun_ns, key;      /* key: a hash */
    char *body;                  /* as it came, where texts are logged */
    const whit_dialect *dialect; /* of another vendor; NULL: OpenAI's or Ollama's */
    whit_dialect_state state;
};
/* Reads a request and submits its jobs; on failure the reply is filled in and NULL comes back. */
whit_ask *whit_ask_open(whit_api *api, const whit_web_request *request, uint64_t key, bool is_chat,
                        whit_web_reply *reply);
/* The same of a body that was read already. */
whit_ask *whit_ask_open_body(whit_api *api, const json_t *body, int fd, uint64_t key, bool is_chat,
                             whit_web_reply *reply);
/* Reads tools, tool_choice and parallel_tool_calls into `tools` and `calls`. */
bool whit_calls_read(whit_ask *ask, const json_t *body, whit_web_reply *reply);
/* The grammar of an answer with those calls, or one that follows `answer_schema` (NULL: any text). */
whit_status whit_calls_open(const whit_ask *ask, const json_t *body, const char *answer_schema, whit_grammar **grammar,
                            whit_error *error);
/* Adapters and their strengths, by "model", "adapters" or "lora". */
bool whit_mounts_read(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply);
/* The prompt of a chat request, the caller's; false: the reply says why there is none. */
bool whit_ask_render(const whit_api *api, const json_t *body, bool with_tools, whit_chat_prompt **prompt,
                     whit_web_reply *reply);
/* How many tokens a chat request has; false: the reply says why not. */
bool whit_ask_count(whit_api *api, const json_t *body, size_t *n_tokens, whit_web_reply *reply);
/* Of its first answer, as llama.cpp has them. */
json_t *whit_ask_timings(const whit_ask *ask);
json_t *whit_ask_logprobs(const whit_ask *ask); /* a list by token */
void whit_ask_close(whit_ask *ask);             /* cancels what still runs */
/* Waits for the end and replies, or starts a stream. Takes the ask over. */
void whit_ask_reply(whit_ask *ask, whit_web_reply *reply);

#endif
