/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/json.h"
#include "base/system.h"
#include "base/threads.h"
#include "cli/flags.h"
#include "cli/names.h"
#include "cli/profile.h"
#include "cli/tales.h"
#include "cli/parts.h"
#include "cli/program.h"
#include "format/conversion_cache.h"
#include "format/ndf.h"
#include "whit/experts.h"
#include "whit/steps.h"

#define AT(member) offsetof(cli_model_flags, member)
const cli_option cli_model_options[] = {
    {"-m, --model, -hf, -hfr, --hf-repo", CLI_FILE, AT(path), "FILE",
     "The model: an .ndf, a source to convert, or a pulled name such as OWNER/NAME:Q4_K_M; tales, built in, without "
     "this."},
    {"--family", CLI_FILE, AT(family), "FILE", "The model's forward pass as a program of the array language."},
    CLI_OVERRIDE_OPTION(AT(overrides)),
    {"--no-cache", CLI_FLAG, AT(no_cache), NULL, "Convert a source in memory and write nothing."},
    {"--strict", CLI_FLAG, AT(strict), NULL, "Refuse a source with fields that are not known; keep no copy of it."},
    {0},
};
#undef AT

#define AT(member) offsetof(cli_session_flags, member)
const cli_option cli_session_options[] = {
    {"-c, --ctx-size", CLI_AUTO, AT(n_ctx), "N",
     "Context in tokens; 0 is as trained, at most 4096, and the default, but 512 in compare and the number of tokens "
     "in logits.",
     0, 1 << 30},
    {"-t, --threads", CLI_AUTO, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0,
     WHIT_POOL_THREADS_MAX},
    {"-ub, --ubatch-size", CLI_COUNT, AT(n_batch), "N",
     "Tokens of a prompt taken at once; 512 by default, 256 in serve.", 1, 65536},
    {"--kv", CLI_CHOICE, AT(kv), "f16|f32|i8|k4v2|k2v2|bitmap",
     "Type of the KV cache; f16 by default. k4v2 keeps old positions in a fifth of f16's bytes, k2v2 and bitmap in a "
     "seventh."},
    {"--kv-window", CLI_CHOICE, AT(kv_window), "1|0|2|3|4|8|16",
     "Full blocks of 64 positions before a token that it reads in f16 with k4v2, k2v2 and bitmap; 1 by default."},
    {"--state-memory", CLI_AUTO, AT(state_memory_mb), "MB",
     "Memory for checkpoints of recurrent layers and packed KV caches; 0, the default, is an eighth of what is free.",
     0, 1 << 24},
    {"--act", CLI_CHOICE, AT(act), "auto|f32|i8|q2",
     "Activations that coded weights multiply: auto is f32 in logits, perplexity, compare and eval, else i8; q2 has "
     "two "
     "bits, for b1 and q2."},
    {"--exact-head", CLI_FLAG, AT(exact_head), NULL, "Read the whole head also where only the largest logits matter.",
     0, 0},
    {0},
};
#undef AT

