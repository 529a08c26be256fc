/* SPDX-License-Identifier: MIT
 * Runs lines typed after vi's ':': ranges, and vi's common commands. Other words are names of the editor's commands.
 * Patterns are PCRE2's, as everywhere in the editor, with \< and \> for the ends of words. */
#include "base/phrase.h"
#include "editor/state.h"
#include "editor/vi_action.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define GLOBAL_LINES_MAX 1000000u
#define PATTERN_BYTES    512

struct range {
    uint64_t first, last; /* offsets at which the range's first and last line begin */
    int n_given;          /* number of addresses in the range, 0 to 2 */
    bool beyond;          /* an address was beyond the first or the last line */
    bool is_zero;         /* the only address is 0, after which :r and :pu insert before the first line */
};

/* Copies text up to the next `delimiter` and advances *at past the delimiter. A delimiter after a backslash is copied
 * without the backslash. Returns false if the part is longer than room - 1 bytes and was cut. */
static bool take_part(const char **at, char delimiter, char *part, size_t room)
{
    size_t n = 0, n_all = 0;
    for (; **at && **at != delimiter; ++*at) {
        if (**at == '\\' && (*at)[1]) {
            n_all += (*at)[1] != delimiter;
            if ((*at)[1] != delimiter && n + 1 < room) part[n++] = **at;
            ++*at;
        }
        n_all++;
        if (n + 1 < room) part[n++] = **at;
    }
    part[n] = 0;
    if (**at) ++*at;
    return n == n_all;
}

static void refuse_long_part(ed *e)
{
    ed_vi_fail(e, "the pattern or the replacement is longer than %d bytes, the limit", PATTERN_BYTES - 1);
}

bool ed_vi_pattern(const char *pattern, char *text, size_t room)
{
    size_t n = 0;
    const char *members = NULL; /* first character of the current [class], or NULL outside a class */
    for (; *pattern && n + 16 < room; pattern++) {
        bool word = !members && pattern[0] == '\\' && (pattern[1] == '<' || pattern[1] == '>');
        if (word) n += (size_t)snprintf(text + n, room - n, *++pattern == '<' ? "\\b(?=\\w)" : "\\b(?<=\\w)");
        if (word) continue;
        if (!members && *pattern == '[')
            members = pattern + (pattern[1] == '^' ? 2 : 1);
        else if (members && *pattern == ']' && pattern > members)
            members = NULL;
        text[n++] = *pattern;
        if (*pattern == '\\' && pattern[1]) text[n++] = *++pattern;
    }
    text[n] = 0;
    return !*pattern;
}

