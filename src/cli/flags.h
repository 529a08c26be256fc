/* SPDX-License-Identifier: MIT
 * Declares options that several verbs share, and functions that open models, sessions and samplers from them. */
#ifndef WHIT_CLI_FLAGS_H
#define WHIT_CLI_FLAGS_H

#include "cli/cli.h"
#include "whit/steps.h"

#include <sys/types.h>

/* The text of an option or a file. */
typedef struct cli_text {
    char *data; /* zero-terminated; from malloc, the caller frees it */
    size_t size_bytes;
} cli_text;
/* Calls read(2), but Ctrl-C, SIGTERM and SIGCONT interrupt it: then returns -1 with errno EINTR. */
ssize_t cli_read_some(int fd, char *data, size_t size_bytes);
/* Reads a whole text file, or stdin for "-"; refuses files that cli_check_text refuses. Returns CLI_OK, or an exit
 * status after a message. */
int cli_read_text(cli_call *call, const char *path, cli_text *text);
/* Returns a description of a file that is not text, judged by its first bytes, and how to read it; NULL: it may be
 * text. */
const char *cli_binary_kind(const char *head, size_t n_bytes);
/* Refuses a file whose first bytes are those of a model, a PDF, an archive, a table or text in UTF-16, because plain
 * text is expected. A file that cannot be read is not refused here. Returns CLI_OK, or a status that was already
 * reported. */
int cli_check_text(cli_call *call, const char *path);
/* Reads a file of any kind, or stdin for "-", to its end or until `wants_more` (NULL: not called) returns false for the
 * bytes read so far. Returns CLI_OK, CLI_INTERRUPTED after Ctrl-C, or another exit status after a message. */
int cli_read_text_while(cli_call *call, const char *path, bool wants_more(const char *, size_t), cli_text *text);

typedef struct cli_model_flags {
    const char *path, *family;
    cli_list overrides;
    bool no_cache, strict;
    bool announces; /* when a conversion begins and no terminal shows its progress, a line is printed */
} cli_model_flags;
extern const cli_option cli_model_options[];
/* A row for option tables of verbs that open or convert a model. at: offset of the cli_list for its values. */
#define CLI_OVERRIDE_OPTION(at)                                                                                        \
    {                                                                                                                  \
        "--override-kv", CLI_REPEAT, (at), "KEY=TYPE:VALUE",                                                           \
            "Set a key of a GGUF file; TYPE is int, float, bool or str."                                               \
    }

/* Opens a model, shows the progress of a conversion, and registers the mappings with cli_guard_file. path NULL: the
 * built-in model. Returns CLI_OK, or a status that was already reported. */
int cli_open_model(cli_call *call, const char *path, bool no_cache, whit_model **model);

/* Prints each line of `notes`, such as the notes of a conversion, on stderr; empty lines are left out. */
void cli_print_notes(const char *notes, size_t n_bytes);

/* Opens the model that the flags name like cli_open_model; --family: with this program for its model family. */
int cli_open_flagged_model(cli_call *call, const cli_model_flags *flags, whit_model **model);

/* Refuses models whose vocabularies differ in size. Returns CLI_OK, or a status that was already reported. */
int cli_check_vocabularies(cli_call *call, const char *path, const whit_model *model, const char *other_path,
                           const whit_model *other);

/* Returns the model's name for messages: its path, or the name of the built-in model. */
const char *cli_model_name(const cli_model_flags *flags);

typedef struct cli_session_flags {
    uint32_t n_ctx, n_threads, n_batch;
    bool exact_head;
    int kv;        /* whit_kv_type */
    int kv_window; /* index into the words of --kv-window */
    uint32_t state_memory_mb, experts_memory_mb;
    int act; /* 0: auto; otherwise 1 + a whit_act_type */
    bool endless;
    uint32_t n_sinks;  /* for verbs with CLI_ENDLESS_OPTIONS, which must set CLI_SINKS as default */
    const char *draft; /* for verbs with CLI_DRAFT_OPTION; NULL: the option is not given */
} cli_session_flags;
extern const cli_option cli_session_options[];