#define AT(member) offsetof(cli_sampler_flags, member)
const cli_option cli_sampler_options[] = {
    {"-s, --seed", CLI_SEED, AT(seed), "S", "Seed of the random choices; -1, the default, draws one."},
    {"--temp, --temperature", CLI_REAL, AT(temperature), "T",
     "Temperature; 0 always takes the likeliest token, 0.8 is the default.", 0, 1e6},
    {"--top-k", CLI_INT, AT(top_k), "K", "Keep the K likeliest tokens; 40 by default, 0 is off."},
    {"--top-p", CLI_REAL, AT(top_p), "P",
     "Keep the likeliest tokens up to this probability together; 0.95 by default, 1 is off.", 0, 1},
    {"--min-p", CLI_REAL, AT(min_p), "P", "Drop tokens below P times the likeliest; 0.05 by default, 0 is off.", 0, 1},
    {"--typical, --typical-p", CLI_REAL, AT(typical_p), "P", "Locally typical sampling; 1, the default, is off.", 0, 1},
    {"--top-nsigma, --top-n-sigma", CLI_REAL, AT(top_n_sigma), "N",
     "Keep logits within N deviations of the largest; -1, the default, is off.", -1, 1e6},
    {"--xtc-probability", CLI_REAL, AT(xtc_probability), "P",
     "Chance of leaving out the top choices; 0, the default, is off.", 0, 1},
    {"--xtc-threshold", CLI_REAL, AT(xtc_threshold), "P",
     "Probability from which a token is a top choice; 0.1 by default.", 0, 1},
    {"--repeat-penalty", CLI_REAL, AT(repeat_penalty), "R",
     "Divide the odds of tokens seen before; 1, the default, is off.", 0, 1e6},
    {"--repeat-last-n", CLI_INT, AT(penalty_last_n), "N",
     "How far back penalties look; default 64, 0: off, -1: context, min 4,096."},
    {"--presence-penalty", CLI_REAL, AT(presence_penalty), "A",
     "Subtract A from logits of tokens seen before; 0, the default, is off."},
    {"--frequency-penalty", CLI_REAL, AT(frequency_penalty), "A",
     "Subtract A from a logit per use of its token; 0, the default, is off."},
    {"--dry-multiplier", CLI_REAL, AT(dry_multiplier), "M",
     "Strength of the penalty on repetitions (DRY); 0, the default, is off.", 0, 1e6},
    {"--dry-base", CLI_REAL, AT(dry_base), "B", "Growth of the DRY penalty per token; 1.75 by default.", 0, 1e6},
    {"--dry-allowed-length", CLI_INT, AT(dry_allowed_length), "N",
     "Longest repetition without a DRY penalty; 2 by default.", 0, 1 << 30},
    {"--dry-penalty-last-n", CLI_INT, AT(dry_penalty_last_n), "N",
     "How many tokens back DRY looks; -1, the default: context, min 4,096."},
    {"--dynatemp-range", CLI_REAL, AT(dynatemp_range), "R",
     "Vary the temperature by this with the entropy; 0, the default, is off.", 0, 1e6},
    {"--dynatemp-exp", CLI_REAL, AT(dynatemp_exponent), "E",
     "Exponent of the entropy in --dynatemp-range; 1 by default.", 0, 1e6},
    {"--mirostat", CLI_INT, AT(mirostat), "N",
     "Mirostat 1 or 2 in place of the other samplers; 0, the default, is off.", 0, 2},
    {"--mirostat-ent", CLI_REAL, AT(mirostat_tau), "T", "Target entropy of mirostat; 5 by default.", 0, 1e6},
    {"--mirostat-lr", CLI_REAL, AT(mirostat_eta), "E", "Learning rate of mirostat; 0.1 by default.", 0, 1e6},
    {"-l, --logit-bias", CLI_REPEAT, AT(biases), "ID+BIAS",
     "Add BIAS to a token's logit (ID-BIAS subtracts); may be given again."},
    {0},
};
#undef AT

ssize_t cli_read_some(int fd, char *data, size_t size_bytes)
{
    /* After a signal handler, ppoll is never restarted as read is. SIGINT, SIGTERM and SIGCONT stay blocked between the
     * check of the flag and ppoll, which unblocks them. */
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    sigset_t held, before;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGCONT);
    sigprocmask(SIG_BLOCK, &held, &before);
    errno = EINTR;
    int ready = *cli_cancelled() ? -1 : ppoll(&wait, 1, NULL, &before);
    int reason = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    if (ready < 0) return -1;
    errno = EINTR; /* a signal may have come at the same time as data or the end of input */
    return *cli_cancelled() ? -1 : read(fd, data, size_bytes);
}

