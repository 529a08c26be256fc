/* SPDX-License-Identifier: MIT
 * Decodes by a chain of steps. A step passes fragments of tokens to the next one. Most tokens are a single fragment,
 * the first and last of its token; but after the step Fuse the whole text is one long token. A step that needs a whole
 * token collects its fragments up to the last one. */
#include "tokenizer/decoder.h"

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/regex.h"
#include "tokenizer/unicode.h"

/* State of a step. */
typedef struct stage {
    const whit_tokenizer_step *step;
    const uint8_t *text, *content; /* the step's strings */
    whit_buf held;                 /* bytes that were not passed on yet */
    uint32_t n_cut;                /* number of characters removed from the beginning of the current token */
    bool started;                  /* a fragment was passed on before, so the next token is not the first */
    bool in_token, leading;
    whit_regex *regex;
} stage;

struct whit_token_decoder {
    whit_tokenizer_view view;
    whit_token_decoder_options options;
    const whit_allocator *allocator;
    size_t n_stages;
    whit_buf out;
    stage stages[WHIT_TOKENIZER_MAX_STEPS];
};

typedef struct fragment {
    const uint8_t *text;
    size_t n;
    bool first, last; /* whether the fragment is the first, and the last, of its token */
} fragment;

static whit_status feed(whit_token_decoder *decoder, size_t i, fragment in, whit_error *error);

static whit_status feed_whole(whit_token_decoder *decoder, size_t i, const void *text, size_t n, whit_error *error)
{
    return feed(decoder, i, (fragment){n ? text : "", n, true, true}, error);
}

static whit_status hold(stage *s, const void *text, size_t n, whit_error *error)
{
    if (!whit_buf_append(&s->held, text, n)) return whit_fail_memory(error, "the decoded text", s->held.size_bytes + n);
    return WHIT_OK;
}

/* ---- steps on whole tokens ----------------------------------------------------------------- */

static whit_status replace_all(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n, whit_error *error)
{
    stage *s = &decoder->stages[i];
    whit_buf out = {.allocator = decoder->allocator};
    whit_status status =
        whit_replace(s->step, s->text, s->content, &s->regex, decoder->allocator, text, n, &out, error);
    if (status == WHIT_OK) status = feed_whole(decoder, i + 1, out.data, out.size_bytes, error);
    whit_buf_free(&out);
    return status;
}

/* Replaces a string by another one. Unlike replace_all, this needs no allocation; it is used for the most common step,
 * which replaces U+2581 by a space. */
static whit_status replace_character(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n,
                                     whit_error *error)
{
    stage *s = &decoder->stages[i];
    size_t pattern = s->step->text_bytes;
    s->held.size_bytes = 0;
    for (size_t at = 0; at < n;) {
        bool match = n - at >= pattern && memcmp(text + at, s->text, pattern) == 0;
        WHIT_TRY(match ? hold(s, s->content, s->step->content_bytes, error) : hold(s, text + at, 1, error));
        at += match ? pattern : 1;
    }
    whit_status status = feed_whole(decoder, i + 1, s->held.data, s->held.size_bytes, error);
    s->held.size_bytes = 0;
    return status;
}

static whit_status decode_replace(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n,
                                  whit_error *error)
{
    const stage *s = &decoder->stages[i];
    if (s->step->text_bytes == 0) return feed_whole(decoder, i + 1, text, n, error);
    /* `text` is in this stage's own buffer if the token arrived in fragments. */
    bool simple = !(s->step->flags & WHIT_STEP_FLAG_REGEX) && text != s->held.data;
    return (simple ? replace_character : replace_all)(decoder, i, text, n, error);
}

/* Decodes Metaspace: its symbol becomes a space, or is removed in the first token unless the prepend scheme is "never".
 * The result is never longer than the token, so it is built in place in the stage's buffer. */
static whit_status decode_metaspace(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n,
                                    whit_error *error)
{
    stage *s = &decoder->stages[i];
    bool drop = !s->started && s->step->a != WHIT_PREPEND_NEVER;
    size_t mark = s->step->text_bytes, kept = 0;
    s->started = true;
    if (text != s->held.data) {
        s->held.size_bytes = 0;
        WHIT_TRY(hold(s, text, n, error));
    }
    uint8_t *held = s->held.data;
    for (size_t at = 0; at < n;) {
        bool match = mark && n - at >= mark && memcmp(held + at, s->text, mark) == 0;
        if (!match)
            held[kept++] = held[at];
        else if (!drop)
            held[kept++] = ' ';
        at += match ? mark : 1;
    }
    whit_status status = feed_whole(decoder, i + 1, held, kept, error);
    s->held.size_bytes = 0;
    return status;
}

