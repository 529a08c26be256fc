/* SPDX-License-Identifier: MIT
 * Lists the forms of keys, and finds and hides keys in texts. */
#include "agent/guard.h"
#include "agent/guard_known.h"
#include "base/items.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A form of token: its prefix, and the minimum number of token characters after it. Sources: the vendors' pages on
 * secret scanning, and their documentation of the formats. */
static const struct token_form {
    const char *begin;
    size_t n_least;
} forms[] = {
    {"ghp_", 36},         {"gho_", 36},
    {"ghu_", 36},         {"ghs_", 36},
    {"ghr_", 36},         {"github_pat_", 40},
    {"glpat-", 20},       {"gldt-", 20},
    {"glrt-", 20},        {"glptt-", 20},
    {"glsa_", 32},        {"ATATT3", 60},
    {"xoxe-", 20},        {"xoxe.", 20},
    {"rk_test_", 16},     {"shpss_", 32},
    {"shpca_", 32},       {"shppa_", 32},
    {"rubygems_", 40},    {"r8_", 36},
    {"pplx-", 40},        {"xai-", 60},
    {"dapi", 32},         {"dp.pt.", 40},
    {"hvb.", 60},         {"sbp_", 36},
    {"nfp_", 36},         {"CFPAT-", 40},
    {"ops_eyJ", 60},      {"AKIA", 16},
    {"ASIA", 16},         {"xoxb-", 20},
    {"xoxp-", 20},        {"xoxa-", 20},
    {"xoxr-", 20},        {"xoxs-", 20},
    {"xapp-", 20},        {"sk-ant-", 20},
    {"sk-proj-", 20},     {"sk-or-v1-", 20},
    {"sk-", 32},          {"sk_live_", 16},
    {"rk_live_", 16},     {"sk_test_", 16},
    {"whsec_", 24},       {"AIza", 35},
    {"ya29.", 20},        {"GOCSPX-", 20},
    {"npm_", 36},         {"pypi-", 40},
    {"hf_", 30},          {"dop_v1_", 40},
    {"SG.", 40},          {"shpat_", 32},
    {"hvs.", 24},         {"dckr_pat_", 20},
    {"lin_api_", 32},     {"AGE-SECRET-KEY-1", 50},
    {"PMAK-", 40},        {"sntrys_", 40},
    {"figd_", 30},        {"nvapi-", 40},
    {"gsk_", 40},         {"xoxc-", 20},
    {"xoxd-", 20},        {"glcbt-", 20},
    {"gloas-", 40},       {"glft-", 20},
    {"glimt-", 20},       {"glagent-", 40},
    {"dckr_oat_", 20},    {"dp.st.", 40},
    {"sntryu_", 40},      {"lin_oauth_", 32},
    {"ntn_", 40},         {"pscale_tkn_", 32},
    {"pul-", 40},         {"NRAK-", 24},
    {"glc_", 40},         {"ABIA", 16},
    {"ACCA", 16},         {"ABSK", 100},
    {"p8e-", 32},         {"LTAI", 20},
    {"AKCp", 69},         {"cmVmd", 59},
    {"CLOJARS_", 60},     {"v1.0-", 100},
    {"doo_v1_", 40},      {"dor_v1_", 40},
    {"duffel_test_", 40}, {"duffel_live_", 40},
    {"dt0c01.", 80},      {"EZAK", 54},
    {"EZTK", 54},         {"EAAM", 100},
    {"EAAC", 100},        {"FLWSECK_TEST-", 32},
    {"fo1_", 43},         {"fm1a_", 100},
    {"fm1r_", 100},       {"fm2_", 100},
    {"fio-u-", 60},       {"glffct-", 20},
    {"GR1348941", 20},    {"glsoat-", 20},
    {"eyJrIjoi", 70},     {"HRKU-AA", 58},
    {"api_org_", 34},     {"ico-", 32},
    {"sha256~", 43},      {"pscale_oauth_", 32},
    {"pscale_pw_", 32},   {"pnu_", 36},
    {"rdme_", 70},        {"tk-us-", 48},
    {"xkeysib-", 64},     {"sm_aat_", 16},
    {"sm_pat_", 16},      {"sm_sat_", 16},
    {"shippo_live_", 40}, {"shippo_test_", 40},
    {"xoxo-", 20},        {"sgp_", 40},
    {"sq0atp-", 22},      {"sq0csp-", 40},
    {"sk_prod_", 16},     {"rk_prod_", 16},
    {"pat.", 66},         {"sat.", 66},
};

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
        c == '.';
}

