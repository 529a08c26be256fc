/* SPDX-License-Identifier: MIT
 * whit: run language models with 1-bit, ternary and 2-bit weights on an ordinary CPU.
 *
 * The whole public interface. A *model* is a file mapped into memory; it never changes and may be
 * shared by threads. A *session* holds a compiled plan, worker threads and the KV caches of one or
 * more *sequences*; it belongs to one thread at a time. A *sampler* picks a token from logits.
 *
 * Every fallible function returns a whit_status and writes a line for people into `error` (which
 * may be NULL). On failure nothing is handed out and out-parameters are left NULL or 0; on success
 * the caller owns what was handed out and closes it. Every close accepts NULL.
 *
 * The library has no global state, prints nothing, installs no signal handler and never exits.
 * The same model, tokens and settings give the same bits on every CPU, thread count and batch.
 */
#ifndef WHIT_H
#define WHIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WHIT_API __attribute__((visibility("default")))
#else
#define WHIT_API
#endif

/* ---- status and errors --------------------------------------------------------------------- */

typedef enum whit_status {
    WHIT_OK = 0,
    WHIT_ERROR_ARGUMENT,    /* the caller's request makes no sense */
    WHIT_ERROR_MEMORY,      /* an allocation failed or a stated limit was reached */
    WHIT_ERROR_IO,          /* the operating system refused a file or a read */
    WHIT_ERROR_FORMAT,      /* a file is damaged, cut short or not what it says */
    WHIT_ERROR_UNSUPPORTED, /* sound, but not something this build can do */
    WHIT_ERROR_LIMIT,       /* a context, a length or a bound is full */
    WHIT_ERROR_CANCELLED,   /* a cancel flag or a callback asked to stop */
    WHIT_ERROR_NUMERIC,     /* logits are not finite */
} whit_status;

typedef struct whit_error {
    whit_status status;
    char message[504]; /* one line: file, place, reason, what to do; always terminated */
} whit_error;

WHIT_API const char *whit_version(void);
WHIT_API const char *whit_status_name(whit_status status);

/* Memory comes from here when given; NULL members mean malloc and free. `alloc` returns memory
 * aligned to `align_bytes` (a power of two) or NULL; it may be called from any thread. */
typedef struct whit_allocator {
    void *(*alloc)(void *user, size_t size_bytes, size_t align_bytes);
    void (*free)(void *user, void *memory, size_t size_bytes);
    void *user;
} whit_allocator;

/* Called now and then during long work with a share in [0, 1]; return false to cancel. */
typedef bool whit_progress_fn(void *user, const char *what, double share);

/* ---- models -------------------------------------------------------------------------------- */

typedef struct whit_model whit_model;
typedef struct whit_model_options {
    const whit_allocator *allocator; /* default NULL: malloc */
    const char *cache_dir;           /* converted sources; NULL: $XDG_CACHE_HOME/whit */
    bool no_cache;                   /* convert in memory, write nothing */
    whit_progress_fn *progress;      /* of a conversion */
    void *progress_user;
} whit_model_options;
WHIT_API whit_model_options whit_model_options_default(void);

/* Opens an .ndf in place, or any readable source through the conversion cache. */
WHIT_API whit_status whit_model_open(const char *path, const whit_model_options *options, whit_model **model,
                                     whit_error *error);
/* The same for bytes in memory, 64-byte aligned, that stay until the model is closed. */
WHIT_API whit_status whit_model_open_memory(const void *data, size_t size_bytes, const char *name,
                                            const whit_allocator *allocator, whit_model **model, whit_error *error);
WHIT_API void whit_model_close(whit_model *model);

WHIT_API uint32_t whit_model_vocab_size(const whit_model *model);
WHIT_API uint32_t whit_model_context_size(const whit_model *model); /* as trained, in tokens */
WHIT_API uint32_t whit_model_embedding_size(const whit_model *model);
/* One field of the model's metadata as text, in place; NULL where it is absent or not text. */
WHIT_API const char *whit_model_metadata(const whit_model *model, const char *key);
/* The model's identity: a digest of configuration, tokenizer and weights; 32 bytes. */
WHIT_API const uint8_t *whit_model_identity(const whit_model *model);
/* Mapped files, for hosts that want to name one when it is cut short under them (SIGBUS):
 * the i-th range and its path; false where there is no i-th. */
