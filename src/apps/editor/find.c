/* SPDX-License-Identifier: MIT
 * Searches and replaces with PCRE2. A match does not reach over the end of a line. */
#include "base/phrase.h"
#include "editor/state.h"

#include "code/walk.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* size in bytes from which on no further piece is added to the bytes that one call of PCRE2 searches */
#define RUN_BYTES     (4u << 20)
#define LINE_BYTES    (1u << 20) /* maximum size in bytes of a line that is assembled from several pieces of the text */
#define BACK_BYTES    (64u << 10)
#define N_RESULTS     2000
#define DROP_BYTES    (1u << 20)
#define UNSAVED_BYTES (16u << 20)
#define MATCH_LIMIT   1000000u /* limit on PCRE2's matching steps, which ends endless backtracking */

/* maximum number of files that a replacement in the project visits */
#define REPLACE_FILES_MAX 1000u

struct ed_search {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    uint8_t *line;          /* buffer of LINE_BYTES in which a line is assembled; NULL until needed */
    bool by_line;           /* a match has contained a line end, so lines are matched one by one from then on */
    const uint8_t *subject; /* text that was last matched; PCRE2's group offsets refer to it */
    /* offset of a line whose beginning was just replaced, so that ^ must not match there again; ED_NONE: no such
     * line */
    uint64_t replaced_to;
};

void ed_search_free(struct ed_search *search)
{
    if (!search) return;
    pcre2_code_free(search->code);
    pcre2_match_data_free(search->data);
    pcre2_match_context_free(search->context);
    free(search->line);
    free(search);
}

/* Returns whether a pattern contains an upper case letter, except in an escape such as \W, which makes the search
 * case-sensitive (smart case). */
static bool has_upper(const char *pattern)
{
    for (; *pattern; pattern++) {
        if (*pattern == '\\' && pattern[1])
            pattern++;
        else if (isupper((uint8_t)*pattern))
            return true;
    }
    return false;
}

bool ed_search_set(ed *e, const char *pattern, bool regex, char *why, size_t why_bytes)
{
    struct ed_search *search = calloc(1, sizeof *search);
    int number;
    PCRE2_SIZE at;
    uint32_t literal = regex ? 0 : PCRE2_LITERAL;
    uint32_t flags =
        PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | literal | (has_upper(pattern) ? 0 : PCRE2_CASELESS);
    if (!regex) flags &= ~PCRE2_MULTILINE; /* PCRE2 does not allow the flag for a literal pattern */
    *why = 0;
    if (!search) return false;
    if (strlen(pattern) >= sizeof e->find.pattern) { /* a later command would search for a part of it */
        snprintf(why, why_bytes, "the pattern is longer than %zu bytes, the limit", sizeof e->find.pattern - 1);
        ed_search_free(search);
        return false;
    }
    pcre2_compile_context *options = pcre2_compile_context_create(NULL);
    if (options) pcre2_set_newline(options, PCRE2_NEWLINE_ANYCRLF); /* so that $ matches before CR LF, too */
    search->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, flags, &number, &at, options);
    pcre2_compile_context_free(options);
    if (!search->code) {
        pcre2_get_error_message(number, (PCRE2_UCHAR *)why, why_bytes);
        ed_search_free(search);
        return false;
    }
    pcre2_jit_compile(search->code, PCRE2_JIT_COMPLETE); /* without JIT support PCRE2 falls back to its interpreter */
    search->data = pcre2_match_data_create_from_pattern(search->code, NULL);
    search->context = pcre2_match_context_create(NULL);
    if (!search->data || !search->context) {
        ed_search_free(search);
        return false;
    }
    search->replaced_to = ED_NONE;
    pcre2_set_match_limit(search->context, MATCH_LIMIT);
    ed_search_free(e->find.search);
    e->find.search = search;
    e->find.regex = regex;
    if (pattern != e->find.pattern) snprintf(e->find.pattern, sizeof e->find.pattern, "%s", pattern);
    return true;
}

/* Returns whole lines that are contiguous in memory, beginning at `offset`, which must begin a line; or a single line
 * assembled in search->line; or a part of a very long line. The result is empty at the end of the text. */