static size_t count_leading(const stage *s, const uint8_t *text, size_t n, size_t most)
{
    size_t mark = s->step->text_bytes, count = 0;
    while (mark && count < most && n >= mark && memcmp(text, s->text, mark) == 0) {
        text += mark;
        n -= mark;
        count++;
    }
    return count;
}

static whit_status decode_strip(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n, whit_error *error)
{
    const stage *s = &decoder->stages[i];
    size_t mark = s->step->text_bytes, cut = count_leading(s, text, n, s->step->a) * mark;
    size_t end = n;
    for (uint32_t k = 0; k < s->step->b && mark && end - cut >= mark; k++) {
        if (memcmp(text + end - mark, s->text, mark) != 0) break;
        end -= mark;
    }
    return feed_whole(decoder, i + 1, text + cut, end - cut, error);
}

/* Removes the spaces before punctuation and contractions, most of which BERT's pre-tokenizer has added, and shortens
 * " do not" to " don't", as transformers does. No replacement is longer than the original, so this is done in place.
 * Returns the new size. */
static size_t clean_up(uint8_t *text, size_t n)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t n_from = strlen(pairs[i][0]), n_to = strlen(pairs[i][1]), kept = 0;
        for (size_t at = 0; at < n;) {
            bool match = n - at >= n_from && memcmp(text + at, pairs[i][0], n_from) == 0;
            if (match)
                memcpy(text + kept, pairs[i][1], n_to);
            else
                text[kept] = text[at];
            kept += match ? n_to : 1;
            at += match ? n_from : 1;
        }
        n = kept;
    }
    return n;
}

static whit_status decode_wordpiece(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n,
                                    whit_error *error)
{
    stage *s = &decoder->stages[i];
    size_t prefix = s->step->text_bytes;
    bool inner = s->started && prefix && n >= prefix && memcmp(text, s->text, prefix) == 0;
    whit_buf out = {.allocator = decoder->allocator};
    if (s->started && !inner) whit_buf_append(&out, " ", 1);
    if (inner)
        whit_buf_append(&out, text + prefix, n - prefix);
    else
        whit_buf_append(&out, text, n);
    s->started = true;
    if (s->step->a && !out.failed) out.size_bytes = clean_up(out.data, out.size_bytes);
    whit_status status = out.failed ? whit_fail_memory(error, "the decoded text", n)
                                    : feed_whole(decoder, i + 1, out.data, out.size_bytes, error);
    whit_buf_free(&out);
    return status;
}

static whit_status decode_join(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n, whit_error *error)
{
    stage *s = &decoder->stages[i];
    if (s->started) WHIT_TRY(feed_whole(decoder, i + 1, " ", 1, error));
    s->started = true;
    return feed_whole(decoder, i + 1, text, n, error);
}

/* Decodes the end-of-word suffix. It becomes a space, except in the last token; the space is therefore passed on with
 * the next token. */
static whit_status decode_suffix(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n,
                                 whit_error *error)
{
    stage *s = &decoder->stages[i];
    size_t suffix = s->step->text_bytes;
    if (s->in_token) WHIT_TRY(feed_whole(decoder, i + 1, " ", 1, error));
    s->in_token = suffix && n >= suffix && memcmp(text + n - suffix, s->text, suffix) == 0;
    return feed_whole(decoder, i + 1, text, s->in_token ? n - suffix : n, error);
}

/* ---- bytes --------------------------------------------------------------------------------- */