static bool is_key_char(char c)
{
    return is_token_char(c) ? c != '_' && c != '-' && c != '.' : c == '+' || c == '/' || c == '=';
}

/* Returns the length of the token at the beginning of a text, or 0. A token must contain both letters and digits, or
 * small and capital letters and nothing else, unlike an ordinary word with the same prefix. */
static size_t token_bytes(const char *text, size_t n)
{
    for (size_t i = 0; i < COUNT(forms); i++) {
        /* nearly all forms fail this comparison of two bytes */
        if (n < 2 || text[0] != forms[i].begin[0] || text[1] != forms[i].begin[1]) continue;
        size_t n_begin = strlen(forms[i].begin), end = n_begin;
        bool digit = false, small = false, capital = false, joined = false;
        if (n <= n_begin || memcmp(text, forms[i].begin, n_begin) != 0) continue;
        for (; end < n && is_token_char(text[end]); end++) {
            const char c = text[end];
            digit = digit || (c >= '0' && c <= '9');
            small = small || (c >= 'a' && c <= 'z');
            capital = capital || (c >= 'A' && c <= 'Z');
            joined = joined || c == '_' || c == '-' || c == '.';
        }
        const bool is_mixed = digit ? small || capital : small && capital && !joined;
        if (end - n_begin >= forms[i].n_least && is_mixed) return end;
    }
    return 0;
}

/* Lengths in bytes of a private key's text: the runs of base64 that count, and the text between two of them, such as
 * the quotes, signs and numbers of a key in a program, a difference or a list of lines. */
enum {
    RUN_MIN = 31,    /* a run before any quotation mark: words are shorter */
    RUN_QUOTED = 40, /* a run of all kinds of letters and digits after one: the text may be a program without a key */
    RUN_LINE = 16,   /* a run that is a whole line */
    HEADERS_MAX = 600,
    GAP_MAX = 100,
};

/* Returns whether a line begins or ends at text[at]: at a line end, or its escape in a string. */
static bool is_line_edge(const char *text, size_t n, size_t at)
{
    return at >= n || text[at] == '\n' || text[at] == '\r' ||
        (text[at] == '\\' && at + 1 < n && strchr("nr", text[at + 1]));
}

static bool is_mixed(const char *text, size_t n)
{
    bool upper = false, lower = false, digit = false;
    for (size_t i = 0; i < n; i++) {
        upper = upper || isupper((uint8_t)text[i]);
        lower = lower || islower((uint8_t)text[i]);
        digit = digit || isdigit((uint8_t)text[i]);
    }
    return upper && lower && digit;
}

/* Returns whether the run of base64 text[begin] to text[end - 1] is a part of a private key. */
static bool is_key_run(const char *text, size_t n, size_t begin, size_t end, bool is_quoted)
{
    const size_t n_run = end - begin;
    if (n_run < RUN_LINE) return false;
    if (!is_quoted && n_run >= RUN_MIN) return true;
    if (n_run >= RUN_QUOTED && is_mixed(text + begin, n_run)) return true;
    return is_line_edge(text, n, end) && (text[begin - 1] == '\n' || text[begin - 2] == '\\');
}

/* Returns the length of the line at text[at] that begins or ends (`word`) a private key, without its final dashes; 0 if
 * there is no such line. */
static size_t key_line_bytes(const char *text, size_t n, size_t at, const char *word)
{
    static const char kind[] = "PRIVATE KEY";
    const size_t n_word = strlen(word), first = at;
    while (at < n && text[at] == '-') at++;
    if (at - first < 4 || at - first > 5) return 0;
    at += at < n && text[at] == ' ';
    if (n - at <= n_word || memcmp(text + at, word, n_word) != 0) return 0;
    const size_t n_rest = n - at < 80 ? n - at : 80;
    const char *close = memmem(text + at, n_rest, "----", 4);
    if (!close || !memmem(text + at, (size_t)(close - text) - at, kind, sizeof kind - 1)) return 0;
    return (size_t)(close - text) - first;
}