/* Returns whether bytes can be the beginning of a text: it has no control characters except white space and escape. */
static bool is_like_text(const char *head, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        if ((unsigned char)head[i] < 0x20 && !strchr("\t\n\v\f\r\033", head[i] ? head[i] : 1)) return false;
    return true;
}

const char *cli_binary_kind(const char *head, size_t n_bytes)
{
    enum { HEAD_BYTES = 64 };
    static const struct {
        const char *magic, *kind;
        bool may_begin_text; /* the magic could also begin a text, so the file is only recognised if control characters
                              * follow */
    } kinds[] = {{"GGUF", "a model (GGUF)", true},
                 {"%PDF-", "a PDF ('pdftotext FILE' writes its text)", false},
                 {"PK\003\004", "a packed file (zip, or an office document)", false},
                 {"\037\213", "a packed file (gzip)", false},
                 {"(\265/\375", "a packed file (zstd)", false},
                 {"\377\376", "text in UTF-16 ('iconv -f UTF-16 -t UTF-8 FILE' converts it)", false},
                 {"\376\377", "text in UTF-16 ('iconv -f UTF-16 -t UTF-8 FILE' converts it)", false},
                 {"PAR1", "a table (Parquet)", true}};
    if (whit_ndf_has_magic(head, n_bytes)) return "a file of whit's own (.ndf)";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n_magic = strlen(kinds[i].magic);
        if (n_bytes < n_magic || memcmp(head, kinds[i].magic, n_magic) != 0) continue;
        if (!kinds[i].may_begin_text || !is_like_text(head, n_bytes < HEAD_BYTES ? n_bytes : HEAD_BYTES))
            return kinds[i].kind;
    }
    return NULL;
}

/* Returns whether the bytes read so far can be the beginning of a text; if not, reading stops. */
static bool may_be_text(const char *data, size_t n_bytes)
{
    return !cli_binary_kind(data, n_bytes);
}

static int refuse_kind(cli_call *call, const char *name, const char *kind)
{
    return cli_fail(call, CLI_REFUSED, "%s: is %s, but only plain text can be read", name, kind);
}

int cli_read_text(cli_call *call, const char *path, cli_text *text)
{
    const int status = cli_read_text_while(call, path, may_be_text, text);
    const char *kind = status == CLI_OK ? cli_binary_kind(text->data, text->size_bytes) : NULL;
    if (!kind) return status;
    free(text->data);
    *text = (cli_text){0};
    return refuse_kind(call, strcmp(path, "-") ? path : "stdin", kind);
}

int cli_check_text(cli_call *call, const char *path)
{
    char head[64];
    uint64_t n_bytes;
    FILE *file = cli_file_size(path, &n_bytes) ? fopen(path, "rb") : NULL;
    const size_t n = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    const char *kind = cli_binary_kind(head, n);
    return kind ? refuse_kind(call, path, kind) : CLI_OK;
}

int cli_read_text_while(cli_call *call, const char *path, bool wants_more(const char *, size_t), cli_text *text)
{
    bool is_stdin = !strcmp(path, "-");
    const char *name = is_stdin ? "stdin" : path;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    size_t capacity = 0;
    ssize_t n = -1;
    *text = (cli_text){0};
    while (fd >= 0) {
        if (text->size_bytes + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 65536;
            char *larger = realloc(text->data, capacity);
            if (!larger) {
                errno = ENOMEM;
                break;
            }
            text->data = larger;
        }
        n = cli_read_some(fd, text->data + text->size_bytes, capacity - text->size_bytes - 1);
        if (n <= 0) break;
        text->size_bytes += (size_t)n;
        n = wants_more && !wants_more(text->data, text->size_bytes) ? 0 : -1;
        if (n == 0) break;
    }
    int reason = errno;
    if (fd > STDIN_FILENO) close(fd);
    if (n == 0) {
        text->data[text->size_bytes] = 0;
        return CLI_OK;
    }
    free(text->data);
    text->data = NULL;
    if (*cli_cancelled()) return CLI_INTERRUPTED;
    return cli_fail(call, CLI_IO, "%s: cannot read: %s", name, strerror(reason));
}