WHIT_API bool whit_model_mapping(const whit_model *model, size_t i, const void **address, size_t *size_bytes,
                                 const char **path);

/* ---- text and tokens ----------------------------------------------------------------------- */

WHIT_API bool whit_model_has_tokenizer(const whit_model *model);
/* Text (any bytes) to ids. `add_special` puts BOS and the like where the model wants them;
 * `parse_special` recognises special tokens written in the text. *n_ids is the number found, also
 * where it exceeds `capacity` (then WHIT_ERROR_LIMIT and nothing useful is in `ids`). */
WHIT_API whit_status whit_tokenize(const whit_model *model, const char *text, size_t text_bytes, bool add_special,
                                   bool parse_special, int32_t *ids, size_t capacity, size_t *n_ids, whit_error *error);
WHIT_API int32_t whit_model_bos(const whit_model *model);             /* -1 where there is none */
WHIT_API bool whit_model_is_end(const whit_model *model, int32_t id); /* end of text or turn */

/* Ids to text, as a stream: a piece is printed only once it can no longer change and never ends
 * inside a UTF-8 character. */
typedef struct whit_detokenizer whit_detokenizer;
WHIT_API whit_status whit_detokenizer_open(const whit_model *model, bool skip_special, whit_detokenizer **detokenizer,
                                           whit_error *error);
/* The text that became final with `id`; owned by the stream, valid until its next call. */
WHIT_API whit_status whit_detokenizer_push(whit_detokenizer *detokenizer, int32_t id, const char **text,
                                           size_t *text_bytes, whit_error *error);
WHIT_API whit_status whit_detokenizer_flush(whit_detokenizer *detokenizer, const char **text, size_t *text_bytes,
                                            whit_error *error);
WHIT_API void whit_detokenizer_close(whit_detokenizer *detokenizer);

/* ---- sessions ------------------------------------------------------------------------------ */

typedef struct whit_session whit_session;
typedef enum whit_kv_type { WHIT_KV_F16 = 0, WHIT_KV_F32 = 1, WHIT_KV_I8 = 2 } whit_kv_type;
/* Activations of coded weights (ternary BitLinear and float matrices have their own, fixed way). */
typedef enum whit_act_type { WHIT_ACT_F32 = 0, WHIT_ACT_I8 = 1 } whit_act_type;

typedef struct whit_session_options {
    uint32_t n_ctx_tokens;       /* per sequence; default 0: as trained, at most 4,096 */
    uint32_t n_batch_tokens;     /* most tokens in one pass; default 512 */
    uint32_t n_sequences;        /* default 1 */
    uint32_t n_threads;          /* default 0: physical cores */
    whit_kv_type kv;             /* default f16 */
    whit_act_type act;           /* default i8 */
    uint32_t n_logits;           /* most wanted tokens of a step; default 0: n_sequences */
    bool keep_hidden;            /* keep final hidden states, for whit_session_hidden */
    bool exact_head;             /* read the whole head also where n_top is set */
    bool no_fuse;                /* run every operation by itself: the same bits, slower; for checks */
    const char *cpu;             /* cap of the ISA level, as WHIT_CPU; NULL or "": none */
    const volatile bool *cancel; /* looked at between layers; may be set from a signal handler */
} whit_session_options;
WHIT_API whit_session_options whit_session_options_default(void);
WHIT_API whit_status whit_session_open(const whit_model *model, const whit_session_options *options,
                                       whit_session **session, whit_error *error);
WHIT_API void whit_session_close(whit_session *session);

/* One token of one sequence. A step takes tokens of any sequences, each continuing its own.
 * With n_top > 0 only the n_top largest logits need be right (to the bit); the others may then be
 * estimates, every one below those. That lets a head of codec i8s be read by half: the high halves
 * of its weights rule out the rows that cannot be among the largest, by a bound of eight standard
 * errors, and only the rest are read whole (exact_head turns that off). */
