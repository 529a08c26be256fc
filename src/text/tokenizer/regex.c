/* SPDX-License-Identifier: MIT */
#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"

#define MATCH_LIMIT    1000000u /* backtracking steps of one attempt; real patterns need a few */
#define DEPTH_LIMIT    100000u
#define HEAP_LIMIT_KIB 65536u
/* A failing attempt may read the text up to its end, so failing at every position takes quadratic time. Therefore a
 * search attempts WINDOW_BYTES starting positions, then checks the time limit. */
#define WINDOW_BYTES      64u
#define TIME_ALLOWED_NS   2000000000u
#define TIME_PER_BYTE_NS  2000u
#define MAX_PATTERN_BYTES 65536u

struct whit_regex {
    const whit_allocator *allocator;
    pcre2_general_context *memory;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    uint64_t deadline_ns; /* 0: the time has not started */
    size_t n_bytes, n_searches;
};

/* Allocates memory for PCRE2. PCRE2 frees memory without stating its size, but whit's allocators need the size; it is
 * stored before the memory. */
static void *pcre_alloc(size_t size_bytes, void *user)
{
    size_t padded;
    if (!whit_add_size(size_bytes, WHIT_ALIGN_BYTES, &padded)) return NULL;
    uint8_t *memory = whit_alloc(user, padded);
    if (!memory) return NULL;
    memcpy(memory, &padded, sizeof padded);
    return memory + WHIT_ALIGN_BYTES;
}

static void pcre_free(void *memory, void *user)
{
    if (!memory) return;
    uint8_t *start = (uint8_t *)memory - WHIT_ALIGN_BYTES;
    size_t padded;
    memcpy(&padded, start, sizeof padded);
    whit_free(user, start, padded);
}

static bool is_lack_of_memory(int code)
{
    return code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED;
}

static pcre2_general_context *open_memory(const whit_allocator *allocator)
{
    /* PCRE2 declares the user pointer as not const, but nothing writes through it. */
    return pcre2_general_context_create(pcre_alloc, pcre_free, (void *)(uintptr_t)allocator);
}

whit_status whit_regex_has_property(const char *name, const whit_allocator *allocator, bool *has, whit_error *error)
{
    uint8_t pattern[96];
    int n = snprintf((char *)pattern, sizeof pattern, "\\p{%s}", name), code = 0;
    PCRE2_SIZE place;
    pcre2_general_context *memory = open_memory(allocator);
    pcre2_compile_context *how = memory ? pcre2_compile_context_create(memory) : NULL;
    pcre2_code *compiled = how ? pcre2_compile(pattern, (size_t)n, PCRE2_UTF, &code, &place, how) : NULL;
    *has = compiled != NULL;
    bool failed = !how || (!compiled && is_lack_of_memory(code));
    pcre2_code_free(compiled);
    pcre2_compile_context_free(how);
    pcre2_general_context_free(memory);
    return failed ? whit_fail_memory(error, "the tokenizer's regular expression", 0) : WHIT_OK;
}