static size_t skip_dashes(const char *text, size_t n, size_t at)
{
    for (size_t last = at + 5; at < n && at < last && text[at] == '-';) at++;
    return at;
}

/* Returns the length of a private key in PEM or PuTTY form at the beginning of a text, up to the line that ends it if
 * that line is there. The key's lines may be strings of a program, comments, or lines of a difference or a list.
 * Returns 0 if the text only mentions the header. */
static size_t private_key_bytes(const char *text, size_t n)
{
    static const char putty[] = "PuTTY-User-Key-File-";
    if (n > sizeof putty && memcmp(text, putty, sizeof putty - 1) == 0 &&
        memmem(text, n < 2000 ? n : 2000, "Private-Lines", 13))
        return n;
    size_t at = key_line_bytes(text, n, 0, "BEGIN "), last = 0, end;
    bool is_quoted = false;
    if (!at) return 0;
    at = skip_dashes(text, n, at);
    size_t stop = n - at > HEADERS_MAX ? at + HEADERS_MAX : n;
    while (at < stop) {
        const size_t n_close = last ? key_line_bytes(text, n, at, "END ") : 0;
        if (n_close) return skip_dashes(text, n, at + n_close);
        if (last && key_line_bytes(text, n, at, "BEGIN ")) break; /* another key begins */
        for (end = at; end < n && is_key_char(text[end]);) end++;
        /* the last line of a text that was cut may be short */
        if (end > at && (is_key_run(text, n, at, end, is_quoted) || (last && end == n))) {
            last = end;
            stop = n - end > GAP_MAX ? end + GAP_MAX : n;
        }
        is_quoted = is_quoted || text[at] == '"' || text[at] == '\'';
        /* the letter of "\n" is not the first one of a run */
        if (end == at) end += text[at] == '\\' && is_line_edge(text, n, at) ? 2 : 1;
        at = end;
    }
    return last;
}

/* Returns the value of a digit of base64, or -1. */
static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Returns the length of a private key in PEM at the beginning of a text if the whole key is encoded in base64 again, as
 * in the files of Kubernetes ("client-key-data"). Returns 0 if there is no such key. */
static size_t encoded_key_bytes(const char *text, size_t n)
{
    static const char begin[] = "LS0tLS1CRUdJTi"; /* "-----BEGIN" */
    enum { HEAD_CHARS = 80 };
    char head[HEAD_CHARS];
    size_t n_head = 0, at = 0, end = 0;
    uint32_t bits = 0;
    if (n < sizeof begin || memcmp(text, begin, sizeof begin - 1) != 0) return 0;
    for (size_t i = 0, n_chars = 0; i < n && n_chars < HEAD_CHARS; i++) {
        const int value = base64_value(text[i]);
        if (value < 0 && !isspace((uint8_t)text[i])) break;
        if (value < 0) continue;
        bits = bits << 6 | (uint32_t)value;
        if (++n_chars % 4 == 0)
            for (int k = 16; k >= 0; k -= 8) head[n_head++] = (char)(bits >> k & 0xFF);
    }
    if (!memmem(head, n_head, "PRIVATE KEY", 11)) return 0;
    while (at < n && (is_key_char(text[at]) || isspace((uint8_t)text[at]) || is_line_edge(text, n, at))) {
        const size_t first = at;
        while (at < n && is_key_char(text[at])) {
            /* another key begins: it is found by itself, or the time would grow with the square of the text */
            if (at && n - at >= sizeof begin && memcmp(text + at, begin, sizeof begin - 1) == 0) return at;
            at++;
        }
        /* a word that follows the key: only the last line of a key is so short, and ends the text */
        if (at > first && end && at - first < RUN_LINE && at < n) break;
        if (at > first) end = at;
        if (at == first) at += text[at] == '\\' ? 2 : 1;
    }
    return end;
}