static bool set_pattern(ed *e, const char *pattern, const char *flags)
{
    char text[2 * PATTERN_BYTES], why[200];
    size_t n = 0;
    if (!*pattern) pattern = e->find.pattern;
    if (!*pattern) {
        ed_vi_fail(e, "nothing was searched for yet: give a pattern");
        return false;
    }
    if (strchr(flags, 'i')) n = (size_t)snprintf(text, sizeof text, "(?i)");
    if (strchr(flags, 'I')) n = (size_t)snprintf(text, sizeof text, "(?-i)");
    bool fits = ed_vi_pattern(pattern, text + n, sizeof text - n) && strlen(text) < sizeof e->find.pattern;
    if (!fits || !ed_search_set(e, text, true, why, sizeof why)) {
        ed_vi_fail(e, "%s", fits ? why : "the pattern is longer than 511 bytes, the limit");
        return false;
    }
    return true;
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Parses one address of a range. Returns false if there is no address, or with *wrong set if it is invalid. */
static bool take_address(ed *e, const char **at, uint64_t *line, bool *wrong, bool *beyond)
{
    char *behind;
    uint64_t here = ed_cursor(e)->offset;
    bool found = true;
    char pattern[PATTERN_BYTES], delimiter = **at;
    struct ed_vi_span span;
    ed_vi_skip_blanks(at);
    if (isdigit((uint8_t) * *at)) {
        unsigned long long number = strtoull(*at, &behind, 10);
        *line = ed_vi_nth_line(e, number);
        *beyond |= number > 1 && whit_text_line_at(ed_text(e), *line) < number - 1;
        *at = behind;
    } else if (**at == '.') {
        *line = here;
        ++*at;
    } else if (**at == '$') {
        *line = ed_vi_end(e);
        ++*at;
    } else if (**at == '\'' && (*at)[1]) {
        if (!ed_vi_to_mark(e, (struct ed_vi_call){.how = '`', .given = (uint8_t)(*at)[1]}, &span)) {
            *wrong = true;
            return false;
        }
        *line = span.end;
        *at += 2;
    } else if (**at == '/' || **at == '?') {
        delimiter = *(*at)++;
        const bool fits = take_part(at, delimiter, pattern, sizeof pattern);
        if (!fits) refuse_long_part(e);
        uint64_t from = delimiter == '/' ? ed_vi_line_end(e, here) : ed_vi_line_begin(e, here);
        if (!fits || !set_pattern(e, pattern, "") || !ed_vi_search(e, delimiter == '?', from, &span)) {
            *wrong = true;
            return false;
        }
        *line = span.end;
    } else if (**at == '+' || **at == '-') {
        *line = here;
    } else {
        found = false;
    }
    if (!found) return false;
    *line = ed_vi_line_begin(e, *line);
    while (**at == '+' || **at == '-') {
        char sign = *(*at)++;
        unsigned long n = isdigit((uint8_t) * *at) ? strtoul(*at, &behind, 10) : 1;
        if (isdigit((uint8_t) * *at)) *at = behind;
        for (uint64_t next; n--; *line = next) {
            if (sign == '+')
                next = ed_vi_next_line(e, *line);
            else if (*line)
                next = ed_vi_line_begin(e, *line - 1);
            else
                next = ED_NONE;
            *beyond |= next == ED_NONE;
            if (next == ED_NONE) break;
        }
    }
    return true;
}

static bool take_range(ed *e, const char **at, struct range *range)
{
    bool wrong = false;
    range->first = range->last = ed_vi_line_begin(e, ed_cursor(e)->offset);
    range->n_given = 0;
    range->beyond = false;
    ed_vi_skip_blanks(at);
    range->is_zero = **at == '0' && !strchr("0123456789,+-", (*at)[1]);
    if (**at == '%') {
        ++*at;
        *range = (struct range){0, ed_vi_line_begin(e, ed_vi_end(e)), 2, false, false};
        return true;
    }
    uint64_t line;
    if (take_address(e, at, &line, &wrong, &range->beyond)) {
        range->first = range->last = line;
        range->n_given = 1;
    }
    ed_vi_skip_blanks(at);
    while (!wrong && **at == ',') {
        ++*at;
        range->first = range->last;
        if (take_address(e, at, &line, &wrong, &range->beyond)) range->last = line;
        range->n_given = 2;
        ed_vi_skip_blanks(at);
    }
    if (!wrong && range->first > range->last) {
        ed_vi_fail(e, "the range is backwards: its first line is below its last line");
        return false;
    }
    return !wrong;
}

/* ---- :s ------------------------------------------------------------------------------------ */

/* Converts vi's replacement to the editor's notation: & and \1 become $0 and $1, and \r becomes \n. */
static void take_replacement(const char *from, char *to, size_t room)
{
    size_t n = 0;
    for (; *from && n + 3 < room; from++) {
        if (*from == '\\' && isdigit((uint8_t)from[1])) {
            to[n++] = '$';
            to[n++] = *++from;
        } else if (*from == '\\' && from[1]) {
            char kind = *++from;
            to[n++] = '\\';
            to[n++] = kind == 'r' ? 'n' : kind;
        } else if (*from == '&') {
            to[n++] = '$';
            to[n++] = '0';
        } else {
            if (*from == '$') to[n++] = '\\';
            to[n++] = *from;
        }
    }
    to[n] = 0;
}

static void substitute(ed *e, struct range range, const char *arguments)
{
    struct ed_vi *vi = &e->vi;
    char pattern[PATTERN_BYTES] = "", replacement[PATTERN_BYTES] = "";
    const char *flags = "";
    char delimiter = *arguments;
    if (delimiter && !isalnum((uint8_t)delimiter) && delimiter != ' ' && delimiter != '"' && delimiter != '&') {
        arguments++;
        bool fits = take_part(&arguments, delimiter, pattern, sizeof pattern);
        fits = take_part(&arguments, delimiter, replacement, sizeof replacement) && fits;
        flags = arguments;
        if (!fits) {
            refuse_long_part(e);
            return;
        }
        if (!set_pattern(e, pattern, flags)) return;
        if (strcmp(replacement, "~")) take_replacement(replacement, e->find.by, sizeof e->find.by);
    } else { /* repeat the last substitution */
        flags = arguments;
        if (!set_pattern(e, "", flags)) return;
    }
    for (const char *flag = flags; *flag; flag++)
        if (!strchr("gciIne& ", *flag)) {
            ed_vi_fail(e, "':s' supports the flags g, c, i, I and n, not '%c'", *flag);
            return;
        }
    bool all = strchr(flags, 'g'), counts = strchr(flags, 'n');
    whit_range match;
    struct ed_cursor before = *ed_cursor(e);
    uint64_t last_change = ED_NONE, end = ed_vi_line_end(e, range.last);
    size_t n_lines = 0, n_found = 0;
    if (!counts && !ed_vi_may_change(e)) return;
    if (strchr(flags, 'c')) {
        *ed_cursor(e) = (struct ed_cursor){range.first, ED_NONE, -1};
        ed_replace_range(e, end, !all);
        return;
    }
    e->find.n_replaced = 0;
    for (uint64_t line = range.first, at = line; line <= end;) {
        if (!ed_search_forward(e, ed_text(e), at, end + 1, &match) || match.begin > end) break;
        uint64_t size = whit_text_size(ed_text(e)), begin = match.begin;
        if (ed_vi_line_begin(e, begin) != line || !n_found) n_lines++;
        line = ed_vi_line_begin(e, begin);
        n_found++;
        if (counts) {
            at = match.end > begin ? match.end : ed_vi_behind(e, begin);
            if (!all) at = whit_text_line_end(ed_text(e), begin) + 1;
            if (at > end) break;
            continue;
        }
        *ed_cursor(e) = (struct ed_cursor){match.end, begin, -1};
        ed_replace_here(e);
        end += whit_text_size(ed_text(e)) - size;
        at = ed_cursor(e)->offset; /* the offset after the replacement */
        last_change = line = ed_vi_line_begin(e, e->find.after);
        if (!all) at = whit_text_line_end(ed_text(e), e->find.after) + 1;
        if (e->find.ended || at > end || at > whit_text_size(ed_text(e))) break;
    }
    ed_replace_forget(e);
    if (counts) {
        ed_say(e, "%zu match%s in %zu line%s", n_found, n_found == 1 ? "" : "es", n_lines, whit_plural(n_lines));
    } else if (last_change == ED_NONE) {
        *ed_cursor(e) = before;
        if (!vi->global && !strchr(flags, 'e')) ed_vi_fail(e, "'%s' was not found", e->find.pattern);
    } else {
        *ed_cursor(e) = (struct ed_cursor){ed_vi_first(e, last_change), ED_NONE, -1};
        vi->n_substituted += e->find.n_replaced;
        ed_say(e, "replaced %zu in %zu line%s", e->find.n_replaced, n_lines, whit_plural(n_lines));
    }
}

/* ---- :g ------------------------------------------------------------------------------------ */

static void run_line(ed *e, const char *line);

static void global(ed *e, struct range range, const char *arguments, bool without)
{
    struct ed_vi *vi = &e->vi;
    char pattern[PATTERN_BYTES], delimiter = *arguments;
    if (vi->global || !delimiter || isalnum((uint8_t)delimiter) || delimiter == ' ') {
        ed_vi_fail(e, vi->global ? "':g' cannot run another ':g'" : "':g' is written as :g/pattern/command");
        return;
    }
    arguments++;
    if (!take_part(&arguments, delimiter, pattern, sizeof pattern)) {
        refuse_long_part(e);
        return;
    }
    if (!range.n_given) range = (struct range){0, ed_vi_line_begin(e, ed_vi_end(e)), 2, false, false};
    if (!set_pattern(e, pattern, "")) return;
    free(vi->lines.begins);
    vi->lines.begins = malloc(64 * sizeof *vi->lines.begins);
    vi->lines.n = vi->lines.at = 0;
    vi->lines.doc = NULL;
    size_t room = 64;
    for (uint64_t line = range.first; line != ED_NONE && line <= range.last && vi->lines.begins;
         line = ed_vi_next_line(e, line)) {
        whit_range match;
        bool has = ed_search_forward(e, ed_text(e), line, ed_vi_line_end(e, line) + 1, &match) &&
            match.begin <= ed_vi_line_end(e, line);
        if (has && match.begin == match.end && match.begin < line) has = false;
        if (has == without) {
            if (!has && !without) { /* continue at the line of the next match */
                if (!ed_search_forward(e, ed_text(e), line, ED_NONE, &match) || match.begin < line) break;
                uint64_t next = ed_vi_line_begin(e, match.begin);
                if (next > range.last || next <= line) continue;
                line = next;
            } else {
                continue;
            }
        }
        if (vi->lines.n == room) {
            uint64_t *grown = room < GLOBAL_LINES_MAX ? realloc(vi->lines.begins, 2 * room * sizeof *grown) : NULL;
            if (!grown) {
                ed_vi_fail(
                    e, "':g' matches over a million lines, the limit, and nothing was done: give it a smaller range");
                vi->lines.n = 0;
                return;
            }
            vi->lines.begins = grown;
            room *= 2;
        }
        vi->lines.begins[vi->lines.n++] = line;
    }
    if (!vi->lines.n) {
        ed_vi_fail(e, without ? "every line contains '%s'" : "'%s' was not found", e->find.pattern);
        return;
    }
    struct ed_doc *doc = e->window->doc;
    size_t n = vi->lines.n;
    ed_vi_skip_blanks(&arguments);
    vi->global = true;
    vi->n_substituted = 0;
    vi->lines.doc = doc;
    while (vi->lines.at < vi->lines.n && !e->done && e->window->doc == doc && vi->lines.doc) {
        uint64_t at = vi->lines.begins[vi->lines.at++];
        if (at == ED_NONE) continue;
        *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
        vi->failed = false;
        run_line(e, *arguments ? arguments : "p");
        if (e->prompt.kind || (vi->failed && *e->message && strncmp(arguments, "s", 1))) break;
    }
    vi->lines.doc = NULL;
    vi->global = false;
    if (!vi->failed && !e->done)
        ed_say(e, vi->n_substituted ? "the command ran in %zu lines and replaced %zu" : "the command ran in %zu lines",
               n, vi->n_substituted);
}

/* ---- commands on lines --------------------------------------------------------------------- */

/* Runs :m and :t, which move or copy lines to after the line of the given address; address 0 means before the first
 * line. */
static void move_or_copy(ed *e, struct range range, const char *arguments, bool copies)
{
    uint64_t target;
    bool wrong = false, beyond = false, top;
    ed_vi_skip_blanks(&arguments);
    top = *arguments == '0' && !isdigit((uint8_t)arguments[1]);
    if (!take_address(e, &arguments, &target, &wrong, &beyond)) {
        if (!wrong) ed_vi_fail(e, "after which line? 0 is before the first");
        return;
    }
    uint64_t last_end = whit_text_line_end(ed_text(e), range.last), size = whit_text_size(ed_text(e));
    uint64_t to = top ? 0 : whit_text_line_end(ed_text(e), target) + 1;
    uint64_t end = last_end < size ? last_end + 1 : size;
    if (!copies && to > range.first && to < end) {
        ed_vi_fail(e, "lines cannot be moved into themselves");
        return;
    }
    /* the target is the last line and has no line feed, so the lines are inserted after a line end */
    bool behind = to > size;
    if (!copies && behind && end == size) return;
    size_t n = (size_t)(end - range.first);
    if (n > ED_VI_BYTES_MAX || !ed_vi_may_change(e)) return;
    const char *ending = ed_line_ending(e, ed_vi_line_begin(e, size));
    size_t n_ending = strlen(ending);
    char *text = malloc(n + 3);
    if (!text) return;
    n = whit_text_read(ed_text(e), range.first, text, n);
    bool fed = n && text[n - 1] == '\n';
    if (behind) {
        if (fed) n -= n > 1 && text[n - 2] == '\r' ? 2 : 1;
        memmove(text + n_ending, text, n);
        memcpy(text, ending, n_ending);
        n += n_ending;
        to = size;
    } else if (!fed) {
        memcpy(text + n, ending, n_ending);
        n += n_ending;
    }
    if (ed_edit(e, to, 0, text, n)) {
        uint64_t at = to + n - (behind ? 0 : 1); /* an offset inside the last inserted line */
        if (!copies) {
            uint64_t first = range.first, length = end - range.first;
            if (to <= first) first += n;
            /* the last moved line had no line end, so delete the line end before the lines instead */
            if (!fed && first) {
                unsigned n_before = first > 1 && whit_layout_byte(ed_layout(e), first - 2) == '\r' ? 2 : 1;
                first -= n_before;
                length += n_before;
            }
            ed_edit(e, first, length, NULL, 0);
            if (to > first) at -= length;
        }
        *ed_cursor(e) = (struct ed_cursor){ed_vi_first(e, at), ED_NONE, -1};
    }
    free(text);
}

/* Runs :normal KEYS: plays the keys at the cursor, or in each line of a range. Lines are found by their numbers: if the
 * keys add or remove lines, the following numbers mean other lines than before. */
static void normal(ed *e, struct range range, const char *arguments)
{
    struct ed_vi *vi = &e->vi;
    struct ed_vi_keys keys = {0};
    size_t n = strlen(arguments), length;
    for (size_t i = 0; i < n; i += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)arguments + i, n - i, &length);
        if (code != WHIT_UTF8_INVALID) ed_vi_keys_add(&keys, (whit_key){.code = code});
    }
    struct ed_doc *doc = e->window->doc;
    uint64_t first = 0, n_lines = 1;
    while (range.n_given && (first = whit_text_line_at(ed_text(e), range.first)) == UINT64_MAX &&
           whit_text_count(ed_text(e), 16u << 20, whit_file_drop, &doc->buffer->file)) {
    }
    if (range.n_given)
        for (uint64_t at = range.first; (at = ed_vi_next_line(e, at)) != ED_NONE && at <= range.last;) n_lines++;
    for (uint64_t i = 0; i < n_lines && !e->done && !e->prompt.kind && e->window->doc == doc; i++) {
        if (range.n_given) {
            uint64_t line = ed_vi_nth_line(e, first + i + 1);
            if (whit_text_line_at(ed_text(e), line) < first + i) break; /* edits have removed the remaining lines */
            *ed_cursor(e) = (struct ed_cursor){line, ED_NONE, -1};
        }
        vi->failed = false;
        ed_vi_play(e, keys.keys, keys.n);
        if (!e->done && e->prompt.kind) ed_take_key(e, (whit_key){.code = WHIT_KEY_ESCAPE}, NULL, 0);
        if (!e->done) ed_take_key(e, (whit_key){.code = WHIT_KEY_ESCAPE}, NULL, 0); /* cancels an incomplete command */
    }
    free(keys.keys);
}

