/* SPDX-License-Identifier: MIT
 * Reads Gemma 4's notation of arguments. */
#include "runtime/call_gemma.h"

#include "runtime/call_values.h"

enum { KEY_MAX_BYTES = 512, WORD_MAX_BYTES = 4096 };

static const char mark[] = WHIT_GEMMA_MARK;
enum { MARK_BYTES = sizeof mark - 1 };

/* Input bytes, and the reader's position in them. */
struct input {
    const char *text;
    size_t n, at;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool in_list(const whit_gemma_reader *r)
{
    return r->depth && r->lists >> r->depth & 1;
}

/* Compares the text at offset `at` with the mark of strings. Returns 1 if it begins with the mark, -1 if more bytes
 * could complete the mark, 0 if it differs. */
static int match_mark(const struct input *in, size_t at)
{
    size_t left = in->n - at;
    if (memcmp(in->text + at, mark, left < MARK_BYTES ? left : MARK_BYTES) != 0) return 0;
    return left >= MARK_BYTES ? 1 : -1;
}

static const char *find_mark(const struct input *in, size_t from)
{
    return memmem(in->text + from, in->n - from, mark, MARK_BYTES);
}

/* Appends `text` as the content of a JSON string, escaped and without quotes. */
static bool write_text(const char *text, size_t n, whit_buf *out)
{
    size_t begin = out->size_bytes;
    if (!whit_json_write_string(out, text, n)) return false;
    memmove(out->data + begin, out->data + begin + 1, out->size_bytes - begin - 2); /* removes the quotes */
    out->size_bytes -= 2;
    return true;
}

static whit_gemma_result close_container(whit_gemma_reader *r, struct input *in, whit_buf *out)
{
    const char c = in->text[in->at];
    if (c != (in_list(r) ? ']' : '}')) return WHIT_GEMMA_MALFORMED;
    in->at++;
    if (!whit_buf_append(out, &c, 1)) return WHIT_GEMMA_NO_MEMORY;
    if (!r->depth) return WHIT_GEMMA_DONE;
    r->depth--;
    r->is_first = false;
    r->state = WHIT_GEMMA_NEXT;
    return WHIT_GEMMA_MORE;
}

static whit_gemma_result open_container(whit_gemma_reader *r, struct input *in, whit_buf *out)
{
    const char c = in->text[in->at];
    if (r->depth + 1 == WHIT_GEMMA_DEPTH_MAX) return WHIT_GEMMA_MALFORMED;
    in->at++;
    r->depth++;
    r->lists &= ~(UINT64_C(1) << r->depth);
    if (c == '[') r->lists |= UINT64_C(1) << r->depth;
    r->is_first = true;
    r->state = c == '[' ? WHIT_GEMMA_VALUE : WHIT_GEMMA_KEY;
    return whit_buf_append(out, &c, 1) ? WHIT_GEMMA_MORE : WHIT_GEMMA_NO_MEMORY;
}

/* Reads a key, bare or between marks, and its colon. Sets *wait if more bytes are needed. */
static whit_gemma_result read_key(whit_gemma_reader *r, struct input *in, whit_buf *out, bool *wait)
{
    const char *key = in->text + in->at, *end = in->text + in->n;
    size_t n = 0, taken;
    if (*key == '}' && r->is_first) return close_container(r, in, out);
    int quoted = match_mark(in, in->at);
    *wait = quoted < 0;
    if (*wait) return WHIT_GEMMA_MORE;
    if (quoted) {
        key += MARK_BYTES;
        const char *close = find_mark(in, in->at + MARK_BYTES);
        *wait = (!close || close + MARK_BYTES == end) && end - key <= KEY_MAX_BYTES;
        if (*wait) return WHIT_GEMMA_MORE;
        if (!close || close + MARK_BYTES == end || close[MARK_BYTES] != ':') return WHIT_GEMMA_MALFORMED;
        n = (size_t)(close - key);
        taken = n + 2 * MARK_BYTES + 1;
    } else {
        while (key + n < end && !strchr(":{}[],", key[n]) && key[n]) n++;
        *wait = key + n == end && n <= KEY_MAX_BYTES;
        if (*wait) return WHIT_GEMMA_MORE;
        if (!n || key + n == end || key[n] != ':') return WHIT_GEMMA_MALFORMED;
        taken = n + 1;
    }
    if (n > KEY_MAX_BYTES) return WHIT_GEMMA_MALFORMED;
    in->at += taken;
    r->is_first = false;
    r->state = WHIT_GEMMA_VALUE;
    return whit_json_write_string(out, key, n) && whit_buf_append_str(out, ": ") ? WHIT_GEMMA_MORE
                                                                                 : WHIT_GEMMA_NO_MEMORY;
}

/* Reads a number or a word up to the byte that ends it, and appends it as JSON (whit_call_value_write). Sets *wait if
 * more bytes are needed. */
static whit_gemma_result read_word(whit_gemma_reader *r, struct input *in, whit_buf *out, bool *wait)
{
    const char *word = in->text + in->at;
    size_t n = 0, left = in->n - in->at;
    while (n < left && word[n] != ',' && word[n] != '}' && word[n] != ']') n++;
    *wait = n == left && n <= WORD_MAX_BYTES;
    if (*wait) return WHIT_GEMMA_MORE;
    if (!n || n == left) return WHIT_GEMMA_MALFORMED;
    in->at += n;
    r->is_first = false;
    r->state = WHIT_GEMMA_NEXT;
    return whit_call_value_write(word, n, false, out) ? WHIT_GEMMA_MORE : WHIT_GEMMA_NO_MEMORY;
}

static whit_gemma_result read_value(whit_gemma_reader *r, struct input *in, whit_buf *out, bool *wait)
{
    const char c = in->text[in->at];
    if (c == ']' && in_list(r) && r->is_first) return close_container(r, in, out);
    if (c == '{' || c == '[') return open_container(r, in, out);
    int quoted = match_mark(in, in->at);
    *wait = quoted < 0;
    if (*wait) return WHIT_GEMMA_MORE;
    if (!quoted) return read_word(r, in, out, wait);
    in->at += MARK_BYTES;
    r->state = WHIT_GEMMA_TEXT;
    return whit_buf_append_str(out, "\"") ? WHIT_GEMMA_MORE : WHIT_GEMMA_NO_MEMORY;
}

/* Returns how many bytes from the reader's position on certainly belong to the string: all but an end that may be the
 * beginning of the mark, or an incomplete UTF-8 character. */
static size_t certain_bytes(const struct input *in)
{
    size_t n = in->n, most = MARK_BYTES - 1;
    for (size_t k = n - in->at < most ? n - in->at : most; k; k--)
        if (memcmp(in->text + n - k, mark, k) == 0) return n - k - in->at;
    for (size_t k = 1; k <= 3 && k <= n - in->at; k++) {
        const uint8_t byte = (uint8_t)in->text[n - k];
        if ((byte & 0xC0) == 0x80) continue;
        size_t length = 1;
        if (byte >= 0xF0)
            length = 4;
        else if (byte >= 0xE0)
            length = 3;
        else if (byte >= 0xC0)
            length = 2;
        return length > k ? n - k - in->at : n - in->at;
    }
    return n - in->at;
}

static whit_gemma_result read_text(whit_gemma_reader *r, struct input *in, whit_buf *out, bool *wait)
{
    const char *text = in->text + in->at, *close = find_mark(in, in->at);
    size_t n = close ? (size_t)(close - text) : certain_bytes(in);
    *wait = !close;
    if (n && !write_text(text, n, out)) return WHIT_GEMMA_NO_MEMORY;
    in->at += n;
    if (!close) return WHIT_GEMMA_MORE;
    in->at += MARK_BYTES;
    r->is_first = false;
    r->state = WHIT_GEMMA_NEXT;
    return whit_buf_append_str(out, "\"") ? WHIT_GEMMA_MORE : WHIT_GEMMA_NO_MEMORY;
}

static whit_gemma_result read_next(whit_gemma_reader *r, struct input *in, whit_buf *out)
{
    if (in->text[in->at] != ',') return close_container(r, in, out);
    in->at++;
    r->state = in_list(r) ? WHIT_GEMMA_VALUE : WHIT_GEMMA_KEY;
    return whit_buf_append_str(out, ", ") ? WHIT_GEMMA_MORE : WHIT_GEMMA_NO_MEMORY;
}

whit_gemma_reader whit_gemma_begin(void)
{
    return (whit_gemma_reader){.state = WHIT_GEMMA_KEY, .is_first = true};
}

size_t whit_gemma_read(whit_gemma_reader *r, const char *text, size_t n_bytes, whit_buf *out, whit_gemma_result *result)
{
    struct input in = {text, n_bytes, 0};
    bool wait = false;
    *result = WHIT_GEMMA_MORE;
    while (*result == WHIT_GEMMA_MORE && !wait) {
        while (r->state != WHIT_GEMMA_TEXT && in.at < in.n && is_blank(in.text[in.at])) in.at++;
        if (in.at == in.n) break;
        switch (r->state) {
        case WHIT_GEMMA_KEY: *result = read_key(r, &in, out, &wait); break;
        case WHIT_GEMMA_VALUE: *result = read_value(r, &in, out, &wait); break;
        case WHIT_GEMMA_TEXT: *result = read_text(r, &in, out, &wait); break;
        case WHIT_GEMMA_NEXT: *result = read_next(r, &in, out); break;
        }
    }
    return in.at;
}