static whit_span lines_at(struct ed_search *search, const whit_text *text, uint64_t offset)
{
    whit_span run = whit_text_at(text, offset);
    while (run.size_bytes && run.size_bytes < RUN_BYTES) {
        whit_span more = whit_text_at(text, offset + run.size_bytes);
        if (!more.size_bytes || more.data != run.data + run.size_bytes) break;
        run.size_bytes += more.size_bytes;
    }
    if (offset + run.size_bytes >= whit_text_size(text)) return run;
    const uint8_t *feed = memrchr(run.data, '\n', run.size_bytes);
    if (feed) return (whit_span){run.data, (uint64_t)(feed + 1 - run.data)};
    if (run.size_bytes >= LINE_BYTES) return run; /* a part of a very long line */
    if (!search->line && !(search->line = malloc(LINE_BYTES))) return run;
    uint64_t n = whit_text_line_end(text, offset) + 1 - offset;
    return (whit_span){search->line, whit_text_read(text, offset, search->line, n < LINE_BYTES ? n : LINE_BYTES)};
}

static bool takes_line_end(whit_span lines, uint64_t from, uint64_t to)
{
    if (to > from && memchr(lines.data + from, '\n', to - from)) return true;
    return to && to < lines.size_bytes && lines.data[to] == '\n' && lines.data[to - 1] == '\r';
}

/* Finds the first match at or after `from` in whole lines; `options` apply to the beginning of `lines`. At first all
 * lines are matched as one subject, which is faster. But [^x] and \s match line feeds, so once a match has contained a
 * line end, each line is matched alone, without its line end (by_line). */
static bool match_in(struct ed_search *search, whit_span lines, uint64_t from, uint32_t options, whit_range *match)
{
    const uint8_t *data = lines.data;
    for (;;) {
        uint64_t begin = 0, end = lines.size_bytes;
        const uint8_t *feed = NULL;
        if (search->by_line) {
            const uint8_t *before = from ? memrchr(data, '\n', from) : NULL;
            if (before) begin = (uint64_t)(before + 1 - data);
            if (from < end) feed = memchr(data + from, '\n', end - from);
            if (feed) end = (uint64_t)(feed - data);
            if (feed && end > begin && feed[-1] == '\r') end--;
        }
        if (from <= end &&
            pcre2_match(search->code, data + begin, end - begin, from - begin, begin ? 0 : options, search->data,
                        search->context) >= 0) {
            const PCRE2_SIZE *at = pcre2_get_ovector_pointer(search->data);
            /* \K moves the reported beginning, so the real one is needed */
            PCRE2_SIZE first = pcre2_get_startchar(search->data);
            if (!search->by_line && takes_line_end(lines, first < at[0] ? first : at[0], at[1])) {
                search->by_line = true;
                continue;
            }
            search->subject = data + begin;
            *match = (whit_range){begin + at[0], begin + (at[1] > at[0] ? at[1] : at[0])};
            return true;
        }
        if (!feed || (from = (uint64_t)(feed + 1 - data)) == lines.size_bytes) return false;
    }
}

static uint32_t options_at(const struct ed_search *search, uint64_t line)
{
    return line == search->replaced_to ? PCRE2_NOTBOL : 0;
}

bool ed_search_forward(ed *e, const whit_text *text, uint64_t from, uint64_t to, whit_range *match)
{
    struct ed_search *search = e->find.search;
    if (!search) return false;
    uint64_t at = whit_text_line_begin(text, from);
    if (from - at > LINE_BYTES) at = from;
    while (at < whit_text_size(text) && at < to) {
        whit_span lines = lines_at(search, text, at);
        if (!lines.size_bytes) return false;
        uint64_t begin = from > at ? from - at : 0;
        if (to - at < lines.size_bytes) { /* leave out the lines after the line that contains `to` */
            const uint8_t *feed = memchr(lines.data + (to - at), '\n', lines.size_bytes - (to - at));
            if (feed) lines.size_bytes = (uint64_t)(feed + 1 - lines.data);
        }
        if (begin <= lines.size_bytes && match_in(search, lines, begin, options_at(search, at), match)) {
            match->begin += at;
            match->end += at;
            return match->begin < to;
        }
        at += lines.size_bytes;
        /* release the memory of the searched part of a large file */
        if (lines.size_bytes >= DROP_BYTES) whit_file_drop(&e->window->doc->buffer->file, lines);
    }
    return false;
}

/* Finds the last match that begins before the offset `before`. */
bool ed_search_backward(ed *e, const whit_text *text, uint64_t before, whit_range *match)
{
    uint64_t to = before;
    while (to) {
        uint64_t from = to > BACK_BYTES ? whit_text_line_begin(text, to - BACK_BYTES) : 0, at = from;
        if (to - from > LINE_BYTES) at = from = to - LINE_BYTES;
        bool found = false;
        whit_range next;
        while (at < to && ed_search_forward(e, text, at, to, &next)) {
            *match = next;
            found = true;
            at = next.end > next.begin ? next.end : next.end + 1;
        }
        if (found) return true;
        to = from;
    }
    return false;
}