static void to_line(ed *e, uint64_t at)
{
    *ed_cursor(e) = (struct ed_cursor){ed_vi_first(e, at), ED_NONE, -1};
}

static bool of_lines(ed *e, struct range range, const char *at)
{
    const char *from = at;
    struct ed_vi *vi = &e->vi;
    uint64_t end = ed_vi_line_end(e, range.last);
    bool without;
    if (*at == '>' || *at == '<') {
        if (!ed_vi_may_change(e)) return true;
        uint64_t size = whit_text_size(ed_text(e));
        ed_vi_lines_do(e, (uint32_t)*at, range.first, end);
        to_line(e, end + whit_text_size(ed_text(e)) - size);
        return true;
    }
    if (*at == '&' && !at[1]) {
        substitute(e, range, "");
        return true;
    }
    if (*at == 's' && !isalpha((uint8_t)at[1]) && at[1] != '-') {
        substitute(e, range, at + 1);
        return true;
    }
    if ((without = ed_vi_takes(&at, "v", "vglobal")) || ed_vi_takes(&at, "g", "global")) {
        if (*at == '!') {
            without = true;
            at++;
        }
        global(e, range, at, without);
    } else if (at = from, ed_vi_takes(&at, "norm", "normal")) {
        if (*at == '!') at++;
        if (*at == ' ') at++;
        normal(e, range, at);
    } else if (at = from, ed_vi_takes(&at, "d", "delete") || ed_vi_takes(&at, "y", "yank")) {
        ed_vi_skip_blanks(&at);
        if (*at && !ed_vi_register_is_name((uint8_t)*at)) return false;
        vi->wanted_register = (uint8_t)*at;
        if (*from == 'y' || ed_vi_may_change(e)) ed_vi_lines_do(e, (uint32_t)*from, range.first, end);
        vi->wanted_register = 0;
    } else if (at = from, ed_vi_takes(&at, "pu", "put")) {
        bool above = *at == '!';
        at += above;
        above |= range.is_zero;
        ed_vi_skip_blanks(&at);
        vi->wanted_register = (uint8_t)*at;
        ed_vi_put(e, above, false, range.last);
        if (!vi->failed) to_line(e, e->window->doc->mark_end);
        vi->wanted_register = 0;
    } else if (at = from, ed_vi_takes(&at, "j", "join")) {
        uint32_t n = 1;
        for (uint64_t line = range.first; (line = ed_vi_next_line(e, line)) != ED_NONE && line <= range.last;) n++;
        if (!ed_vi_may_change(e)) return true;
        ed_vi_join(e, range.first, n, *at != '!');
        to_line(e, range.first);
    } else if (at = from, ed_vi_takes(&at, "m", "move")) {
        move_or_copy(e, range, at, false);
    } else if (at = from, ed_vi_takes(&at, "t", "t") || ed_vi_takes(&at, "co", "copy")) {
        move_or_copy(e, range, at, true);
    } else if (at = from + (*from == 'k'), *from == 'k' || ed_vi_takes(&at, "ma", "mark")) {
        ed_vi_skip_blanks(&at);
        if (*at < 'a' || *at > 'z') return false;
        e->window->doc->marks[*at - 'a'] = range.last;
    } else if (at = from, ed_vi_takes(&at, "u", "undo") || ed_vi_takes(&at, "red", "redo")) {
        ed_vi_undo(e, (struct ed_vi_call){.how = (uint8_t)*from});
    } else if (at = from, ed_vi_takes(&at, "noh", "nohlsearch") || ed_vi_takes(&at, "p", "print")) {
        *ed_cursor(e) = (struct ed_cursor){ed_vi_first(e, range.last), ED_NONE, -1};
    } else if (at = from, ed_vi_takes(&at, "se", "set")) {
        ed_vi_skip_blanks(&at);
        ed_vi_set(e, at);
    } else {
        return false;
    }
    return true;
}

