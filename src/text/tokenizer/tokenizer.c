/* SPDX-License-Identifier: MIT */
#include "tokenizer/tokenizer.h"

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/models.h"
#include "tokenizer/normalize.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#define MAX_TEXT_BYTES (1u << 30)
#define MAX_GROWTH     20u /* limit of how much normalizing enlarges a text; NFKC needs at most 18 */
/* Limit of the steps for finding added tokens. Real tokenizers need a few per byte. */
#define STEPS_PER_BYTE 64u
#define STEPS_ALLOWED  (16u << 20)

/* A step of the tokenizer with its strings, which are in the image. */
typedef struct prepared_step {
    const whit_tokenizer_step *step;
    const uint8_t *text, *content;
    whit_regex *regex; /* compiled when it is first used */
} prepared_step;

/* The added tokens for raw or for normalized text, sorted by text. */
typedef struct added_set {
    const whit_added_token *tokens;
    size_t n;
    uint64_t first_bytes[4]; /* bit set of the bytes with which the tokens begin */
} added_set;

struct whit_tokenizer {
    whit_tokenizer_view view;
    const whit_allocator *allocator;
    prepared_step normalizers[WHIT_TOKENIZER_MAX_STEPS], splits[WHIT_TOKENIZER_MAX_STEPS];
    size_t n_normalizers, n_splits;
    added_set raw, normalized;
    const uint8_t *strings; /* the section WHIT_TOKENS_STRINGS */
    size_t strings_bytes;
    whit_buf clean, texts[2], codes, ranges;
    whit_splitter splitter;
    whit_model_scratch scratch;
};

/* State of one call of whit_tokenizer_encode. */
typedef struct encoding {
    whit_tokenizer *tokenizer;
    const whit_encode_options *options;
    const uint8_t *input; /* the whole text, to which the user's ranges refer */
    whit_buf *ids;
    whit_error *error;
    uint64_t steps_left; /* remaining steps for finding added tokens */
    bool out_of_steps;
} encoding;

/* ---- opening ------------------------------------------------------------------------------- */

static whit_status prepare_steps(const whit_tokenizer_view *view, enum whit_tokenizer_section section,
                                 prepared_step *prepared, size_t *n, whit_error *error)
{
    const whit_tokenizer_step *steps = whit_tokenizer_section(view, section, sizeof(whit_tokenizer_step), n);
    for (size_t i = 0; i < *n; i++) {
        const whit_tokenizer_step *step = &steps[i];
        prepared_step *one = &prepared[i];
        *one = (prepared_step){.step = step};
        one->text = whit_tokenizer_string(view, step->text_offset, step->text_bytes);
        one->content = whit_tokenizer_string(view, step->content_offset, step->content_bytes);
        if (!one->text || !one->content)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "tokenizer: the text of a step is outside the data, which is damaged");
        /* Text stays valid UTF-8 through all steps, which PCRE2 relies on. */
        bool valid = whit_utf8_valid_bytes(one->content, step->content_bytes) == step->content_bytes;
        if (step->kind != WHIT_STEP_PRECOMPILED)
            valid &= whit_utf8_valid_bytes(one->text, step->text_bytes) == step->text_bytes;
        if (!valid)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "tokenizer: the text of a step is not UTF-8: the data is damaged");
    }
    return WHIT_OK;
}

static const uint8_t *added_text(const whit_tokenizer *tokenizer, const whit_added_token *added)
{
    bool inside = whit_in_bounds(added->text_offset, added->text_bytes, tokenizer->strings_bytes);
    return inside && added->text_bytes ? tokenizer->strings + added->text_offset : NULL;
}

static void prepare_added(const whit_tokenizer *tokenizer, added_set *set, const whit_added_token *tokens, size_t n)
{
    *set = (added_set){.tokens = tokens, .n = n};
    for (size_t i = 0; i < n; i++) {
        const uint8_t *text = added_text(tokenizer, &tokens[i]);
        if (text) set->first_bytes[text[0] / 64] |= 1ull << text[0] % 64;
    }
}