/* State of opening a model. begun: the model is being converted, and was not found in the cache. */
struct conversion {
    const cli_model_flags *flags;
    bool begun;
};

static bool on_conversion(void *user, const char *what, double share)
{
    struct conversion *conversion = user;
    if (!conversion->begun && conversion->flags->announces && !isatty(STDERR_FILENO))
        cli_note("%s: whit converts the model once; this can take minutes", conversion->flags->path);
    conversion->begun = true;
    return cli_progress(NULL, what, share);
}

/* Prints where the converted copy of a model is, or why it was not stored. */
static void say_where(const whit_model *model, const char *source)
{
    const void *address;
    size_t size_bytes;
    const char *mapped;
    char folder[WHIT_CACHE_PATH_BYTES], size[32];
    whit_error error;
    struct stat info;
    if (whit_cache_folder(NULL, folder, &error) != WHIT_OK)
        cli_note("%s; the model is converted in memory, and again next time", error.message);
    else if (whit_model_mapping(model, 0, &address, &size_bytes, &mapped) &&
             strncmp(mapped, folder, strlen(folder)) == 0 && stat(mapped, &info) == 0)
        cli_note("%s: converted once, into %s (%s); 'whit rm' removes the copy", source, mapped,
                 cli_bytes((uint64_t)info.st_size, size));
    else
        cli_note("%s: the copy could not be written there (%s); the model is converted in memory, and again next time",
                 folder, access(folder, W_OK) != 0 ? strerror(errno) : "is the disk full?");
}

void cli_print_notes(const char *notes, size_t n_bytes)
{
    for (size_t at = 0, n; at < n_bytes; at += n + 1) {
        const char *end = memchr(notes + at, '\n', n_bytes - at);
        n = end ? (size_t)(end - notes) - at : n_bytes - at;
        if (n) cli_note("%.*s", (int)n, notes + at);
    }
}