static void select_match(ed *e, whit_range match)
{
    ed_only_main(e);
    *ed_cursor(e) = (struct ed_cursor){match.end, match.begin == match.end ? ED_NONE : match.begin, -1};
    e->window->moved_away = false;
}

bool ed_search_next(ed *e, bool back, uint64_t from)
{
    whit_range match;
    uint64_t size = whit_text_size(ed_text(e));
    if (!e->find.search) {
        ed_complain(e, "nothing was searched for yet: C-f (vi: /) searches");
        return false;
    }
    bool found = back ? ed_search_backward(e, ed_text(e), from, &match)
                      : ed_search_forward(e, ed_text(e), from, ED_NONE, &match);
    if (!found) {
        found = back ? ed_search_backward(e, ed_text(e), size + 1, &match)
                     : ed_search_forward(e, ed_text(e), 0, ED_NONE, &match);
        if (found) ed_say(e, back ? "continued from the end" : "continued from the beginning");
    }
    if (!found) {
        ed_complain(e, "'%s' was not found", e->find.pattern);
        return false;
    }
    select_match(e, match);
    return true;
}

/* ---- replacing ----------------------------------------------------------------------------- */

/* Builds in `out` the replacement of the match at offset `begin`. For a regular expression, $0 to $9 insert groups, \n
 * and \t insert a line feed and a tab, and \ before another character inserts that character. Returns false if there is
 * no match at `begin`. */
static bool expand(ed *e, uint64_t begin, whit_buf *out, whit_range *match)
{
    struct ed_search *search = e->find.search;
    const whit_text *text = ed_text(e);
    uint64_t line = whit_text_line_begin(text, begin);
    if (begin - line > LINE_BYTES) line = begin;
    whit_span lines = lines_at(search, text, line);
    if (!match_in(search, lines, begin - line, options_at(search, line), match) || match->begin + line != begin)
        return false;
    match->begin += line;
    match->end += line;
    out->size_bytes = 0;
    if (!e->find.regex) return whit_buf_append_str(out, e->find.by);
    const PCRE2_SIZE *groups = pcre2_get_ovector_pointer(search->data);
    uint32_t n_groups = pcre2_get_ovector_count(search->data);
    for (const char *at = e->find.by; *at; at++) {
        if (*at == '$' && isdigit((uint8_t)at[1])) {
            uint32_t group = (uint32_t)(*++at - '0');
            if (group < n_groups && groups[2 * group] != PCRE2_UNSET && groups[2 * group + 1] >= groups[2 * group])
                whit_buf_append(out, search->subject + groups[2 * group], groups[2 * group + 1] - groups[2 * group]);
        } else if (*at == '\\' && at[1]) {
            at++;
            const char *meant;
            if (*at == 'n')
                meant = "\n";
            else if (*at == 't')
                meant = "\t";
            else
                meant = at;
            whit_buf_append(out, meant, 1);
        } else {
            whit_buf_append(out, at, 1);
        }
    }
    return !out->failed;
}

void ed_replace_forget(ed *e)
{
    e->find.to = e->find.line = ED_NONE;
    e->find.once_line = e->find.ended = false;
    if (e->find.search) e->find.search->replaced_to = ED_NONE;
    for (size_t i = 0; i < e->find.n_files; i++) free(e->find.files[i]);
    free(e->find.files);
    e->find.files = NULL;
    e->find.n_files = e->find.files_at = e->find.n_left_out = 0;
    e->find.has_more = false;
}

/* Returns whether a file, with links resolved, is in the project: a link of the project may lead to any file. */
static bool is_of_project(const ed *e, const char *path)
{
    char *real = whit_buffer_full_path(path);
    const bool is_within = real && ed_project_part(e, real);
    free(real);
    return is_within;
}

/* Shows the next file of a replacement in the project. Returns false after the last file, or if the file's journal
 * opens a question. */
static bool next_file(ed *e)
{
    whit_error error;
    while (e->find.files_at < e->find.n_files) {
        const char *path = e->find.files[e->find.files_at++];
        struct ed_doc *doc = is_of_project(e, path) ? ed_open_file(e, path, &error) : NULL;
        if (!doc || doc->buffer->read_only) {
            e->find.n_left_out++;
            continue;
        }
        whit_buffer_seal(e->window->doc->buffer);
        ed_show(e, doc);
        ed_only_main(e);
        *ed_cursor(e) = (struct ed_cursor){0, ED_NONE, -1};
        e->find.ended = false;
        e->find.search->replaced_to = ED_NONE;
        return e->prompt.kind != ED_PROMPT_RECOVER;
    }
    return false;
}