/* Returns the position after the two parts of /a/b/flags, in which bars are literal. */
static const char *substitute_end(const char *at)
{
    char delimiter = *at, part[1];
    if (!delimiter || isalnum((uint8_t)delimiter) || strchr(" \"&|", delimiter)) return at;
    at++;
    (void)take_part(&at, delimiter, part, sizeof part);
    (void)take_part(&at, delimiter, part, sizeof part);
    return at;
}

/* Returns the end of the command at `at`: its bar or the end of the line. A bar after a backslash is literal; :g, :v,
 * :normal and others extend to the end of the line. */
static const char *command_end(const char *at)
{
    const char *word = at;
    size_t n_word = strcspn(at, " |");
    bool maps = n_word >= 3 && (!strncmp(at + n_word - 3, "map", 3));
    if (maps || ed_vi_takes_rest(at) || ed_vi_takes(&word, "g", "global") || ed_vi_takes(&word, "v", "vglobal") ||
        ed_vi_takes(&word, "norm", "normal"))
        return at + strlen(at);
    if (*at == 's' && !isalpha((uint8_t)at[1]) && at[1] != '-') at = substitute_end(at + 1);
    for (; *at && *at != '|'; at++)
        if (*at == '\\' && at[1]) at++;
    return at;
}

static void run_command(ed *e, struct range range, const char *at)
{
    if (!*at) {
        if (!range.n_given) return;
        e->window->doc->mark_jump = ed_cursor(e)->offset;
        *ed_cursor(e) = (struct ed_cursor){ed_vi_first(e, range.last), ED_NONE, -1};
        whit_layout_unfold(ed_layout(e), ed_cursor(e)->offset);
        return;
    }
    if (range.beyond) {
        ed_vi_fail(e, "the text does not have that many lines");
        return;
    }
    uint64_t end = whit_text_line_end(ed_text(e), range.last), size = whit_text_size(ed_text(e));
    whit_range lines = {range.first, end < size ? end + 1 : size};
    const char *word = at;
    if (range.is_zero && ed_vi_takes(&word, "r", "read")) lines = (whit_range){0, 0};
    char why[200] = "";
    if (ed_vi_map(e, at, why, sizeof why)) {
        if (*why) ed_vi_fail(e, "%s", why);
        return;
    }
    if (ed_vi_shell(e, lines, range.n_given > 0, at) || of_lines(e, range, at) || e->done) return;
    if (range.n_given)
        ed_vi_fail(e, "there is no command for lines '%s'", at);
    else if (!ed_vi_files(e, at)) {
        if (ed_command_find(at) >= 0)
            ed_vi_run(e, at);
        else
            ed_vi_fail(e, "there is no command '%s'; :help lists them", at);
    }
}