/* Returns whether an escape sequence ends before text[at]: "\n", "\033", "\x3d" and "\u003d" in programs and JSON,
 * "%3D" in URLs, "=3D" in mail, and the colours of a terminal (ESC [ 3 2 m), also as they are written in a program. */
static bool follows_escape(const char *text, size_t at)
{
    enum { DIGITS_MAX = 8 };
    size_t first = at;
    if (at >= 2 && text[at - 2] == '\\') return true;
    if (at >= 3 && text[at - 3] == '\033' && text[at - 2] == '#') return true; /* DEC's sizes of letters */
    if (at >= 1 && (text[at - 1] == 'm' || text[at - 1] == 'K')) {
        first--;
        while (first > 0 && ((text[first - 1] >= '0' && text[first - 1] <= '9') || text[first - 1] == ';')) first--;
        return first >= 1 && (text[first - 1] == '[' || text[first - 1] == '\x9b');
    }
    while (first > 0 && at - first < DIGITS_MAX && isxdigit((uint8_t)text[first - 1])) first--;
    if (first == at || first == 0) return false;
    if (text[first - 1] == '\\') return true;
    if (text[first - 1] == 'x' || text[first - 1] == 'u' || text[first - 1] == 'U')
        return first >= 2 && text[first - 2] == '\\';
    return at - first >= 2 && (text[first - 1] == '%' || text[first - 1] == '=');
}

/* Returns whether a token may begin at text[at]: not within a word, but after dashes that begin one, such as the sign
 * of a removed line, and directly after an escape sequence that ends in a letter or digit. */
static bool begins_word(const char *text, size_t at)
{
    enum { DASHES_MAX = 8 };
    size_t first = at;
    while (first > 0 && at - first < DASHES_MAX && text[first - 1] == '-') first--;
    return first == 0 || at - first == DASHES_MAX || !is_token_char(text[first - 1]) || follows_escape(text, first);
}

/* Keys that whit_guard_know_key() has added. A slot is filled once and never emptied, since other threads read the
 * slots without a lock. */
static _Atomic(char *) known_keys[16];

/* Returns whether a text can be a key: a program that demands a key for a local server is given a word such as "none"
 * or "ollama", which must not be hidden. */
static bool is_key(const char *key)
{
    enum { KEY_MIN = 8 };
    return key && strlen(key) >= KEY_MIN && strpbrk(key, "0123456789");
}

bool whit_guard_know_key(const char *key)
{
    return !is_key(key) || keep_known(known_keys, COUNT(known_keys), strdup(key));
}

/* Returns entry i of known_keys, or $WHIT_API_KEY for i = COUNT(known_keys); NULL if it is not set or not a key. */
static const char *known_key(size_t i)
{
    const char *key = i < COUNT(known_keys) ? atomic_load(&known_keys[i]) : getenv("WHIT_API_KEY");
    return is_key(key) ? key : NULL;
}

/* Returns the position of the first endpoint's key (known_keys or $WHIT_API_KEY) at or after `begin`,
 * or n if there is no such key. */
static size_t find_known(const char *text, size_t n, size_t begin)
{
    size_t first = n;
    for (size_t i = 0; begin < n && i <= COUNT(known_keys); i++) {
        const char *key = known_key(i);
        const char *found = key ? memmem(text + begin, n - begin, key, strlen(key)) : NULL;
        if (found && (size_t)(found - text) < first) first = (size_t)(found - text);
    }
    return first;
}

/* Returns the end of the last of the endpoint's keys that begin at or after `first` and before `end`, or `end` if they
 * end before it. */
static size_t end_of_known(const char *text, size_t n, size_t first, size_t end)
{
    size_t last = end;
    for (size_t i = 0; i <= COUNT(known_keys); i++) {
        const char *key = known_key(i);
        const size_t bytes = key ? strlen(key) : 0;
        /* the key may occur several times: the occurrences that end after `end` begin in this window */
        const size_t from = end + 1 > first + bytes ? end + 1 - bytes : first;
        const size_t until = n - end < bytes ? n : end + bytes - 1;
        for (size_t at = from; key && at < end && until - at >= bytes; at++) {
            const char *found = memmem(text + at, until - at, key, bytes);
            if (!found) break;
            at = (size_t)(found - text);
            if (at + bytes > last) last = at + bytes;
        }
    }
    return last;
}