static whit_status compile_pattern(whit_regex *regex, const uint8_t *pattern, size_t n_bytes, whit_error *error)
{
    regex->memory = open_memory(regex->allocator);
    pcre2_compile_context *how = regex->memory ? pcre2_compile_context_create(regex->memory) : NULL;
    if (!how) return whit_fail_memory(error, "the tokenizer's regular expression", 0);
    pcre2_set_newline(how, PCRE2_NEWLINE_LF);
    int code;
    PCRE2_SIZE place;
    regex->code = pcre2_compile(
        pattern, n_bytes, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C,
        &code, &place, how);
    pcre2_compile_context_free(how);
    if (!regex->code && is_lack_of_memory(code))
        return whit_fail_memory(error, "the tokenizer's regular expression", n_bytes);
    if (!regex->code) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(code, why, sizeof why);
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "pattern '%.*s': %s", (int)(n_bytes < 120 ? n_bytes : 120),
                         (const char *)pattern, (const char *)why);
    }
    regex->data = pcre2_match_data_create_from_pattern(regex->code, regex->memory);
    regex->limits = pcre2_match_context_create(regex->memory);
    if (!regex->data || !regex->limits) return whit_fail_memory(error, "the tokenizer's regular expression", 0);
    pcre2_set_match_limit(regex->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(regex->limits, HEAP_LIMIT_KIB);
    /* Compilation to machine code makes matching faster. If it is not possible here, PCRE2 interprets the pattern. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return WHIT_OK;
}

whit_status whit_regex_compile(const uint8_t *pattern, size_t n_bytes, const whit_allocator *allocator,
                               whit_regex **regex, whit_error *error)
{
    *regex = NULL;
    if (n_bytes > MAX_PATTERN_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "the tokenizer's regular expression is larger than 64 KiB, the limit");
    whit_buf translated = {.allocator = allocator};
    whit_regex *made = whit_zalloc(allocator, sizeof *made);
    whit_status status = WHIT_OK;
    if (!made) return whit_fail_memory(error, "the tokenizer's regular expression", sizeof *made);
    made->allocator = allocator;
    status = whit_regex_translate(pattern, n_bytes, &translated, error);
    if (status == WHIT_OK) status = compile_pattern(made, translated.data, translated.size_bytes, error);
    whit_buf_free(&translated);
    if (status == WHIT_OK)
        *regex = made;
    else
        whit_regex_close(made);
    return status;
}

void whit_regex_begin(whit_regex *regex, size_t n_bytes)
{
    if (!regex) return;
    regex->deadline_ns = 0;
    regex->n_bytes = n_bytes;
}

/* Returns whether the time limit is exceeded. The time starts with the first call; for short texts the clock is read in
 * every 16th call only. */
static bool out_of_time(whit_regex *regex, size_t n_bytes)
{
    if (n_bytes <= WINDOW_BYTES && regex->n_searches++ % 16 != 0) return false;
    uint64_t now = whit_thread_cpu_ns();
    if (regex->n_bytes < n_bytes) regex->n_bytes = n_bytes;
    if (regex->deadline_ns == 0) regex->deadline_ns = now + TIME_ALLOWED_NS + regex->n_bytes * TIME_PER_BYTE_NS;
    return now > regex->deadline_ns;
}

void whit_regex_close(whit_regex *regex)
{
    if (!regex) return;
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->data);
    pcre2_code_free(regex->code);
    pcre2_general_context_free(regex->memory);
    whit_free(regex->allocator, regex, sizeof *regex);
}

/* Returns the position of the first character that begins at `at` or later. */
static size_t character_from(const uint8_t *text, size_t n_bytes, size_t at)
{
    while (at < n_bytes && (text[at] & 0xC0) == 0x80) at++;
    return at;
}

/* Searches from match->from on. Each round attempts the characters that begin in a window [from, last]; the next window
 * begins with the character after it. */
static whit_status search(whit_regex *regex, const uint8_t *text, size_t n_bytes, whit_match *match, bool *found,
                          whit_error *error)
{
    *found = false;
    for (size_t from = character_from(text, n_bytes, match->from), last;;
         from = character_from(text, n_bytes, last + 1)) {
        last = n_bytes - from > WINDOW_BYTES ? from + WINDOW_BYTES : n_bytes;
        pcre2_set_offset_limit(regex->limits, last);
        int n = pcre2_match(regex->code, text, n_bytes, from, PCRE2_NO_UTF_CHECK, regex->data, regex->limits);
        if (n == PCRE2_ERROR_JIT_STACKLIMIT)
            n = pcre2_match(regex->code, text, n_bytes, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, regex->data,
                            regex->limits);
        if (n == PCRE2_ERROR_NOMEMORY) return whit_fail_memory(error, "the tokenizer's regular expression", 0);
        if (n < 0 && n != PCRE2_ERROR_NOMATCH)
            return whit_fail(error, WHIT_ERROR_LIMIT,
                             "the tokenizer's regular expression takes too many steps on this text: shorten the text");
        if (n >= 0) {
            const PCRE2_SIZE *range = pcre2_get_ovector_pointer(regex->data);
            match->start = range[0];
            match->end = range[1] < range[0] ? range[0] : range[1]; /* \K may result in a reversed range */
            *found = true;
            return WHIT_OK;
        }
        if (out_of_time(regex, n_bytes))
            return whit_fail(error, WHIT_ERROR_LIMIT,
                             "the tokenizer's regular expression takes too long on this text: shorten the text");
        if (last == n_bytes) return WHIT_OK;
    }
}