typedef struct whit_step_token {
    uint32_t sequence;
    int32_t id;
    bool want_logits;
    uint32_t n_top; /* default 0: all logits */
} whit_step_token;

/* Runs tokens through the model (any number; split into batches inside). Either all tokens are
 * appended to their sequences or, on failure, none. Logits of the wanted ones are kept until the
 * next step, in order, (n_wanted, vocab) f32; at most n_logits may be wanted at once. */
WHIT_API whit_status whit_session_step(whit_session *session, const whit_step_token *tokens, size_t n_tokens,
                                       whit_error *error);
WHIT_API const float *whit_session_logits(const whit_session *session, size_t i_wanted);
/* Hidden state after the final norm of the same tokens, (n_embd) f32; needs keep_hidden. */
WHIT_API const float *whit_session_hidden(const whit_session *session, size_t i_wanted);
WHIT_API uint32_t whit_session_position(const whit_session *session, uint32_t sequence);
/* Forgets the tokens of a sequence from `n_tokens` on (0: all). */
WHIT_API whit_status whit_session_truncate(whit_session *session, uint32_t sequence, uint32_t n_tokens,
                                           whit_error *error);
/* Makes sequence `to` the first n_tokens of `from`: a common beginning is kept once. Where both are the
 * same, it is cut to those. */
WHIT_API whit_status whit_session_share(whit_session *session, uint32_t from, uint32_t to, uint32_t n_tokens,
                                        whit_error *error);
WHIT_API uint32_t whit_session_context_size(const whit_session *session);
WHIT_API size_t whit_session_arena_bytes(const whit_session *session); /* all but for adapters */

/* ---- adapters ------------------------------------------------------------------------------ */

/* An int8 low-rank addition to the matrices of one model. It refers to the model, which outlives
 * it; like the model it never changes and may be shared by threads and sessions. */
typedef struct whit_adapter whit_adapter;

/* Opens an adapter by the name of one in the model's own file, else as a file of its own. One that
 * was made for another model (by identity) is refused. */
WHIT_API whit_status whit_adapter_open(const whit_model *model, const char *name, whit_adapter **adapter,
                                       whit_error *error);
WHIT_API void whit_adapter_close(whit_adapter *adapter);
WHIT_API uint32_t whit_adapter_rank(const whit_adapter *adapter); /* the largest of its matrices */
/* As whit_model_mapping, of the adapter's own file; false where it has none. */
WHIT_API bool whit_adapter_mapping(const whit_adapter *adapter, const void **address, size_t *size_bytes,
                                   const char **path);

#define WHIT_MOUNTS_MAX 8

typedef struct whit_mount {
    const whit_adapter *adapter;
    float scale; /* its strength: 1 is as made, 0 is as if it were not there */
} whit_mount;

/* Mounts adapters (n at most WHIT_MOUNTS_MAX, together their sum) on a sequence in place of those it
 * has, until another call; 0: none. They must stay open so long. Costs next to nothing and changes
 * nothing of other sequences. Tokens that the sequence holds already stay as they were computed. */
WHIT_API whit_status whit_session_mount(whit_session *session, uint32_t sequence, const whit_mount *mounts, size_t n,
                                        whit_error *error);
/* The bytes that a session will take: its arena and, beside it, what mounting these takes (n may be
 * 0). Its sequences share that: of the predictions for the mounts of each, the largest holds. */
WHIT_API whit_status whit_session_predict_bytes(const whit_model *model, const whit_session_options *options,
                                                const whit_mount *mounts, size_t n, size_t *bytes, whit_error *error);

/* ---- sampling ------------------------------------------------------------------------------ */

typedef struct whit_sampler whit_sampler;
/* llama.cpp's chain, names, order and defaults: penalties, dry, top_n_sigma, top_k, typical,
 * top_p, min_p, xtc, temperature. */