static int open_model(cli_call *call, const cli_model_flags *flags, const cli_text *family, whit_model **model)
{
    const char *path = flags->path;
    char found[CLI_PATH_BYTES];
    whit_error error;
    if (cli_is_tales(path)) return cli_tales_open(model, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
    struct conversion conversion = {.flags = flags};
    whit_model_options options = whit_model_options_default();
    options.no_cache = flags->no_cache;
    options.strict = flags->strict;
    options.family_program = family->data;
    options.family_name = flags->family;
    options.overrides = flags->overrides.items;
    options.n_overrides = flags->overrides.n;
    options.progress = on_conversion;
    options.progress_user = &conversion;
    cli_guard_likely(path);
    whit_status status = cli_find_model(path, found, &error);
    if (status == WHIT_OK) status = whit_model_open(found, &options, model, &error);
    cli_progress_end();
    if (status != WHIT_OK) {
        return family->data ? cli_family_fail(call, flags->family, family, &error) : cli_fail_error(call, &error);
    }

    const void *address;
    size_t size_bytes;
    const char *mapped;
    for (size_t i = 0; whit_model_mapping(*model, i, &address, &size_bytes, &mapped); i++)
        cli_guard_file(address, size_bytes, mapped);
    const char *notes = conversion.begun ? whit_model_metadata(*model, "whit.notes") : NULL;
    if (notes) cli_print_notes(notes, strlen(notes));
    if (conversion.begun && !flags->no_cache) say_where(*model, found);
    return CLI_OK;
}

int cli_check_vocabularies(cli_call *call, const char *path, const whit_model *model, const char *other_path,
                           const whit_model *other)
{
    const uint32_t n = whit_model_vocab_size(model), n_other = whit_model_vocab_size(other);
    if (n == n_other) return CLI_OK;
    return cli_fail(
        call, CLI_REFUSED,
        "%s has %u tokens in its vocabulary, but %s has %u: only models with the same vocabulary can be compared", path,
        n, other_path, n_other);
}

int cli_open_model(cli_call *call, const char *path, bool no_cache, whit_model **model)
{
    return cli_open_flagged_model(call, &(cli_model_flags){.path = path, .no_cache = no_cache}, model);
}

int cli_open_flagged_model(cli_call *call, const cli_model_flags *flags, whit_model **model)
{
    cli_text family = {0};
    *model = NULL;
    if (cli_is_tales(flags->path) && (flags->family || flags->overrides.n))
        return cli_fail(call, CLI_USAGE, "%s needs a model of your own: -m FILE",
                        flags->family ? "--family" : "--override-kv");
    if (flags->family) {
        int status = cli_read_family(call, flags->family, &family);
        if (status != CLI_OK) return status;
    }
    int status = open_model(call, flags, &family, model);
    free(family.data);
    return status;
}

const char *cli_model_name(const cli_model_flags *flags)
{
    return cli_is_tales(flags->path) ? CLI_TALES_NAME : flags->path;
}

static const uint32_t kv_windows[] = {1, 0, 2, 3, 4, 8, 16}; /* number of windows for each word of --kv-window */

const cli_profile *cli_profile_in_use(void)
{
    static cli_profile profile;
    static bool is_read;
    char path[WHIT_CACHE_PATH_BYTES];
    cli_machine machine;
    whit_error error;
    if (is_read || cli_profile_is_off()) return &profile;
    is_read = true;
    cli_machine_find(&machine);
    if (cli_profile_name(NULL, &machine, path, &error) != WHIT_OK) return &profile;
    cli_profile_state state = cli_profile_read(path, &machine, &profile);
    if (state == CLI_PROFILE_STALE) unlink(path);
    if (state == CLI_PROFILE_DAMAGED)
        cli_note("%s is damaged and ignored; 'whit doctor --tune' measures this machine again", path);
    return &profile;
}

int cli_choose_drafter(cli_call *call, const cli_session_flags *flags, uint32_t n_draft, const whit_model *model,
                       const whit_model **drafter, whit_model **opened)
{
    const char *draft = flags->draft;
    *drafter = *opened = NULL;
    if (n_draft == 0 || (draft && !strcmp(draft, "none"))) return CLI_OK;
    const bool is_usual = !draft && n_draft == WHIT_DRAFT_BY_COST && whit_model_has_draft_block(model);
    if (is_usual || (draft && !strcmp(draft, "mtp"))) *drafter = model;
    if (!draft || *drafter) return CLI_OK;
    int status = cli_open_model(call, draft, false, opened);
    *drafter = *opened;
    return status;
}

uint32_t cli_draft_max(uint32_t n_draft)
{
    enum { USUAL_MAX = 7 }; /* maximum number of guesses of WHIT_DRAFT_BY_COST */
    const uint32_t tuned = cli_profile_in_use()->values[CLI_TUNED_DRAFT];
    if (n_draft != WHIT_DRAFT_BY_COST) return n_draft;
    return tuned ? tuned : USUAL_MAX;
}

whit_session_options cli_session_wanted(const cli_session_flags *flags, whit_act_type automatic)
{
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = flags->n_ctx;
    const cli_profile *profile = cli_profile_in_use();
    options.n_threads = flags->n_threads ? flags->n_threads : profile->values[CLI_TUNED_THREADS];
    if (profile->values[CLI_TUNED_BATCH]) options.n_batch_tokens = profile->values[CLI_TUNED_BATCH];
    if (flags->n_batch) options.n_batch_tokens = flags->n_batch;
    options.kv = (whit_kv_type)flags->kv;
    options.n_kv_window = kv_windows[flags->kv_window];
    options.state_bytes = flags->state_memory_mb ? (uint64_t)flags->state_memory_mb << 20 : whit_memory_available() / 8;
    options.act = flags->act == 0 ? automatic : (whit_act_type)(flags->act - 1); /* the words of --act are "auto", then
                                                                                  * those of whit_act_type in the same
                                                                                  * order */
    options.exact_head = flags->exact_head;
    options.cpu = getenv("WHIT_CPU");
    options.cancel = cli_cancelled();
    options.endless = flags->endless;
    if (flags->endless) options.n_sinks = flags->n_sinks;
    return options;
}

whit_status cli_limit_experts(const cli_session_flags *flags, whit_session *session, whit_error *error)
{
    if (!flags->experts_memory_mb) return WHIT_OK;
    return whit_session_limit_experts(session, (uint64_t)flags->experts_memory_mb << 20, error);
}

void cli_note_experts(const whit_session *session)
{
    whit_expert_counts c = {.struct_bytes = sizeof c};
    whit_session_count_experts(session, &c);
    if (c.bytes_max)
        cli_note("experts: %.1f MB read in %" PRIu64 " pieces, %.1f of %.1f MB in memory, %" PRIu64 " given back",
                 (double)c.read_bytes / 1e6, c.n_read, (double)c.bytes / 1e6, (double)c.all_bytes / 1e6, c.n_given);
}

int cli_check_endless(cli_call *call, const cli_session_flags *flags, const char *session_file)
{
    if (!flags->endless && flags->n_sinks != CLI_SINKS)
        return cli_fail(call, CLI_USAGE,
                        "--sinks sets how many first tokens stay visible with --endless, which is not given");
    if (flags->endless && session_file)
        return cli_fail(call, CLI_USAGE,
                        "--session keeps texts that fit the context, --endless exceeds it: give only one of them");
    return CLI_OK;
}

uint32_t cli_usual_context(const whit_model *model)
{
    enum { USUAL_MAX = 4096 }; /* the same limit as in whit_session_open */
    uint32_t n = whit_model_context_size(model);
    return n < USUAL_MAX ? n : USUAL_MAX;
}

void cli_remark_context(uint32_t n_trained, uint32_t n_ctx)
{
    if (n_ctx > n_trained)
        cli_note("the context has %u tokens, but the model was trained for %u: beyond them it may write nonsense",
                 n_ctx, n_trained);
}

void cli_want_all_logits(whit_session_options *options, size_t n_vocab)
{
    size_t most = ((size_t)64 << 20) / ((n_vocab + 1) * sizeof(float)) + 1;
    if (options->n_batch_tokens > most) options->n_batch_tokens = (uint32_t)most;
    options->n_logits = options->n_batch_tokens;
}

/* Parses a token id and its bias, "15043+1.5", "15043-1" or "15043-inf"; returns false if the text is malformed. */
static bool parse_bias(const char *text, int32_t *id, float *bias)
{
    char *end;
    double value = -INFINITY;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || errno || number > INT32_MAX || (*end != '+' && *end != '-')) return false;
    if (strcmp(end, "-inf") != 0 && !whit_parse_f64(end, &value)) return false;
    *id = (int32_t)number;
    *bias = (float)value;
    return true;
}