/* Decides whether a match counts, and sets where the next search begins. An empty match at the end of the previous
 * match does not count. */
static bool accept_match(const uint8_t *text, size_t n_bytes, whit_match *match, size_t previous_end)
{
    bool empty_again = match->start == match->end && match->found && match->end == previous_end;
    if (!empty_again) {
        match->found = true;
        match->from = match->end;
        return true;
    }
    match->from = match->from < n_bytes ? character_from(text, n_bytes, match->from + 1) : n_bytes + 1;
    return false;
}

whit_status whit_regex_next(whit_regex *regex, const uint8_t *text, size_t n_bytes, whit_match *match, bool *found,
                            whit_error *error)
{
    size_t previous_end = match->end;
    *found = false;
    while (match->from <= n_bytes) {
        WHIT_TRY(search(regex, text, n_bytes, match, found, error));
        if (!*found || accept_match(text, n_bytes, match, previous_end)) return WHIT_OK;
        *found = false;
    }
    return WHIT_OK;
}

whit_status whit_step_next_match(const whit_tokenizer_step *step, const uint8_t *pattern, whit_regex **regex,
                                 const whit_allocator *allocator, const uint8_t *text, size_t n_bytes,
                                 whit_match *match, bool *found, whit_error *error)
{
    if (step->flags & WHIT_STEP_FLAG_REGEX) {
        if (!*regex) WHIT_TRY(whit_regex_compile(pattern, step->text_bytes, allocator, regex, error));
        return whit_regex_next(*regex, text, n_bytes, match, found, error);
    }
    const uint8_t *at = NULL;
    if (step->text_bytes && match->from < n_bytes)
        at = memmem(text + match->from, n_bytes - match->from, pattern, step->text_bytes);
    *found = at != NULL;
    if (at) {
        match->start = (size_t)(at - text);
        match->end = match->from = match->start + step->text_bytes;
    }
    return WHIT_OK;
}

whit_status whit_replace(const whit_tokenizer_step *step, const uint8_t *pattern, const uint8_t *content,
                         whit_regex **regex, const whit_allocator *allocator, const uint8_t *text, size_t n_bytes,
                         whit_buf *out, whit_error *error)
{
    whit_match match = {0};
    size_t copied = 0;
    bool found = step->text_bytes > 0;
    if (step->flags & WHIT_STEP_FLAG_REGEX && whit_utf8_valid_bytes(text, n_bytes) != n_bytes) found = false;
    while (found) {
        WHIT_TRY(whit_step_next_match(step, pattern, regex, allocator, text, n_bytes, &match, &found, error));
        if (!found) break;
        whit_buf_append(out, text + copied, match.start - copied);
        whit_buf_append(out, content, step->content_bytes);
        copied = match.end;
    }
    if (!whit_buf_append(out, text + copied, n_bytes - copied)) {
        if (out->limit_bytes && out->size_bytes + n_bytes + step->content_bytes > out->limit_bytes)
            return whit_fail(error, WHIT_ERROR_LIMIT,
                             "tokenizer: replacing parts of the text makes it more than 20 times as long, the limit");
        return whit_fail_memory(error, "the text", out->size_bytes + n_bytes);
    }
    return WHIT_OK;
}