enum { CLI_SINKS = 4, CLI_SINKS_MAX = 64 };
/* Rows for option tables of verbs that can continue beyond the context. at: offset of their cli_session_flags. */
#define CLI_ENDLESS_OPTIONS(at)                                                                                        \
    {"--endless", CLI_FLAG, (at) + offsetof(cli_session_flags, endless), NULL,                                         \
     "Continue beyond the context: the first and the newest tokens are seen."},                                        \
    {                                                                                                                  \
        "--sinks", CLI_COUNT, (at) + offsetof(cli_session_flags, n_sinks), "N",                                        \
            "With --endless, the first N tokens stay visible; 4 by default.", 0, CLI_SINKS_MAX                         \
    }

/* A row for option tables of verbs that can limit the memory for a model's experts. at: offset of their
 * cli_session_flags. */
#define CLI_EXPERTS_OPTION(at)                                                                                         \
    {                                                                                                                  \
        "--experts-memory", CLI_COUNT, (at) + offsetof(cli_session_flags, experts_memory_mb), "MB",                    \
            "Memory for the experts of a mixture; others are read when chosen. 0, the default, leaves it to the "      \
            "system.",                                                                                                 \
            0, 1 << 24                                                                                                 \
    }

/* Applies --experts-memory to a session that was just opened. */
whit_status cli_limit_experts(const cli_session_flags *flags, whit_session *session, whit_error *error);
/* If the experts' memory is limited, reports how much of them was read. */
void cli_note_experts(const whit_session *session);

/* Converts the flags to session options; numbers that were not given are those of the machine's profile (profile.h) or
 * the defaults. automatic: what --act auto means for this verb. */
whit_session_options cli_session_wanted(const cli_session_flags *flags, whit_act_type automatic);
/* Help text of --spec for verbs that generate. Without the option the number of guesses is WHIT_DRAFT_BY_COST. */
#define CLI_DRAFT_HELP                                                                                                 \
    "Guess always N tokens ahead from the text so far, or none: the same output. By default as many as pay, by "       \
    "measured time."
/* A row for option tables of verbs that generate, which selects a draft model. at: offset of their
 * cli_session_flags. */
#define CLI_DRAFT_OPTION(at)                                                                                           \
    {                                                                                                                  \
        "--draft", CLI_TEXT, (at) + offsetof(cli_session_flags, draft), "mtp|none|FILE",                               \
            "Guess ahead by the model's own block (mtp, usual) or by another model."                                   \
    }
/* Chooses the draft model for a session of `model`, by --draft or the default. *drafter: the draft model, which is
 * `model` itself if its own block drafts; NULL without one. *opened: the model that was opened for it, which the caller
 * closes after the session, or NULL. Returns CLI_OK, or a status that was already reported. */
int cli_choose_drafter(cli_call *call, const cli_session_flags *flags, uint32_t n_draft, const whit_model *model,
                       const whit_model **drafter, whit_model **opened);
/* Returns the maximum number of tokens drafted per step; a session needs as many additional logits. */
uint32_t cli_draft_max(uint32_t n_draft);

/* Refuses --sinks without --endless, unless it is CLI_SINKS, and --endless with a session file (NULL: no file). Returns
 * CLI_OK, or a status that was already reported. */
int cli_check_endless(cli_call *call, const cli_session_flags *flags, const char *session_file);
/* Returns the context size without -c: that of the training, but at most 4096 tokens. */
uint32_t cli_usual_context(const whit_model *model);
/* Prints a remark if n_ctx, the size of the context, exceeds n_trained, that of the training. */
void cli_remark_context(uint32_t n_trained, uint32_t n_ctx);
/* For verbs that use the logits of every token: limits the number of tokens per step, so that the logits need about 64
 * MB at most, and sets n_logits to it. */
void cli_want_all_logits(whit_session_options *options, size_t n_vocab);

typedef struct cli_adapter_flags {
    cli_list adapters;
} cli_adapter_flags;
extern const cli_option cli_adapter_options[];