/* Returns the value that the model's metadata advises under this key, if it is in [low, high]; otherwise `fallback`. */
static float advised(const whit_model *model, const char *key, double low, double high, float fallback)
{
    double number;
    if (!model || !cli_model_number(model, key, &number) || !(number >= low && number <= high)) return fallback;
    return (float)number;
}

void cli_fill_sampler(cli_sampler_flags *flags, const whit_model *model)
{
    const whit_sampler_options usual = whit_sampler_options_default();
    bool greedy = advised(model, "generation.do_sample", 0, 1, 1) == 0;
    if (flags->temperature < 0)
        flags->temperature = greedy ? 0 : advised(model, "generation.temperature", 0, 1e6, usual.temperature);
    if (flags->top_k == INT32_MIN)
        flags->top_k = (int32_t)advised(model, "generation.top_k", 0, 1e6, (float)usual.top_k);
    if (flags->top_p < 0) flags->top_p = advised(model, "generation.top_p", 0, 1, usual.top_p);
    if (flags->min_p < 0) flags->min_p = advised(model, "generation.min_p", 0, 1, usual.min_p);
    if (flags->typical_p < 0) flags->typical_p = advised(model, "generation.typical_p", 0, 1, usual.typical_p);
    if (flags->repeat_penalty < 0)
        flags->repeat_penalty = advised(model, "generation.repetition_penalty", 0, 1e6, usual.repeat_penalty);
}