/* Returns the length of the private key or token of a published form at text[at], or 0. */
static size_t form_bytes(const char *text, size_t n, size_t at)
{
    static const char starts[256] = {
        ['-'] = 1, ['A'] = 1, ['C'] = 1, ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['L'] = 1, ['N'] = 1, ['P'] = 1,
        ['S'] = 1, ['a'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1, ['l'] = 1,
        ['n'] = 1, ['o'] = 1, ['p'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1};
    if (!starts[(uint8_t)text[at]]) return 0;
    size_t found = 0;
    if (text[at] == '-' || text[at] == 'P') found = private_key_bytes(text + at, n - at);
    if (text[at] == 'L') found = encoded_key_bytes(text + at, n - at);
    return found || !begins_word(text, at) ? found : token_bytes(text + at, n - at);
}

bool whit_guard_find_key(const char *text, size_t n, size_t *begin, size_t *end)
{
    const size_t known = find_known(text, n, *begin);
    size_t first = *begin, last, at, found = 0;
    while (first < known && !(found = form_bytes(text, n, first))) first++;
    if (first >= n) return false;
    /* extend the match over keys of both kinds that overlap it, until none adds a byte */
    last = end_of_known(text, n, first, first + (found ? found : 1));
    for (at = first; at < last; at++) {
        found = form_bytes(text, n, at);
        if (at + found > last) last = at + found;
        if (at + 1 == last) last = end_of_known(text, n, first, last);
    }
    *begin = first;
    *end = last;
    return true;
}

/* Returns the length of the escape sequence of a terminal at text[at], or 0: a colour, a link (OSC 8) or a character
 * set. */
static size_t escape_bytes(const char *text, size_t n, size_t at)
{
    size_t end = at + 2;
    if (text[at] != '\033' || end > n) return 0;
    switch (text[at + 1]) {
    case '[':
        while (end < n && text[end] >= 0x20 && text[end] < 0x40) end++;
        return (end < n ? end + 1 : n) - at;
    case ']':
        while (end < n && text[end] != '\a' && text[end] != '\033') end++;
        end += end + 1 < n && text[end] == '\033';
        return (end < n ? end + 1 : n) - at;
    case '(':
    case ')': return (end < n ? end + 1 : n) - at;
    default: return 2;
    }
}

/* A text without the escape sequences of terminals: programs show a part of a key in another colour. */
struct uncoloured {
    whit_buf text;
    whit_buf places; /* size_t[]: the offset of each byte in the coloured text */
};

static bool drop_colours(const char *text, size_t n, struct uncoloured *out)
{
    for (size_t at = 0, n_escape; at < n; at += n_escape ? n_escape : 1) {
        n_escape = escape_bytes(text, n, at);
        if (n_escape) continue;
        whit_buf_append(&out->text, text + at, 1);
        whit_buf_append(&out->places, &at, sizeof at);
    }
    return !out->text.failed && !out->places.failed;
}

static void free_uncoloured(struct uncoloured *u)
{
    whit_buf_free(&u->text);
    whit_buf_free(&u->places);
}

static bool has_colours(const char *text, size_t n)
{
    return n && memchr(text, '\033', n);
}

/* Returns whether a text contains a key in UTF-16, or true if memory runs out. In UTF-16 one of two bytes of a key's
 * characters is zero, so a text with zero bytes is searched as UTF-16 of both byte orders, from even and from odd
 * offsets. */
static bool has_wide_key(const char *text, size_t n)
{
    size_t begin, end;
    if (!n || !memchr(text, 0, n)) return false;
    char *plain = malloc(n / 2 + 1);
    bool found = !plain;
    for (size_t form = 0; !found && form < 4; form++) {
        const size_t first = form % 2, low = form / 2;
        size_t n_plain = 0;
        for (size_t i = first; i + 1 < n; i += 2) plain[n_plain++] = text[i + 1 - low] ? '\n' : text[i + low];
        begin = 0;
        found = n_plain && whit_guard_find_key(plain, n_plain, &begin, &end);
    }
    free(plain);
    return found;
}

bool whit_guard_has_key(const char *text, size_t n)
{
    struct uncoloured plain = {.text = {0}};
    size_t begin = 0, end;
    if (!n) return false;
    bool found = whit_guard_find_key(text, n, &begin, &end);
    if (!found && has_colours(text, n)) {
        found = !drop_colours(text, n, &plain) ||
            whit_guard_find_key(whit_chars(&plain.text), plain.text.size_bytes, &begin, &end);
        free_uncoloured(&plain);
    }
    return found || has_wide_key(text, n);
}

void whit_guard_hash(uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "agent-guard-5");
    for (size_t i = 0; i < COUNT(forms); i++) {
        whit_hash_add(&hash, forms[i].begin, strlen(forms[i].begin) + 1);
        whit_hash_add_u64(&hash, forms[i].n_least);
    }
    for (size_t i = 0; i <= COUNT(known_keys); i++) {
        const char *key = known_key(i);
        if (key) whit_hash_add(&hash, key, strlen(key) + 1);
    }
    whit_hash_end(&hash, digest);
}

static const char hidden_key[] = "[a key or token, which is not shown]",
                  hidden_text[] = "[a text in UTF-16 with a key or token, which is not shown]";

/* Replaces each key of a text without colours by a note. */
static void hide_plain_keys(whit_buf *text)
{
    size_t begin = 0, end = 0, shown = 0;
    whit_buf out = {0};
    while (text->size_bytes && whit_guard_find_key(whit_chars(text), text->size_bytes, &begin, &end)) {
        whit_buf_append(&out, text->data + shown, begin - shown);
        whit_buf_append_str(&out, hidden_key);
        begin = shown = end;
    }
    if (!shown) return;
    whit_buf_append(&out, text->data + shown, text->size_bytes - shown);
    text->size_bytes = 0;
    whit_buf_append(text, out.data, out.size_bytes);
    if (out.failed) text->failed = true;
    whit_buf_free(&out);
}

/* Replaces each key that escape sequences divide by a note. If memory runs out, the text becomes empty. */
static void hide_coloured_keys(whit_buf *text)
{
    struct uncoloured plain = {.text = {0}};
    size_t begin = 0, end = 0, shown = 0;
    whit_buf out = {0};
    bool ok = drop_colours(whit_chars(text), text->size_bytes, &plain);
    const size_t *places = WHIT_ITEMS(const size_t, &plain.places), n = plain.text.size_bytes;
    while (ok && n && whit_guard_find_key(whit_chars(&plain.text), n, &begin, &end)) {
        whit_buf_append(&out, text->data + shown, places[begin] - shown);
        whit_buf_append_str(&out, hidden_key);
        shown = places[end - 1] + 1;
        begin = end;
    }
    if (shown) whit_buf_append(&out, text->data + shown, text->size_bytes - shown);
    if (!ok || out.failed) text->failed = true;
    if (shown || !ok) text->size_bytes = 0;
    if (shown) whit_buf_append(text, out.data, out.size_bytes);
    whit_buf_free(&out);
    free_uncoloured(&plain);
}

void whit_guard_hide_keys(whit_buf *text)
{
    hide_plain_keys(text);
    if (text->size_bytes && has_colours(whit_chars(text), text->size_bytes)) hide_coloured_keys(text);
    if (!text->size_bytes || !has_wide_key(whit_chars(text), text->size_bytes)) return;
    text->size_bytes = 0;
    whit_buf_append_str(text, hidden_text);
}

bool whit_guard_append_cut(whit_buf *out, const char *text, size_t n, size_t n_most)
{
    whit_buf clean = {0};
    bool ok = whit_buf_append(&clean, text, n);
    whit_guard_hide_keys(&clean);
    ok = ok && !clean.failed;
    if (ok && clean.size_bytes)
        ok = whit_buf_append(out, clean.data, whit_utf8_cut(whit_chars(&clean), clean.size_bytes, n_most));
    whit_buf_free(&clean);
    return ok;
}

void whit_guard_drop_last_word(whit_buf *text)
{
    while (text->size_bytes && is_token_char((char)text->data[text->size_bytes - 1])) text->size_bytes--;
}
