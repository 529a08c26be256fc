/* SPDX-License-Identifier: MIT */
#include "agent/gate.h"

#include "agent/light.h"

#include <stdlib.h>
#include <string.h>

#define WHY_BYTES 8000
#define DEPTH_MAX 4096
#define COPY_NAME "gate" /* name of the scratch copy in which the checks run */

/* ---- unmatched brackets ------------------------------------------------------------------------ */

typedef enum quoting { QUOTE_C, QUOTE_GO, QUOTE_PYTHON } quoting;

/* Returns the line (from 1) of the first unmatched bracket; 0 if all match. Skips strings and comments. */
static size_t first_lone_bracket(const char *text, size_t n, quoting how)
{
    struct open {
        char closes;
        size_t line;
    } *stack = malloc(DEPTH_MAX * sizeof *stack);
    size_t depth = 0, line = 1, lone = 0;
    for (size_t i = 0; stack && i < n && !lone; i++) {
        char c = text[i];
        bool triple =
            how == QUOTE_PYTHON && i + 2 < n && (c == '"' || c == '\'') && text[i + 1] == c && text[i + 2] == c;
        if (c == '\n') {
            line++;
        } else if (triple) {
            for (i += 3; i < n && !(text[i] == c && i + 2 < n && text[i + 1] == c && text[i + 2] == c); i++) {
                line += text[i] == '\n';
                i += text[i] == '\\';
            }
            i += 2;
        } else if (how == QUOTE_PYTHON ? c == '#' : c == '/' && i + 1 < n && text[i + 1] == '/') {
            while (i + 1 < n && text[i + 1] != '\n') i++;
        } else if (how != QUOTE_PYTHON && c == '/' && i + 1 < n && text[i + 1] == '*') {
            for (i += 2; i + 1 < n && !(text[i] == '*' && text[i + 1] == '/'); i++) line += text[i] == '\n';
            i++;
        } else if (c == '"' || (how == QUOTE_GO && c == '`') ||
                   /* a quote after a digit, as in 1'000, does not begin a literal */
                   (c == '\'' && !(i && text[i - 1] >= '0' && text[i - 1] <= '9'))) {
            for (i++; i < n && text[i] != c && (text[i] != '\n' || c == '`'); i++) {
                line += text[i] == '\n';
                if (text[i] == '\\' && i + 1 < n) line += text[++i] == '\n';
            }
            line += i < n && text[i] == '\n';
        } else if (c == '(' || c == '[' || c == '{') {
            if (depth == DEPTH_MAX) break;
            stack[depth++] = (struct open){c == '(' ? ')' : c == '[' ? ']' : '}', line};
        } else if (c == ')' || c == ']' || c == '}') {
            if (!depth || stack[--depth].closes != c) lone = line;
        }
    }
    if (!lone && depth && depth < DEPTH_MAX) lone = stack[depth - 1].line;
    free(stack);
    return lone;
}

static bool ends_with(const char *path, const char *const *ends)
{
    size_t n = strlen(path);
    for (; *ends; ends++) {
        size_t k = strlen(*ends);
        if (n > k && strcmp(path + n - k, *ends) == 0) return true;
    }
    return false;
}

static size_t count_word(const char *text, size_t n, const char *word)
{
    size_t count = 0, n_word = strlen(word);
    for (const char *at = text, *stop = text + n; n && (at = memmem(at, (size_t)(stop - at), word, n_word));
         at += n_word)
        count++;
    return count;
}

/* Returns whether a change breaks the balance of brackets; *line gets the unmatched bracket's line. A text that was
 * unbalanced before may stay unbalanced. C texts whose number of #if, #el... or raw strings changes are not judged:
 * both sides of an #if may open the same bracket, and a raw string may contain any. */
static bool brackets_are_worse(const whit_change *c, quoting how, size_t *line)
{
    static const char *const words[] = {"#if", "# if", "#el", "R\""};
    *line = first_lone_bracket(c->after, c->after_bytes, how);
    if (!*line || (c->was && first_lone_bracket(c->before, c->before_bytes, how))) return false;
    for (size_t i = 0; how == QUOTE_C && i < sizeof words / sizeof *words; i++)
        if (count_word(c->after, c->after_bytes, words[i]) !=
            (c->was ? count_word(c->before, c->before_bytes, words[i]) : 0))
            return false;
    return true;
}

/* ---- checks before writing ----------------------------------------------------------------------- */

static size_t count_marks(const char *text, size_t n)
{
    size_t count = 0;
    for (const char *at = text, *stop = text + n; n && at < stop;) {
        if (stop - at > 8 && (memcmp(at, "<<<<<<< ", 8) == 0 || memcmp(at, ">>>>>>> ", 8) == 0)) count++;
        at = memchr(at, '\n', (size_t)(stop - at));
        if (!at++) break;
    }
    return count;
}