int whit_tokenizer_spelt_byte(const uint8_t *text, size_t n)
{
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int high = whit_hex_digit(text[3]), low = whit_hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static whit_status end_byte_run(whit_token_decoder *decoder, size_t i, whit_error *error)
{
    stage *s = &decoder->stages[i];
    size_t n = s->held.size_bytes;
    whit_status status = WHIT_OK;
    if (n && (decoder->options.is_inner || whit_utf8_valid_bytes(s->held.data, n) == n))
        status = feed_whole(decoder, i + 1, s->held.data, n, error);
    else
        for (size_t k = 0; k < n && status == WHIT_OK; k++)
            status = feed_whole(decoder, i + 1, WHIT_UTF8_REPLACEMENT, 3, error);
    s->held.size_bytes = 0;
    return status;
}

/* Returns whether n bytes that are not a complete character may become one when more bytes follow; the first `length`
 * of them are the invalid part. As in Python's incremental decoder, the first two bytes of a surrogate also wait for
 * the third. */
static bool may_go_on(const uint8_t *text, size_t n, size_t length)
{
    bool surrogate = n == 2 && text[0] == 0xED && text[1] >= 0xA0 && text[1] <= 0xBF;
    return surrogate || (length == n && text[0] >= 0xC2 && text[0] <= 0xF4);
}

/* Passes on the complete characters at the beginning of a run of bytes, and U+FFFD for each byte that cannot begin a
 * character any more. Used while streaming. */
static whit_status advance_byte_run(whit_token_decoder *decoder, size_t i, whit_error *error)
{
    stage *s = &decoder->stages[i];
    while (s->held.size_bytes) {
        size_t length, n = s->held.size_bytes;
        uint32_t code = whit_utf8_decode(s->held.data, n, &length);
        uint8_t character[4];
        if (code == WHIT_UTF8_INVALID && may_go_on(s->held.data, n, length)) return WHIT_OK;
        size_t n_replaced = code == WHIT_UTF8_INVALID ? length : 0;
        memcpy(character, s->held.data, length);
        s->held.size_bytes = n - length;
        memmove(s->held.data, s->held.data + length, n - length);
        if (!n_replaced) WHIT_TRY(feed_whole(decoder, i + 1, character, length, error));
        for (size_t k = 0; k < n_replaced; k++) WHIT_TRY(feed_whole(decoder, i + 1, WHIT_UTF8_REPLACEMENT, 3, error));
    }
    return WHIT_OK;
}

static whit_status decode_byte_fallback(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n,
                                        whit_error *error)
{
    stage *s = &decoder->stages[i];
    int byte = whit_tokenizer_spelt_byte(text, n);
    /* After Fuse the whole text is one token, and `text` may be in this stage's own buffer. Then no run of bytes is in
     * the buffer, and no token follows. */
    const bool own = text == s->held.data;
    if (own) s->held.size_bytes = 0;
    if (byte < 0) {
        WHIT_TRY(end_byte_run(decoder, i, error));
        return feed_whole(decoder, i + 1, text, n, error);
    }
    uint8_t one = (uint8_t)byte;
    WHIT_TRY(hold(s, &one, 1, error));
    if (own) return end_byte_run(decoder, i, error);
    return decoder->options.hold_bytes || decoder->options.is_inner ? WHIT_OK : advance_byte_run(decoder, i, error);
}

/* Converts byte-level symbols back to bytes, which are added to the stage's buffer. A token that contains any other
 * character is added unchanged. */
static whit_status hold_symbols(stage *s, const uint8_t *text, size_t n, whit_error *error)
{
    size_t start = s->held.size_bytes;
    for (size_t at = 0, length; at < n; at += length) {
        uint32_t code = whit_utf8_decode(text + at, n - at, &length);
        int byte = code == WHIT_UTF8_INVALID ? -1 : whit_byte_of_symbol(code);
        if (byte < 0) {
            s->held.size_bytes = start;
            return hold(s, text, n, error);
        }
        uint8_t one = (uint8_t)byte;
        WHIT_TRY(hold(s, &one, 1, error));
    }
    return WHIT_OK;
}

/* Passes on the complete characters of the stage's buffer, and U+FFFD for each invalid part (with is_inner all bytes,
 * unchanged). With `end` an incomplete character at the end is replaced too. The passed fragments belong to one long
 * token. */
static whit_status pass_characters(whit_token_decoder *decoder, size_t i, bool end, whit_error *error)
{
    stage *s = &decoder->stages[i];
    size_t n = s->held.size_bytes, at = 0;
    while (at < n) {
        size_t length, left = n - at;
        size_t valid = decoder->options.is_inner ? left : whit_utf8_valid_bytes(s->held.data + at, left);
        if (valid) {
            WHIT_TRY(feed(decoder, i + 1, (fragment){s->held.data + at, valid, !s->started, false}, error));
            s->started = true;
            at += valid;
            continue;
        }
        whit_utf8_decode(s->held.data + at, n - at, &length);
        if (!end && may_go_on(s->held.data + at, n - at, length)) break;
        WHIT_TRY(
            feed(decoder, i + 1, (fragment){(const uint8_t *)WHIT_UTF8_REPLACEMENT, 3, !s->started, false}, error));
        s->started = true;
        at += length;
    }
    s->held.size_bytes = n - at;
    if (at && n > at) memmove(s->held.data, s->held.data + at, n - at);
    return WHIT_OK;
}

/* ---- the chain ----------------------------------------------------------------------------- */

static whit_status feed_token(whit_token_decoder *decoder, size_t i, const uint8_t *text, size_t n, whit_error *error)
{
    switch (decoder->stages[i].step->kind) {
    case WHIT_STEP_REPLACE: return decode_replace(decoder, i, text, n, error);
    case WHIT_STEP_BYTE_FALLBACK: return decode_byte_fallback(decoder, i, text, n, error);
    case WHIT_STEP_METASPACE: return decode_metaspace(decoder, i, text, n, error);
    case WHIT_STEP_STRIP_CHAR: return decode_strip(decoder, i, text, n, error);
    case WHIT_STEP_WORDPIECE: return decode_wordpiece(decoder, i, text, n, error);
    case WHIT_STEP_JOIN_SPACE: return decode_join(decoder, i, text, n, error);
    case WHIT_STEP_SUFFIX: return decode_suffix(decoder, i, text, n, error);
    default:
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "tokenizer: decoder %u is not known: the data is damaged, or made by a later whit",
                         decoder->stages[i].step->kind);
    }
}