static void say_replaced(ed *e)
{
    const struct ed_find *find = &e->find;
    if (!find->n_files)
        ed_say(e, "replaced %zu", find->n_replaced);
    else if (find->has_more)
        ed_complain(e, "replaced %zu in %u files, the limit; others have matches, too: save-all, then begin again",
                    find->n_replaced, REPLACE_FILES_MAX);
    else if (find->n_left_out)
        ed_complain(e, "replaced %zu in the project; %zu file%s could not be changed", find->n_replaced,
                    find->n_left_out, whit_plural(find->n_left_out));
    else
        ed_say(e, "replaced %zu in the project; save-all saves the files", find->n_replaced);
}

/* Selects the next match, if necessary in the next file. After the last match, reports how many were replaced and
 * returns false. */
bool ed_replace_step(ed *e)
{
    whit_range match;
    for (;;) {
        uint64_t from = ed_selection(ed_cursor(e)).end;
        uint64_t to = e->find.to == ED_NONE ? ED_NONE : e->find.to + 1;
        if (e->find.once_line && e->find.line != ED_NONE) from = whit_text_line_end(ed_text(e), e->find.after) + 1;
        if (e->find.ended || from > whit_text_size(ed_text(e))) to = from;
        if ((to == ED_NONE || from < to) && ed_search_forward(e, ed_text(e), from, to, &match)) {
            e->find.line = match.begin;
            select_match(e, match);
            return true;
        }
        if (next_file(e)) continue;
        say_replaced(e);
        ed_replace_forget(e);
        return false;
    }
}

/* Moves the cursor past a match or its replacement; after an empty match one character further, since it would be found
 * again. Likewise "^" must not match again after the start of its line was replaced. */
static void go_behind(ed *e, uint64_t at, bool is_empty)
{
    bool begins = !is_empty && at == whit_layout_line_begin(ed_layout(e), at);
    e->find.search->replaced_to = begins ? at : ED_NONE;
    e->find.after = at;
    e->find.ended = is_empty && at >= whit_text_size(ed_text(e));
    *ed_cursor(e) = (struct ed_cursor){is_empty ? whit_layout_behind(ed_layout(e), at) : at, ED_NONE, -1};
}

void ed_replace_skip(ed *e)
{
    whit_range match = ed_selection(ed_cursor(e));
    if (match.begin == match.end)
        go_behind(e, match.end, true);
    else
        e->find.after = match.end;
}

void ed_replace_here(ed *e)
{
    whit_buf with = {0};
    whit_range match;
    bool done = expand(e, ed_selection(ed_cursor(e)).begin, &with, &match) &&
        ed_edit(e, match.begin, match.end - match.begin, with.data, with.size_bytes);
    if (done) {
        e->find.n_replaced++;
        go_behind(e, match.begin + with.size_bytes, match.begin == match.end);
    } else {
        ed_replace_skip(e);
    }
    whit_buf_free(&with);
}

static void replace_from_cursor(ed *e)
{
    e->find.n_replaced = 0;
    if (e->window->doc->buffer->read_only) {
        ed_complain_read_only(e);
        return;
    }
    ed_only_main(e);
    uint64_t begin = ed_selection(ed_cursor(e)).begin;
    *ed_cursor(e) = (struct ed_cursor){begin, ED_NONE, -1};
    whit_buffer_seal(e->window->doc->buffer);
    if (ed_replace_step(e))
        ed_prompt_open(e, ED_PROMPT_REPLACING, "Replace this one? y yes, n no, a all that follow, Esc end", "");
    else
        ed_say(e, "'%s' was not found after the cursor", e->find.pattern);
}

void ed_replace_begin(ed *e)
{
    ed_replace_forget(e);
    replace_from_cursor(e);
}

void ed_replace_range(ed *e, uint64_t to, bool once_a_line)
{
    ed_replace_forget(e);
    e->find.to = to;
    e->find.once_line = once_a_line;
    replace_from_cursor(e);
}

void ed_replace_all(ed *e)
{
    do ed_replace_here(e);
    while (ed_replace_step(e));
    whit_buffer_seal(e->window->doc->buffer);
}

/* ---- the project --------------------------------------------------------------------------- */

