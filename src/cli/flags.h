/* SPDX-License-Identifier: MIT
 * Options that several verbs share, and what they open: models, sessions, samplers. */
#ifndef WHIT_CLI_FLAGS_H
#define WHIT_CLI_FLAGS_H

#include "cli/cli.h"

#include <sys/types.h>

/* Whole words that texts and files come in as. */
typedef struct cli_text {
    char *data; /* terminated; free() it */
    size_t size_bytes;
} cli_text;
/* read(2) that Ctrl-C ends, with -1. */
ssize_t cli_read_some(int fd, char *data, size_t size_bytes);
/* A whole file, or stdin for "-". CLI_OK, else an exit status after a line. */
int cli_read_text(cli_call *call, const char *path, cli_text *text);
/* The same, as long as more is wanted than what has been read. */
int cli_read_text_while(cli_call *call, const char *path, bool wants_more(const char *, size_t), cli_text *text);

typedef struct cli_model_flags {
    const char *path, *family;
    bool no_cache, strict;
} cli_model_flags;
extern const cli_option cli_model_options[];

/* Opens, shows the progress of a conversion, guards the mappings; with path NULL the built-in model.
 * CLI_OK or a status already reported. */
int cli_open_model(cli_call *call, const char *path, bool no_cache, whit_model **model);

/* Prints the notes of a conversion, n_bytes of lines. */
void cli_print_notes(const char *notes, size_t n_bytes);

/* The same as the flags say, with a family's program. */
int cli_open_flagged_model(cli_call *call, const cli_model_flags *flags, whit_model **model);

/* How messages call it: the path, or the built-in model's name. */
const char *cli_model_name(const cli_model_flags *flags);

typedef struct cli_session_flags {
    uint32_t n_ctx, n_threads, n_batch;
    bool exact_head;
    int kv;        /* whit_kv_type */
    int kv_window; /* index of its words */
    int act;       /* 0 auto, then whit_act_type + 1 */
    bool endless;
    uint32_t n_sinks; /* of verbs with CLI_ENDLESS_OPTIONS; their default is CLI_SINKS */
} cli_session_flags;
extern const cli_option cli_session_options[];

enum { CLI_SINKS = 4, CLI_SINKS_MAX = 64 };
/* For the option tables of verbs that can go on beyond the context: AT is the place of their cli_session_flags. */
#define CLI_ENDLESS_OPTIONS(at)                                                                                        \
    {"--endless", CLI_FLAG, (at) + offsetof(cli_session_flags, endless), NULL,                                         \
     "Go on beyond the context: a token sees the first ones and the newest, and forgets what lies between; no longer " \
     "memory."},                                                                                                       \
    {                                                                                                                  \
        "--sinks", CLI_COUNT, (at) + offsetof(cli_session_flags, n_sinks), "N",                                        \
            "With --endless, the first N tokens stay in sight; 4 by default.", 0, CLI_SINKS_MAX                        \
    }

/* Library options from the flags; `automatic` is what --act auto means in this verb. */
whit_session_options cli_session_wanted(const cli_session_flags *flags, whit_act_type automatic);
/* Refuses what --endless does not go with: --sinks without it, a session file (NULL: none). CLI_OK or a status already
 * reported. */
int cli_check_endless(cli_call *call, const cli_session_flags *flags, const char *session_file);
/* The context without -c: as trained, at most 4096 tokens. */
uint32_t cli_usual_context(const whit_model *model);
/* A line where it is longer than the model was trained for. */
void cli_remark_context(const whit_model *model, uint32_t n_ctx);
/* For verbs that look at the logits of every token: keeps a batch of them, of some 64 MB at most.
 */
void cli_want_all_logits(whit_session_options *options, size_t n_vocab);

typedef struct cli_adapter_flags {
    cli_list adapters;
} cli_adapter_flags;
extern const cli_option cli_adapter_options[];

/* Adapters opened for a model; zero-initialised is none. For whit_session_mount. */
typedef struct cli_adapters {
    whit_adapter *opened[WHIT_MOUNTS_MAX];
    whit_mount mounts[WHIT_MOUNTS_MAX];
    size_t n;
} cli_adapters;
/* CLI_OK or a status already reported; what was opened is closed by the second in every case. */
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
/* For a verb's own defaults: nothing given. Where a negative value (INT32_MIN for top_k) means that,
 * what the model's authors advise may come before the usual default. */
#define CLI_SAMPLER_DEFAULTS                                                                                           \
    {                                                                                                                  \
        .seed = -1, .temperature = -1, .dynatemp_exponent = 1, .top_k = INT32_MIN, .top_p = -1, .min_p = -1,           \
        .typical_p = -1, .top_n_sigma = -1, .xtc_threshold = 0.1f, .repeat_penalty = -1, .penalty_last_n = 64,         \
        .dry_base = 1.75f, .dry_allowed_length = 2, .dry_penalty_last_n = -1, .mirostat_tau = 5, .mirostat_eta = 0.1f  \
    }
/* Fills in what was not given, from the model's generation_config (NULL: not) and the defaults. */
void cli_fill_sampler(cli_sampler_flags *flags, const whit_model *model);

/* Opens the sampler, with the usual default for what was not given; a negative seed is drawn. *seed
 * is the one used. */
int cli_open_sampler(cli_call *call, const cli_sampler_flags *flags, const whit_model *model, uint64_t *seed,
                     whit_sampler **sampler);

typedef struct cli_grammar_flags {
    const char *gbnf, *schema;
} cli_grammar_flags;
extern const cli_option cli_grammar_options[];

/* What answers must follow; zero-initialised is nothing. */
typedef struct cli_grammar {
    whit_grammar_vocabulary *vocabulary;
    whit_grammar *grammar;
    whit_grammar_state *state;
    whit_stage stage;
    const whit_stage *stages[4];
    size_t n_stages;
} cli_grammar;
/* CLI_OK or a status already reported; what was opened is closed by cli_close_grammar in every case. */
int cli_open_grammar(cli_call *call, const cli_grammar_flags *flags, const whit_model *model, cli_grammar *grammar);
/* From the beginning again, for another answer. */
int cli_restart_grammar(cli_call *call, cli_grammar *grammar);
/* Puts other stages (3 at most) in front of the grammar's, so that what they let through is looked at. */
void cli_grammar_after(cli_grammar *grammar, const whit_stage *const *stages, size_t n);
void cli_close_grammar(cli_grammar *grammar);

/* Text to ids through the library, whatever their number; free() them. */
int cli_tokenize(cli_call *call, const whit_model *model, const char *text, size_t text_bytes, bool add_special,
                 bool parse_special, int32_t **ids, size_t *n_ids);

#endif