/* The adapters opened for a model, for whit_session_mount; if zero-initialised, no adapters. */
typedef struct cli_adapters {
    whit_adapter *opened[WHIT_MOUNTS_MAX];
    whit_mount mounts[WHIT_MOUNTS_MAX];
    size_t n;
} cli_adapters;
/* Opens the adapters. Returns CLI_OK, or a status that was already reported; the caller must call cli_close_adapters in
 * both cases. */
int cli_open_adapters(cli_call *call, const cli_adapter_flags *flags, const whit_model *model, cli_adapters *adapters);
void cli_close_adapters(cli_adapters *adapters);

typedef struct cli_sampler_flags {
    int64_t seed;
    float temperature, dynatemp_range, dynatemp_exponent;
    int32_t top_k;
    float top_p, min_p, typical_p, top_n_sigma, xtc_probability, xtc_threshold;
    float repeat_penalty, presence_penalty, frequency_penalty;
    int32_t penalty_last_n;
    float dry_multiplier, dry_base;
    int32_t dry_allowed_length, dry_penalty_last_n;
    int32_t mirostat;
    float mirostat_tau, mirostat_eta;
    cli_list biases;
} cli_sampler_flags;
extern const cli_option cli_sampler_options[];
/* Defaults of the options. A negative temperature, top_p, min_p, typical_p or repeat_penalty and the top_k INT32_MIN
 * mean "not given": cli_fill_sampler sets the value that the model's authors advise, or the usual default. A negative
 * seed means a random one. All other values are used as they are. */
#define CLI_SAMPLER_DEFAULTS                                                                                           \
    {                                                                                                                  \
        .seed = -1, .temperature = -1, .dynatemp_exponent = 1, .top_k = INT32_MIN, .top_p = -1, .min_p = -1,           \
        .typical_p = -1, .top_n_sigma = -1, .xtc_threshold = 0.1f, .repeat_penalty = -1, .penalty_last_n = 64,         \
        .dry_base = 1.75f, .dry_allowed_length = 2, .dry_penalty_last_n = -1, .mirostat_tau = 5, .mirostat_eta = 0.1f  \
    }
/* Sets those options that have a mark for "not given" (CLI_SAMPLER_DEFAULTS) and were not given, except the seed: from
 * the model's generation_config (model NULL: not used), otherwise to the usual defaults. */
void cli_fill_sampler(cli_sampler_flags *flags, const whit_model *model);

/* Opens the sampler; options that were not given get the usual defaults. A negative seed means a random one. *seed: the
 * seed that is used. Returns an exit status. */
int cli_open_sampler(cli_call *call, const cli_sampler_flags *flags, const whit_model *model, uint64_t *seed,
                     whit_sampler **sampler);

typedef struct cli_grammar_flags {
    const char *gbnf, *schema;
} cli_grammar_flags;
extern const cli_option cli_grammar_options[];

/* A grammar that answers must follow; zero-initialised, answers are free. */
typedef struct cli_grammar {
    whit_grammar_vocabulary *vocabulary;
    whit_grammar *grammar;
    whit_grammar_state *state;
    whit_stage stage;
    const whit_stage *stages[4];
    size_t n_stages;
} cli_grammar;
/* Opens the grammar. Returns CLI_OK, or a status that was already reported; the caller must call cli_close_grammar in
 * both cases. */
int cli_open_grammar(cli_call *call, const cli_grammar_flags *flags, const whit_model *model, cli_grammar *grammar);
/* Resets the grammar's state for another answer. Returns an exit status. */
int cli_restart_grammar(cli_call *call, cli_grammar *grammar);
/* Inserts n other stages (at most 3) before the grammar's, so that the grammar decides last. */
void cli_grammar_after(cli_grammar *grammar, const whit_stage *const *stages, size_t n);
void cli_close_grammar(cli_grammar *grammar);

/* Tokenizes a text of any length; the caller frees *ids. Returns CLI_OK, or a status that was already reported. */
int cli_tokenize(cli_call *call, const whit_model *model, const char *text, size_t text_bytes, bool add_special,
                 bool parse_special, int32_t **ids, size_t *n_ids);

#endif
