/* SPDX-License-Identifier: MIT */
#include "agent/review_expected.h"

#include "base/items.h"
#include "base/phrase.h"
#include "code/diff.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t n = strlen(path), n_suffix = strlen(suffix);
    return n > n_suffix && strcasecmp(path + n - n_suffix, suffix) == 0;
}

/* Returns whether a path is of a snapshot or of a test that is not code, or in a folder of data with which tests
 * compare. */
static bool is_expected(const char *path)
{
    static const char *const folders[] = {"__snapshots__", "testdata", "golden", "goldens", "expected", "cassettes"};
    static const char *const endings[] = {".snap", ".golden", ".approved.txt", ".bats", ".feature"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (has_suffix(path, endings[i])) return true;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1)
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
            if (strlen(folders[i]) == (size_t)(slash - path) && strncasecmp(path, folders[i], strlen(folders[i])) == 0)
                return true;
    return false;
}

/* Returns whether a command has the word `name`, which ends at blanks, quotes and operators of a shell. */
static bool has_word(const char *command, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = command; n && (at = strstr(at, name)); at++)
        if ((at == command || strchr(" \t'\"&|;(", at[-1])) && (!at[n] || strchr(" \t'\"&|;)", at[n]))) return true;
    return false;
}

/* Returns whether a script runs tests: by its name, or because one that does names it. */
static bool runs_tests(const json_t *scripts, const char *name, unsigned depth)
{
    enum { DEPTH_MAX = 8 };
    const char *other;
    const json_t *command;
    if (strncmp(name, "test", 4) == 0 || strncmp(name, "pretest", 7) == 0 || strncmp(name, "posttest", 8) == 0)
        return true;
    json_object_foreach((json_t *)scripts, other, command)
    {
        const char *text = json_string_value(command);
        if (text && strcmp(other, name) != 0 && depth < DEPTH_MAX && has_word(text, name) &&
            runs_tests(scripts, other, depth + 1))
            return true;
    }
    return false;
}

/* Returns whether a change of package.json removes or changes a script that runs tests. */
static bool takes_script(const whit_change *c)
{
    json_t *before = json_loadb(whit_or_empty(c->before), c->before_bytes, 0, NULL);
    json_t *after = json_loadb(whit_or_empty(c->after), c->after_bytes, 0, NULL);
    const json_t *old = json_object_get(before, "scripts"), *now = json_object_get(after, "scripts");
    const char *name;
    const json_t *command;
    bool found = false;
    json_object_foreach((json_t *)old, name, command) found =
        found || (runs_tests(old, name, 0) && !json_equal(command, json_object_get(now, name)));
    json_decref(before);
    json_decref(after);
    return found;
}

/* Returns whether a file tells a program what to build and which tests to run. */
static bool is_build_file(const char *path)
{
    static const char *const names[] = {
        "makefile",    "gnumakefile",  "cmakelists.txt", "meson.build",   "pyproject.toml", "setup.cfg",
        "noxfile.py",  "cargo.toml",   "rakefile",       "justfile",      "pom.xml",        "build",
        "build.bazel", "wscript",      "sconstruct",     "sconscript",    "build.zig",      "mix.exs",
        "project.clj", "taskfile.yml", "taskfile.yaml",  "composer.json", "deno.json",      "configure.ac",
        "makefile.am", "makefile.in",  "kbuild"};
    static const char *const endings[] = {".mk",         ".mak", ".cmake",  ".gradle",
                                          ".gradle.kts", ".bzl", ".csproj", ".ninja"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (has_suffix(name, endings[i])) return true;
    return false;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i]) return false;
    return true;
}

/* Returns whether a text names tests, also as a part of a word. */
static bool names_tests(const char *text, size_t n)
{
    static const char *const words[] = {"test", "check", "rspec"};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (n - i >= strlen(words[k]) && strncasecmp(text + i, words[k], strlen(words[k])) == 0) return true;
    return false;
}

/* Returns whether one of the paragraphs of a text that names tests has lines `first` to `last`, without `last`. */
static bool has_lines_of_tests(const char *text, size_t n, size_t first, size_t last)
{
    size_t begin = 0, line = 0; /* begin: offset of the paragraph */
    bool is_touched = false;
    for (size_t at = 0, next; at < n; at = next, line++) {
        const char *end = memchr(text + at, '\n', n - at);
        next = end ? (size_t)(end - text) + 1 : n;
        if (is_blank(text + at, next - at)) {
            if (is_touched && names_tests(text + begin, at - begin)) return true;
            begin = next;
            is_touched = false;
        } else {
            is_touched = is_touched || (line >= first && line < last);
        }
    }
    return is_touched && names_tests(text + begin, n - begin);
}

/* Returns whether lines of the old text are removed or changed, with `of_tests` only those in a paragraph that names
 * tests; also if memory runs out. */
static bool takes_lines(const whit_change *c, bool of_tests)
{
    whit_buf runs = {0};
    const char *before = whit_or_empty(c->before), *after = whit_or_empty(c->after);
    bool found = !whit_diff_lines(before, c->before_bytes, after, c->after_bytes, &runs);
    const whit_diff_run *run = WHIT_ITEMS(const whit_diff_run, &runs);
    for (size_t i = 0; !found && i < runs.size_bytes / sizeof *run; i++)
        found = run[i].n_old > 0 &&
            (!of_tests || has_lines_of_tests(before, c->before_bytes, run[i].old_line, run[i].old_line + run[i].n_old));
    whit_buf_free(&runs);
    return found;
}

bool whit_review_takes_expected(const whit_change *c)
{
    const char *slash = strrchr(c->path, '/');
    if (!c->was || !c->is) return false;
    if (is_build_file(c->path) && takes_lines(c, true)) return true;
    if (strcmp(slash ? slash + 1 : c->path, "package.json") == 0) return takes_script(c);
    return is_expected(c->path) && takes_lines(c, false);
}