static bool add_replace_file(void *user, const char *path)
{
    ed *e = user;
    char full[PATH_MAX];
    const char *folder = e->options.project;
    whit_range match;
    whit_file file;
    whit_error error;
    snprintf(full, sizeof full, "%s%s%s", whit_or_empty(folder), folder ? "/" : "", path);
    const struct ed_doc *doc = ed_doc_find(e, full);
    bool has = doc && ed_search_forward(e, doc->buffer->text, 0, ED_NONE, &match);
    if (!doc && whit_file_open(full, &file, &error) == WHIT_OK) {
        whit_span text = whit_file_text(&file);
        has = !memchr(text.data, 0, text.size_bytes < 4096 ? text.size_bytes : 4096) &&
            match_in(e->find.search, text, 0, 0, &match);
        whit_file_close(&file);
    }
    e->find.has_more = has && e->find.n_files == REPLACE_FILES_MAX;
    if (e->find.has_more) return false;
    if (has && !(e->find.files[e->find.n_files] = strdup(full))) return false;
    e->find.n_files += has;
    return true;
}

void ed_replace_in_project(ed *e)
{
    ed_replace_forget(e);
    e->find.n_replaced = 0;
    e->find.files = calloc(REPLACE_FILES_MAX, sizeof *e->find.files);
    if (e->find.files) whit_walk_files(e->options.project ? e->options.project : ".", add_replace_file, e);
    if (next_file(e) && ed_replace_step(e)) {
        ed_prompt_open(e, ED_PROMPT_REPLACING, "Replace this one? y yes, n no, a all that follow, Esc end", "");
        return;
    }
    ed_replace_forget(e);
    if (!e->prompt.kind) ed_complain(e, "no file of the project contains '%s'", e->find.pattern);
}

struct project {
    ed *e;
    const char *folder;
    size_t n_results;
};

static bool search_file(void *user, const char *path)
{
    struct project *project = user;
    char full[PATH_MAX];
    whit_file file = {0};
    whit_error error;
    bool here = !strcmp(project->folder, ".");
    const char *root = here ? "" : project->folder;
    struct stat about;
    snprintf(full, sizeof full, "%s%s%s", root, here ? "" : "/", path);
    if (lstat(full, &about) == 0 && S_ISLNK(about.st_mode) && !is_of_project(project->e, full)) return true;
    const struct ed_doc *doc = ed_doc_find(project->e, full);
    uint8_t *unsaved = NULL; /* content of an open file with unsaved changes, which is searched instead of the file */
    if (doc && whit_buffer_is_modified(doc->buffer) && whit_text_size(doc->buffer->text) <= UNSAVED_BYTES &&
        (unsaved = malloc(whit_text_size(doc->buffer->text) + 1))) {
        file.data = unsaved;
        file.size_bytes = whit_text_read(doc->buffer->text, 0, unsaved, whit_text_size(doc->buffer->text));
    } else if (whit_file_open(full, &file, &error) != WHIT_OK) {
        return true;
    }
    whit_span lines = whit_file_text(&file);
    if (!memchr(lines.data, 0, lines.size_bytes < 4096 ? lines.size_bytes : 4096)) {
        uint64_t at = 0, counted = 0, line = 1;
        whit_range match;
        while (at < lines.size_bytes && project->n_results < N_RESULTS &&
               match_in(project->e->find.search, lines, at, 0, &match)) {
            for (const uint8_t *feed; counted < match.begin; line++) {
                feed = memchr(lines.data + counted, '\n', match.begin - counted);
                if (!feed) break;
                counted = (uint64_t)(feed - lines.data) + 1;
            }
            const uint8_t *begin = memrchr(lines.data, '\n', match.begin);
            begin = begin ? begin + 1 : lines.data;
            const uint8_t *end = memchr(lines.data + match.begin, '\n', lines.size_bytes - match.begin);
            if (!end) end = lines.data + lines.size_bytes;
            while (begin < end && isspace(*begin)) begin++;
            char label[400];
            snprintf(label, sizeof label, "%s:%llu: %.*s", path, (unsigned long long)line,
                     end - begin > 160 ? 160 : (int)(end - begin), (const char *)begin);
            if (!ed_prompt_add(project->e, label, full, line, -1)) break;
            project->n_results++;
            at = (uint64_t)(end - lines.data) + 1;
        }
    }
    if (unsaved)
        free(unsaved);
    else
        whit_file_close(&file);
    return project->n_results < N_RESULTS;
}

void ed_project_search(ed *e)
{
    struct project project = {e, e->options.project ? e->options.project : ".", 0};
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Results: ", "");
    whit_walk_files(project.folder, search_file, &project);
    if (!project.n_results) {
        ed_prompt_close(e);
        ed_complain(e, "no file of the project contains '%s'", e->find.pattern);
        return;
    }
    ed_prompt_filter(e);
    ed_say(e, "%zu%s lines", project.n_results, project.n_results == N_RESULTS ? " (the first)" : "");
}