int cli_open_sampler(cli_call *call, const cli_sampler_flags *given, const whit_model *model, uint64_t *seed,
                     whit_sampler **sampler)
{
    cli_sampler_flags filled = *given, *flags = &filled;
    cli_fill_sampler(flags, NULL);
    *seed = (uint64_t)flags->seed;
    if (flags->seed < 0) *seed = (uint32_t)whit_system_draw(); /* 32 bits, so that the user can type it */
    whit_sampler_options options = whit_sampler_options_default();
    options.seed = *seed;
    options.temperature = flags->temperature;
    options.dynatemp_range = flags->dynatemp_range;
    options.dynatemp_exponent = flags->dynatemp_exponent;
    options.top_k = flags->top_k;
    options.top_p = flags->top_p;
    options.min_p = flags->min_p;
    options.typical_p = flags->typical_p;
    options.top_n_sigma = flags->top_n_sigma;
    options.xtc_probability = flags->xtc_probability;
    options.xtc_threshold = flags->xtc_threshold;
    options.repeat_penalty = flags->repeat_penalty;
    options.presence_penalty = flags->presence_penalty;
    options.frequency_penalty = flags->frequency_penalty;
    options.penalty_last_n = flags->penalty_last_n;
    options.dry_multiplier = flags->dry_multiplier;
    options.dry_base = flags->dry_base;
    options.dry_allowed_length = flags->dry_allowed_length;
    options.dry_penalty_last_n = flags->dry_penalty_last_n;
    options.mirostat = flags->mirostat;
    options.mirostat_tau = flags->mirostat_tau;
    options.mirostat_eta = flags->mirostat_eta;

    int status = CLI_OK;
    size_t n = flags->biases.n;
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    float *values = malloc((n + 1) * sizeof *values);
    *sampler = NULL;
    if (!ids || !values) status = cli_fail(call, CLI_LIMIT, "not enough memory for %zu logit biases", n);
    for (size_t i = 0; status == CLI_OK && i < n; i++)
        if (!parse_bias(flags->biases.items[i], &ids[i], &values[i]))
            status =
                cli_fail(call, CLI_USAGE, "--logit-bias takes ID+BIAS or ID-BIAS, not '%s'", flags->biases.items[i]);
    options.bias_ids = ids;
    options.bias_values = values;
    options.n_biases = n;
    whit_error error;
    if (status == CLI_OK && whit_sampler_open(model, &options, sampler, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    free(ids);
    free(values);
    return status;
}

int cli_tokenize(cli_call *call, const whit_model *model, const char *text, size_t text_bytes, bool add_special,
                 bool parse_special, int32_t **ids, size_t *n_ids)
{
    whit_error error;
    /* Usually enough; if not, the library returns the number that is needed. */
    size_t capacity = text_bytes + 16;
    *n_ids = 0;
    for (;;) {
        *ids = malloc(capacity * sizeof **ids);
        if (!*ids) return cli_fail(call, CLI_LIMIT, "not enough memory for %zu tokens", capacity);
        whit_status status =
            whit_tokenize(model, text, text_bytes, add_special, parse_special, *ids, capacity, n_ids, &error);
        if (status == WHIT_OK) return CLI_OK;
        free(*ids);
        *ids = NULL;
        if (status != WHIT_ERROR_LIMIT || *n_ids <= capacity) return cli_fail_error(call, &error);
        capacity = *n_ids;
    }
}