whit_status whit_tokenizer_open(const whit_tokenizer_view *view, const whit_allocator *allocator,
                                whit_tokenizer **tokenizer, whit_error *error)
{
    *tokenizer = NULL;
    whit_tokenizer *made = whit_zalloc(allocator, sizeof *made);
    if (!made) return whit_fail_memory(error, "the tokenizer", sizeof *made);
    made->view = *view;
    made->allocator = allocator;
    made->clean.allocator = made->codes.allocator = made->ranges.allocator = allocator;
    made->texts[0].allocator = made->texts[1].allocator = allocator;
    whit_splitter_init(&made->splitter, allocator);
    whit_model_scratch_init(&made->scratch, allocator);
    whit_status status = prepare_steps(view, WHIT_TOKENS_NORMALIZE, made->normalizers, &made->n_normalizers, error);
    if (status == WHIT_OK) status = prepare_steps(view, WHIT_TOKENS_SPLIT, made->splits, &made->n_splits, error);
    if (status != WHIT_OK) {
        whit_tokenizer_close(made);
        return status;
    }
    size_t n;
    made->strings = whit_tokenizer_section(view, WHIT_TOKENS_STRINGS, 1, &made->strings_bytes);
    const whit_added_token *added = whit_tokenizer_section(view, WHIT_TOKENS_ADDED, sizeof *added, &n);
    prepare_added(made, &made->raw, added, view->header->n_added_raw);
    prepare_added(made, &made->normalized, added + view->header->n_added_raw, n - view->header->n_added_raw);
    *tokenizer = made;
    return WHIT_OK;
}

void whit_tokenizer_close(whit_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    for (size_t i = 0; i < WHIT_TOKENIZER_MAX_STEPS; i++) {
        whit_regex_close(tokenizer->normalizers[i].regex);
        whit_regex_close(tokenizer->splits[i].regex);
    }
    whit_buf_free(&tokenizer->clean);
    whit_buf_free(&tokenizer->texts[0]);
    whit_buf_free(&tokenizer->texts[1]);
    whit_buf_free(&tokenizer->codes);
    whit_buf_free(&tokenizer->ranges);
    whit_splitter_free(&tokenizer->splitter);
    whit_model_scratch_free(&tokenizer->scratch);
    whit_free(tokenizer->allocator, tokenizer, sizeof *tokenizer);
}

void whit_tokenizer_trim(whit_tokenizer *tokenizer, size_t keep_bytes)
{
    whit_splitter *splitter = &tokenizer->splitter;
    whit_model_scratch *scratch = &tokenizer->scratch;
    whit_buf *all[] = {&tokenizer->clean,    &tokenizer->texts[0], &tokenizer->texts[1], &tokenizer->codes,
                       &tokenizer->ranges,   &splitter->texts[0],  &splitter->texts[1],  &splitter->pieces[0],
                       &splitter->pieces[1], &splitter->ranges,    &scratch->symbols,    &scratch->heap,
                       &scratch->nodes,      &scratch->cache};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->capacity_bytes > keep_bytes) whit_buf_free(all[i]);
}

/* ---- added tokens -------------------------------------------------------------------------- */

/* Returns byte `depth` of an added token's text; -1 if the text is not longer, -2 if the image is damaged. */
static int added_byte(const whit_tokenizer *tokenizer, const whit_added_token *added, size_t depth)
{
    const uint8_t *text = added_text(tokenizer, added);
    if (!text) return -2;
    return depth < added->text_bytes ? text[depth] : -1;
}

/* Narrows [*low, *high), the tokens that share their first `depth` bytes, to those whose next byte is `byte`. */
static void narrow(const whit_tokenizer *tokenizer, const added_set *set, size_t depth, int byte, size_t *low,
                   size_t *high)
{
    size_t bounds[2];
    for (int side = 0; side < 2; side++) {
        size_t from = *low, to = *high;
        while (from < to) {
            size_t middle = from + (to - from) / 2;
            if (added_byte(tokenizer, &set->tokens[middle], depth) < byte + side)
                from = middle + 1;
            else
                to = middle;
        }
        bounds[side] = from;
    }
    *low = bounds[0];
    *high = bounds[1];
}