static bool is_json(const char *text, size_t n, json_error_t *at)
{
    json_t *value = json_loadb(text, n, JSON_DECODE_ANY, at);
    json_decref(value);
    return value != NULL;
}

/* Checks the syntax of one change: no added conflict markers, valid JSON, balanced brackets. A text that was already
 * wrong before may stay wrong. If the change is refused, returns false and appends the reason to `why`. The model reads
 * the reason, so it does not quote a file that may contain keys. */
static bool gate_syntax(const char *project, const whit_change *c, whit_buf *why)
{
    static const char *const c_like[] = {".c", ".h", ".cc", ".cpp", ".hpp", ".java", NULL}, *const go[] = {".go", NULL},
                             *const python[] = {".py", NULL}, *const json[] = {".json", NULL};
    json_error_t at, ignored;
    size_t line;
    if (!c->is) return true;
    if (count_marks(c->after, c->after_bytes) > (c->was ? count_marks(c->before, c->before_bytes) : 0)) {
        whit_buf_printf(why, "%s: contains the conflict markers of a merge (<<<<<<<)\n", c->path);
        return false;
    }
    if (ends_with(c->path, json) && !is_json(c->after, c->after_bytes, &at) &&
        (!c->was || is_json(c->before, c->before_bytes, &ignored))) {
        const bool is_secret = whit_light_hides(project, c) || whit_change_had_key(c);
        whit_buf_printf(why, "%s: line %d: is not JSON", c->path, at.line);
        if (!is_secret) whit_buf_printf(why, ": %s", at.text);
        whit_buf_append_str(why, "\n");
        return false;
    }
    bool known = ends_with(c->path, c_like) || ends_with(c->path, go) || ends_with(c->path, python);
    quoting how = QUOTE_C;
    if (ends_with(c->path, python))
        how = QUOTE_PYTHON;
    else if (ends_with(c->path, go))
        how = QUOTE_GO;
    if (known && brackets_are_worse(c, how, &line)) {
        whit_buf_printf(why, "%s: line %zu: a bracket has no partner\n", c->path, line);
        return false;
    }
    return true;
}

/* Runs the checks one after another in the scratch copy, which the first check opens and locks. */
static whit_status run_checks(whit_runner *runner, whit_scratch *scratch, const whit_changes *staged,
                              bool (*on_check)(void *user, const char *line), void *user, bool *passed, whit_buf *why,
                              whit_error *error)
{
    *runner->pass = 0;
    for (const char *const *line = runner->config ? runner->config->checks : NULL; *passed && line && *line; line++) {
        whit_sandbox_result result = {0};
        if (on_check && !on_check(user, *line)) {
            *passed = false;
            whit_buf_printf(why, "the check '%s' was not agreed to, so nothing is written\n", *line);
            return WHIT_OK;
        }
        if (!*runner->pass) {
            WHIT_TRY(whit_runner_open(runner, COPY_NAME, scratch, error));
            WHIT_TRY(whit_scratch_begin_pass(scratch, runner->pass, error));
        }
        whit_status status = whit_runner_run_in(runner, COPY_NAME, scratch, staged, *line, 0, &result, error);
        if (status == WHIT_OK && result.status != 0) {
            *passed = false;
            whit_buf_printf(why, "the project's check '%s' fails: ", *line);
            whit_runner_tell(&result, WHY_BYTES, why);
        }
        whit_sandbox_result_free(&result);
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

whit_status whit_gate_pass(whit_runner *runner, const whit_changes *staged,
                           bool (*on_check)(void *user, const char *line), void *user, bool *passed, whit_buf *why,
                           whit_error *error)
{
    whit_scratch scratch = {.lock = -1, .tree_fd = -1};
    *passed = true;
    for (size_t i = 0; i < whit_changes_count(staged); i++)
        *passed = gate_syntax(runner->project, whit_changes_at(staged, i), why) && *passed;
    whit_status status = run_checks(runner, &scratch, staged, on_check, user, passed, why, error);
    whit_scratch_close(&scratch);
    return status;
}

void whit_gate_written(whit_runner *runner)
{
    whit_scratch scratch;
    whit_error ignored;
    if (!*runner->pass) return;
    if (whit_runner_open(runner, COPY_NAME, &scratch, &ignored) == WHIT_OK)
        whit_scratch_end_pass(&scratch, runner->pass);
    whit_scratch_close(&scratch);
    *runner->pass = 0;
}