/* Runs the commands of a line, separated by bars, until one fails or asks a question. */
static void run_line(ed *e, const char *line)
{
    for (const char *at = line;; at++) {
        struct range range;
        char command[ED_VI_LINE_BYTES];
        ed_vi_skip_blanks(&at);
        if (!take_range(e, &at, &range)) return;
        ed_vi_skip_blanks(&at);
        const char *end = command_end(at);
        size_t n = 0;
        for (bool bars = *at == 's' && !isalpha((uint8_t)at[1]); at < end && n + 1 < sizeof command; at++)
            if (bars || *at != '\\' || at[1] != '|') command[n++] = *at;
        command[n] = 0;
        while (*end && n && command[n - 1] == ' ') command[--n] = 0;
        run_command(e, range, command);
        at = end;
        if (!*at || e->done || e->prompt.kind || e->vi.failed) return;
    }
}

void ed_vi_line(ed *e, const char *line)
{
    struct ed_vi *vi = &e->vi;
    bool once = vi->once, asked = vi->asked;
    const bool fits = strlen(line) < sizeof vi->line;
    if (fits && line != vi->line) snprintf(vi->line, sizeof vi->line, "%s", line);
    /* so that keys played by :normal do not end Ctrl-O's mode or the prompt */
    vi->failed = vi->once = vi->asked = false;
    if (fits)
        run_line(e, line);
    else
        ed_vi_fail(e, "the line is longer than %zu bytes, the limit", sizeof vi->line - 1);
    if (e->done) return;
    vi->once = once;
    vi->asked |= asked;
    e->window->moved_away = false;
}