/* Removes characters from the beginning of a token that arrives in fragments. Nothing needs to be held back, because
 * the removed character is never split between fragments. */
static whit_status strip_stream(whit_token_decoder *decoder, size_t i, fragment in, whit_error *error)
{
    stage *s = &decoder->stages[i];
    if (in.first) {
        s->n_cut = 0;
        s->leading = true;
    }
    if (s->leading) {
        size_t count = count_leading(s, in.text, in.n, s->step->a - s->n_cut);
        s->n_cut += (uint32_t)count;
        in.text += count * s->step->text_bytes;
        in.n -= count * s->step->text_bytes;
        s->leading = in.n == 0 && s->n_cut < s->step->a;
    }
    return feed(decoder, i + 1, in, error);
}

static whit_status feed(whit_token_decoder *decoder, size_t i, fragment in, whit_error *error)
{
    if (i == decoder->n_stages) {
        if (!whit_buf_append(&decoder->out, in.text, in.n))
            return whit_fail_memory(error, "the decoded text", decoder->out.size_bytes + in.n);
        return WHIT_OK;
    }
    stage *s = &decoder->stages[i];
    uint32_t kind = s->step->kind;
    if (kind == WHIT_STEP_FUSE) {
        in.first = !s->started;
        in.last = false; /* whit_token_decoder_flush sends the last fragment */
        s->started = true;
        return feed(decoder, i + 1, in, error);
    }
    if (kind == WHIT_STEP_BYTE_LEVEL) {
        WHIT_TRY(hold_symbols(s, in.text, in.n, error));
        return pass_characters(decoder, i, false, error);
    }
    if (kind == WHIT_STEP_STRIP_CHAR && s->step->b == 0) return strip_stream(decoder, i, in, error);
    if (in.first && in.last) return feed_token(decoder, i, in.text, in.n, error);
    if (in.first) s->held.size_bytes = 0;
    WHIT_TRY(hold(s, in.text, in.n, error));
    if (!in.last) return WHIT_OK;
    size_t n = s->held.size_bytes;
    const uint8_t *token = n ? s->held.data : (const uint8_t *)"";
    whit_status status = feed_token(decoder, i, token, n, error);
    s->held.size_bytes = 0;
    return status;
}

/* Ends the input of stage i: passes on the bytes in its buffer, and resets it. */
static whit_status finish_token(whit_token_decoder *decoder, size_t i, whit_error *error)
{
    stage *s = &decoder->stages[i];
    whit_status status = WHIT_OK;
    if (s->step->kind == WHIT_STEP_BYTE_FALLBACK) status = end_byte_run(decoder, i, error);
    if (s->step->kind == WHIT_STEP_BYTE_LEVEL) status = pass_characters(decoder, i, true, error);
    bool one_token = s->step->kind == WHIT_STEP_BYTE_LEVEL || s->step->kind == WHIT_STEP_FUSE;
    if (one_token && status == WHIT_OK)
        status = feed(decoder, i + 1, (fragment){(const uint8_t *)"", 0, !s->started, true}, error);
    s->held.size_bytes = 0;
    s->held.failed = false;
    s->started = s->in_token = s->leading = false;
    s->n_cut = 0;
    return status;
}