/* Returns whether bytes [start, end) of `text`, which is a part of the input, overlap a range of the user's text. */
static bool touches_plain(const encoding *e, const uint8_t *text, size_t start, size_t end)
{
    start += (size_t)(text - e->input);
    end += (size_t)(text - e->input);
    size_t low = 0, high = e->options->n_plain;
    while (low < high) { /* find the first range that ends after `start` */
        size_t middle = low + (high - low) / 2;
        if (e->options->plain[middle].end <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < e->options->n_plain && e->options->plain[low].start < end;
}

/* How the text in which added tokens are searched for is related to the user's text. */
enum origin {
    ORIGIN_RAW,      /* a part of the input: the user's ranges apply */
    ORIGIN_TEMPLATE, /* normalized, without any of the user's text */
    ORIGIN_PLAIN,    /* normalized, with some of the user's text */
};

/* Returns the longest added token that begins at `at` and is allowed there; NULL if not found. */
static const whit_added_token *longest_added(encoding *e, const added_set *set, const uint8_t *text, size_t n,
                                             size_t at, enum origin origin)
{
    const whit_added_token *best = NULL;
    size_t low = 0, high = set->n;
    for (size_t depth = 0; at + depth < n && low < high; depth++) {
        if (e->steps_left-- == 0) {
            e->out_of_steps = true;
            return NULL;
        }
        narrow(e->tokenizer, set, depth, text[at + depth], &low, &high);
        if (low >= high || added_byte(e->tokenizer, &set->tokens[low], depth + 1) != -1) continue;
        const whit_added_token *candidate = &set->tokens[low];
        bool special = candidate->flags & WHIT_ADDED_SPECIAL;
        bool plain = origin == ORIGIN_PLAIN || (origin == ORIGIN_RAW && touches_plain(e, text, at, at + depth + 1));
        if (!special || !plain) best = candidate;
    }
    return best;
}

static bool word_before(const uint8_t *text, size_t at)
{
    size_t last = at, length;
    while (last > 0 && (text[--last] & 0xC0) == 0x80) {
    }
    return at > 0 && whit_is_word(whit_utf8_decode(text + last, at - last, &length));
}

static bool word_after(const uint8_t *text, size_t n, size_t at)
{
    size_t length;
    return at < n && whit_is_word(whit_utf8_decode(text + at, n - at, &length));
}

static size_t spaces_before(const uint8_t *text, size_t at, size_t from)
{
    while (at > from) {
        size_t last = at - 1, length;
        while (last > from && (text[last] & 0xC0) == 0x80) last--;
        if (!whit_is_space(whit_utf8_decode(text + last, at - last, &length))) break;
        at = last;
    }
    return at;
}

static size_t spaces_after(const uint8_t *text, size_t n, size_t at)
{
    size_t length;
    while (at < n && whit_is_space(whit_utf8_decode(text + at, n - at, &length))) at += length;
    return at;
}

/* Finds the next added token that begins at `from` or later and counts. [*start, *end) is the token and the white space
 * that it absorbs, but not before `taken`. As in `tokenizers`, a token that does not count still hides tokens inside
 * it. */
static const whit_added_token *next_added(encoding *e, const added_set *set, const uint8_t *text, size_t n,
                                          size_t *from, size_t taken, enum origin origin, size_t *start, size_t *end)
{
    for (size_t at = *from; at < n;) {
        bool may = set->first_bytes[text[at] / 64] >> text[at] % 64 & 1;
        const whit_added_token *added = may ? longest_added(e, set, text, n, at, origin) : NULL;
        if (e->out_of_steps) return NULL;
        if (!added) {
            at++;
            continue;
        }
        *start = at;
        *end = at = *from = at + added->text_bytes;
        if (added->flags & WHIT_ADDED_SPECIAL && !e->options->parse_special) continue;
        if (added->flags & WHIT_ADDED_SINGLE_WORD && (word_before(text, *start) || word_after(text, n, *end))) continue;
        if (added->flags & WHIT_ADDED_LSTRIP) *start = spaces_before(text, *start, taken);
        if (added->flags & WHIT_ADDED_RSTRIP) *end = spaces_after(text, n, *end);
        return added;
    }
    return NULL;
}

/* ---- the text between added tokens ---------------------------------------------------------- */

static whit_status encode_text(encoding *e, const uint8_t *text, size_t n, bool at_start)
{
    whit_tokenizer *tokenizer = e->tokenizer;
    whit_splitter *splitter = &tokenizer->splitter;
    WHIT_TRY(whit_splitter_begin(splitter, text, n, at_start, e->error));
    for (size_t i = 0; i < tokenizer->n_splits; i++) {
        prepared_step *one = &tokenizer->splits[i];
        WHIT_TRY(whit_splitter_apply(splitter, one->step, one->text, &one->regex, e->error));
    }
    size_t n_pieces;
    const whit_piece *pieces = whit_splitter_pieces(splitter, &n_pieces);
    for (size_t i = 0; i < n_pieces; i++)
        WHIT_TRY(whit_tokenizer_encode_piece(&tokenizer->view, &tokenizer->scratch, splitter->text + pieces[i].start,
                                             pieces[i].end - pieces[i].start, e->ids, e->error));
    return WHIT_OK;
}

/* Applies all normalizers. *text and *n become the result, which is in a buffer of the tokenizer; they are unchanged if
 * there are no normalizers. */
static whit_status normalize_all(whit_tokenizer *tokenizer, const uint8_t **text, size_t *n, whit_error *error)
{
    size_t limit_bytes = *n * MAX_GROWTH + 65536;
    for (size_t i = 0; i < tokenizer->n_normalizers && *n; i++) {
        prepared_step *one = &tokenizer->normalizers[i];
        whit_buf *out = &tokenizer->texts[i % 2];
        out->size_bytes = 0;
        out->failed = false;
        out->limit_bytes = limit_bytes < MAX_TEXT_BYTES ? limit_bytes : MAX_TEXT_BYTES;
        WHIT_TRY(
            whit_normalize(one->step, one->text, one->content, &one->regex, &tokenizer->codes, *text, *n, out, error));
        *text = out->data;
        *n = out->size_bytes;
    }
    return WHIT_OK;
}

typedef whit_status section_fn(encoding *e, const uint8_t *text, size_t n, bool at_start, enum origin origin);

/* Cuts added tokens out of `text`, appends their ids, and passes the text between them to `section`, in order. */
static whit_status cut_added(encoding *e, const added_set *set, const uint8_t *text, size_t n, bool at_start,
                             enum origin origin, section_fn *section)
{
    size_t taken = 0, from = 0, start = 0, end = 0;
    for (;;) {
        const whit_added_token *added = set->n ? next_added(e, set, text, n, &from, taken, origin, &start, &end) : NULL;
        size_t until = added ? start : n;
        if (e->out_of_steps)
            return whit_fail(e->error, WHIT_ERROR_LIMIT,
                             "tokenizer: finding the added tokens in this text takes too many steps: shorten the text");
        if (taken < until) {
            enum origin inside = origin;
            if (origin == ORIGIN_RAW) inside = touches_plain(e, text, taken, until) ? ORIGIN_PLAIN : ORIGIN_TEMPLATE;
            WHIT_TRY(section(e, text + taken, until - taken, at_start && taken == 0, inside));
        }
        if (!added) return WHIT_OK;
        WHIT_TRY(whit_push_id(e->ids, (int32_t)(added->id & INT32_MAX), e->error));
        taken = end;
    }
}

static whit_status encode_between_normalized(encoding *e, const uint8_t *text, size_t n, bool at_start,
                                             enum origin origin)
{
    e->tokenizer->scratch.no_special = origin == ORIGIN_PLAIN;
    return encode_text(e, text, n, at_start);
}

static whit_status encode_section(encoding *e, const uint8_t *text, size_t n, bool at_start, enum origin origin)
{
    if (e->tokenizer->n_normalizers == 0) origin = ORIGIN_RAW;
    WHIT_TRY(normalize_all(e->tokenizer, &text, &n, e->error));
    return cut_added(e, &e->tokenizer->normalized, text, n, at_start, origin, encode_between_normalized);
}

/* ---- the whole text --------------------------------------------------------------------------- */

/* Appends text[start, end) to `out`, with U+FFFD for invalid UTF-8. */
static void append_clean(const uint8_t *text, size_t start, size_t end, whit_buf *out)
{
    while (start < end) {
        size_t valid = whit_utf8_valid_bytes(text + start, end - start), length;
        whit_buf_append(out, text + start, valid);
        start += valid;
        if (start == end) break;
        whit_utf8_decode(text + start, end - start, &length);
        whit_buf_append_str(out, WHIT_UTF8_REPLACEMENT);
        start += length;
    }
}

/* If the text is not valid UTF-8, replaces it by a corrected copy, and changes the user's ranges accordingly. */
static whit_status clean_text(encoding *e, whit_encode_options *options, const uint8_t **text, size_t *n)
{
    whit_buf *clean = &e->tokenizer->clean, *ranges = &e->tokenizer->ranges;
    size_t at = 0;
    if (whit_utf8_valid_bytes(*text, *n) == *n) return WHIT_OK;
    clean->size_bytes = ranges->size_bytes = 0;
    for (size_t i = 0; i < options->n_plain; i++) {
        append_clean(*text, at, options->plain[i].start, clean);
        whit_text_range moved = {.start = clean->size_bytes};
        append_clean(*text, options->plain[i].start, options->plain[i].end, clean);
        moved.end = clean->size_bytes;
        whit_buf_append(ranges, &moved, sizeof moved);
        at = options->plain[i].end;
    }
    append_clean(*text, at, *n, clean);
    if (clean->failed || ranges->failed) return whit_fail_memory(e->error, "the text", *n);
    options->plain = WHIT_ITEMS(const whit_text_range, ranges);
    *text = clean->data;
    *n = clean->size_bytes;
    return WHIT_OK;
}

static whit_status push_ids(const encoding *e, enum whit_tokenizer_section section)
{
    size_t n;
    const int32_t *ids = whit_tokenizer_section(&e->tokenizer->view, section, sizeof *ids, &n);
    for (size_t i = 0; i < n; i++) WHIT_TRY(whit_push_id(e->ids, ids[i], e->error));
    return WHIT_OK;
}

static whit_status encode_input(encoding *e, whit_encode_options *options, const uint8_t *text, size_t n)
{
    WHIT_TRY(clean_text(e, options, &text, &n));
    e->input = text;
    if (options->add_special) WHIT_TRY(push_ids(e, WHIT_TOKENS_BEFORE));
    WHIT_TRY(cut_added(e, &e->tokenizer->raw, text, n, true, ORIGIN_RAW, encode_section));
    if (options->add_special) WHIT_TRY(push_ids(e, WHIT_TOKENS_AFTER));
    return WHIT_OK;
}

whit_status whit_tokenizer_encode(whit_tokenizer *tokenizer, const char *text, size_t n_bytes,
                                  const whit_encode_options *options, whit_buf *ids, whit_error *error)
{
    whit_encode_options mine = *options;
    encoding e = {.tokenizer = tokenizer,
                  .options = &mine,
                  .ids = ids,
                  .error = error,
                  .steps_left = STEPS_ALLOWED + STEPS_PER_BYTE * (uint64_t)n_bytes};
    size_t before = ids->size_bytes, last = 0;
    if (n_bytes >= MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the text is larger than 1 GiB, the limit: split it");
    for (size_t i = 0; i < mine.n_plain; i++) {
        if (mine.plain[i].start < last || mine.plain[i].end < mine.plain[i].start || mine.plain[i].end > n_bytes)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "whit_tokenize: the ranges of user text overlap, or are outside the text");
        last = mine.plain[i].end;
    }
    whit_model_scratch_begin(&tokenizer->scratch, n_bytes);
    tokenizer->clean.failed = tokenizer->codes.failed = tokenizer->ranges.failed = false;
    for (size_t i = 0; i < WHIT_TOKENIZER_MAX_STEPS; i++) {
        whit_regex_begin(tokenizer->normalizers[i].regex, n_bytes);
        whit_regex_begin(tokenizer->splits[i].regex, n_bytes);
    }
    whit_status status = encode_input(&e, &mine, (const uint8_t *)text, n_bytes);
    if (status != WHIT_OK) ids->size_bytes = before;
    return status;
}