typedef struct whit_sampler_options {
    uint64_t seed;              /* default 0 */
    float temperature;          /* 0.8; 0 is greedy */
    float dynatemp_range;       /* 0: off */
    float dynatemp_exponent;    /* 1 */
    int32_t top_k;              /* 40; 0 is off */
    float top_p;                /* 0.95; 1 is off */
    float min_p;                /* 0.05; 0 is off */
    float typical_p;            /* 1: off */
    float top_n_sigma;          /* -1: off */
    float xtc_probability;      /* 0: off */
    float xtc_threshold;        /* 0.1 */
    float repeat_penalty;       /* 1: off */
    float presence_penalty;     /* 0 */
    float frequency_penalty;    /* 0 */
    int32_t penalty_last_n;     /* 64; 0 is off, -1 the whole context */
    float dry_multiplier;       /* 0: off */
    float dry_base;             /* 1.75 */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_penalty_last_n; /* -1: the whole context */
    int32_t mirostat;           /* 0: off; 1, 2 */
    float mirostat_tau;         /* 5 */
    float mirostat_eta;         /* 0.1 */
    const int32_t *bias_ids;    /* logit biases, n_biases of them; copied at open */
    const float *bias_values;
    size_t n_biases;
    uint32_t n_history_tokens; /* most tokens remembered for penalties; default 4,096 */
} whit_sampler_options;
WHIT_API whit_sampler_options whit_sampler_options_default(void);
WHIT_API whit_status whit_sampler_open(const whit_model *model, const whit_sampler_options *options,
                                       whit_sampler **sampler, whit_error *error);
/* Picks an id from (vocab) logits, which are left as they are, and remembers it. */
WHIT_API whit_status whit_sampler_pick(whit_sampler *sampler, const float *logits, int32_t *id, whit_error *error);
/* For n_top of the step in front of a pick: how many of the largest logits its picks depend on, 0:
 * on all. */
WHIT_API uint32_t whit_sampler_n_top(const whit_sampler *sampler);
WHIT_API void whit_sampler_accept(whit_sampler *sampler, int32_t id); /* prompt tokens, for penalties */
WHIT_API void whit_sampler_reset(whit_sampler *sampler);
WHIT_API void whit_sampler_close(whit_sampler *sampler);

/* ---- generation in one call ---------------------------------------------------------------- */

typedef enum whit_finish { WHIT_FINISH_LENGTH, WHIT_FINISH_END, WHIT_FINISH_STOP, WHIT_FINISH_CANCELLED } whit_finish;

/* Text as it becomes final; return false to stop. Stop strings are held back, never shown. */
typedef bool whit_text_fn(void *user, const char *text, size_t text_bytes);
/* An id as it is picked, before its text; return false to end there, as in front of an end token. */
typedef bool whit_token_fn(void *user, int32_t id);

typedef struct whit_generate_options {
    uint32_t sequence;       /* default 0 */
    uint32_t n_present;      /* so many of the first ids are in the sequence already (all that is
                                   in it): they are not computed again; default 0 */
    uint32_t n_tokens;       /* most tokens to generate; default 128 */
    bool ignore_end;         /* go on after end tokens */
    uint32_t n_draft_tokens; /* guess up to so many from the text before: the same output, faster
                                   where texts repeat; needs n_logits of one more; default 0 */
    const char *const *stop; /* stop strings */
    size_t n_stop;
    whit_text_fn *on_text;
    whit_token_fn *on_token;
    void *user;
} whit_generate_options;

typedef struct whit_generate_result {
    uint32_t n_prompt_tokens, n_generated_tokens;
    uint64_t prompt_ns, generate_ns;
    whit_finish finish;
} whit_generate_result;

WHIT_API whit_generate_options whit_generate_options_default(void);
/* Feeds `ids` to the sequence and generates after them. The output depends on all of `ids`, not on
 * how many of them were present. `result` may be NULL; it counts the ids that were fed. */
WHIT_API whit_status whit_generate(whit_session *session, whit_sampler *sampler, const int32_t *ids, size_t n_ids,
                                   const whit_generate_options *options, whit_generate_result *result,
                                   whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