whit_status whit_token_decoder_open(const whit_tokenizer_view *view, whit_token_decoder_options options,
                                    const whit_allocator *allocator, whit_token_decoder **decoder, whit_error *error)
{
    *decoder = NULL;
    whit_token_decoder *made = whit_zalloc(allocator, sizeof *made);
    if (!made) return whit_fail_memory(error, "the tokenizer's decoder", sizeof *made);
    made->view = *view;
    made->options = options;
    made->allocator = allocator;
    made->out.allocator = allocator;
    /* Large enough for usual tokens, so that a stream rarely allocates memory. */
    size_t longest = view->header->max_token_bytes;
    size_t first_bytes = 256 + 2 * (longest < 1024 ? longest : 1024);
    const whit_tokenizer_step *steps = whit_tokenizer_section(view, WHIT_TOKENS_DECODE, sizeof *steps, &made->n_stages);
    for (size_t i = 0; i < made->n_stages; i++) {
        stage *s = &made->stages[i];
        *s = (stage){.step = &steps[i], .held = {.allocator = allocator}, .started = options.is_inner};
        bool room = whit_buf_reserve(&s->held, first_bytes);
        s->text = whit_tokenizer_string(view, steps[i].text_offset, steps[i].text_bytes);
        s->content = whit_tokenizer_string(view, steps[i].content_offset, steps[i].content_bytes);
        if (!room || !s->text || !s->content) {
            made->n_stages = i + 1;
            whit_token_decoder_close(made);
            return room ? whit_fail(error, WHIT_ERROR_FORMAT,
                                    "tokenizer: a decoder's text is outside the data, which is damaged")
                        : whit_fail_memory(error, "the tokenizer's decoder", first_bytes);
        }
    }
    if (!whit_buf_reserve(&made->out, first_bytes)) {
        whit_token_decoder_close(made);
        return whit_fail_memory(error, "the tokenizer's decoder", first_bytes);
    }
    *decoder = made;
    return WHIT_OK;
}

whit_status whit_token_decoder_push(whit_token_decoder *decoder, int32_t id, const char **text, size_t *n_bytes,
                                    whit_error *error)
{
    decoder->out.size_bytes = 0;
    decoder->out.failed = false;
    size_t n;
    const uint8_t *token = whit_tokenizer_token_text(&decoder->view, id, &n);
    bool skip = decoder->options.skip_special && whit_tokenizer_token_flags(&decoder->view, id) & WHIT_TOKEN_SPECIAL;
    if (token && !skip) WHIT_TRY(feed_whole(decoder, 0, token, n, error));
    *text = decoder->out.size_bytes ? whit_chars(&decoder->out) : "";
    *n_bytes = decoder->out.size_bytes;
    return WHIT_OK;
}

whit_status whit_token_decoder_flush(whit_token_decoder *decoder, const char **text, size_t *n_bytes, whit_error *error)
{
    decoder->out.size_bytes = 0;
    decoder->out.failed = false;
    for (size_t i = 0; i < decoder->n_stages; i++) WHIT_TRY(finish_token(decoder, i, error));
    *text = decoder->out.size_bytes ? whit_chars(&decoder->out) : "";
    *n_bytes = decoder->out.size_bytes;
    return WHIT_OK;
}

void whit_token_decoder_close(whit_token_decoder *decoder)
{
    if (!decoder) return;
    for (size_t i = 0; i < decoder->n_stages; i++) {
        whit_buf_free(&decoder->stages[i].held);
        whit_regex_close(decoder->stages[i].regex);
    }
    whit_buf_free(&decoder->out);
    whit_free(decoder->allocator, decoder, sizeof *decoder);
}

whit_status whit_tokenizer_decode(const whit_tokenizer_view *view, const int32_t *ids, size_t n_ids, bool skip_special,
                                  whit_buf *text, whit_error *error)
{
    whit_token_decoder *decoder;
    const char *piece;
    size_t n;
    WHIT_TRY(whit_token_decoder_open(view,
                                     (whit_token_decoder_options){.skip_special = skip_special, .hold_bytes = true},
                                     text->allocator, &decoder, error));
    whit_status status = WHIT_OK;
    for (size_t i = 0; i <= n_ids && status == WHIT_OK; i++) {
        status = i < n_ids ? whit_token_decoder_push(decoder, ids[i], &piece, &n, error)
                           : whit_token_decoder_flush(decoder, &piece, &n, error);
        if (status == WHIT_OK && !whit_buf_append(text, piece, n))
            status = whit_fail_memory(error, "the decoded text", text->size_bytes + n);
    }
    whit_token_decoder_close(decoder);
    return status;
}
