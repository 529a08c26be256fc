/* SPDX-License-Identifier: MIT
 * Finds language servers that are installed: a server is looked for on PATH when a text of its language is shown, and
 * started once the person has agreed for the project, because a server reads, and may run, programs that the project
 * configures. Answers are kept in $XDG_STATE_HOME/whit/servers or ~/.local/state/whit/servers, a line for a folder:
 * "yes /folder" or "no /folder", which holds for the folders in it, too. A yes does not hold for other projects in the
 * folder: not for a repository of its own, and in the home folder, or in one above, for that folder alone. */
#include "editor/state.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "base/piped.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWERS_BYTES (1u << 20)
/* nanoseconds after the question in which a key was probably typed before the person saw it */
#define HASTE_NS 250000000ull

static const struct known_server {
    const char *language, *program, *command;
} known[] = {
    {"c", "clangd", "clangd"},
    {"cpp", "clangd", "clangd"},
    {"python", "pylsp", "pylsp"},
    {"python", "basedpyright-langserver", "basedpyright-langserver --stdio"},
    {"python", "pyright-langserver", "pyright-langserver --stdio"},
    {"go", "gopls", "gopls"},
    {"rust", "rust-analyzer", "rust-analyzer"},
    {"javascript", "typescript-language-server", "typescript-language-server --stdio"},
    {"typescript", "typescript-language-server", "typescript-language-server --stdio"},
    {"bash", "bash-language-server", "bash-language-server start"},
    {"lua", "lua-language-server", "lua-language-server"},
    {"zig", "zls", "zls"},
};

static const struct known_server *find_server(const struct ed_doc *doc)
{
    const char *language = whit_syntax_name(doc->syntax);
    char path[WHIT_PROGRAM_BYTES];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].language, language) && whit_find_program(known[i].program, path)) return &known[i];
    return NULL;
}

/* ---- answers ------------------------------------------------------------------------------- */

static bool answers_path(char *path)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state && *state == '/')
        n = snprintf(path, PATH_MAX, "%s/whit/servers", state);
    else if (home && *home == '/')
        n = snprintf(path, PATH_MAX, "%s/.local/state/whit/servers", home);
    return n > 0 && n < PATH_MAX;
}

static bool project_of(const ed *e, char *project)
{
    return realpath(e->options.project ? e->options.project : ".", project) != NULL;
}

static bool is_within(const char *project, const char *folder, size_t n)
{
    if (n == 1 && *folder == '/') return true;
    return strlen(project) >= n && !memcmp(project, folder, n) && (!project[n] || project[n] == '/');
}

/* Returns whether the home folder is this folder or in it. */
static bool has_home(const char *folder, size_t n)
{
    char home[PATH_MAX];
    const char *given = getenv("HOME");
    return given && *given == '/' && realpath(given, home) && is_within(home, folder, n);
}

/* Returns whether a folder below the first n bytes of a path, or the path itself, is a repository. */
static bool has_repository(const char *path, size_t n)
{
    char name[PATH_MAX + 8];
    for (size_t end = strlen(path); end > n; end -= end > 0) {
        snprintf(name, sizeof name, "%.*s/.git", (int)end, path);
        if (whit_path_exists(name)) return true;
        while (end > n && path[end - 1] != '/') end--;
    }
    return false;
}

/* Returns the stored answer for the project, or for the folder of a text, or for the nearest folder above it: 1 for
 * yes, 0 for no, -1 if there is no answer. */
static int read_answer(const char *project, bool is_text)
{
    char path[PATH_MAX];
    whit_buf text = {0};
    whit_error error;
    int answer = -1;
    size_t longest = 0;
    if (answers_path(path) && whit_path_exists(path)) (void)whit_read_file(path, ANSWERS_BYTES, &text, &error);
    for (size_t at = 0, n; at < text.size_bytes; at += n + 1) {
        const char *line = whit_chars(&text) + at, *feed = memchr(line, '\n', text.size_bytes - at);
        n = feed ? (size_t)(feed - line) : text.size_bytes - at;
        size_t n_word = 0;
        if (n > 4 && !memcmp(line, "yes /", 5))
            n_word = 4;
        else if (n > 3 && !memcmp(line, "no /", 4))
            n_word = 3;
        const char *folder = line + n_word;
        const size_t n_folder = n - n_word;
        if (!n_word || n_folder < longest || !is_within(project, folder, n_folder)) continue;
        const bool is_below = strlen(project) > n_folder;
        if (n_word == 4 && is_below && (has_home(folder, n_folder) || (!is_text && has_repository(project, n_folder))))
            continue;
        longest = n_folder;
        answer = n_word == 4;
    }
    whit_buf_free(&text);
    return answer;
}

static whit_status keep_answer(const char *project, bool yes, whit_error *error)
{
    char path[PATH_MAX];
    whit_buf text = {0};
    whit_writer writer;
    if (!answers_path(path))
        return whit_fail(error, WHIT_ERROR_IO,
                         "the answer is not stored: set XDG_STATE_HOME or HOME to a folder's absolute path");
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    if (whit_path_exists(path)) WHIT_TRY(whit_read_file(path, ANSWERS_BYTES, &text, error));
    whit_buf_printf(&text, "%s %s\n", yes ? "yes" : "no", project);
    whit_status status = text.failed ? whit_fail_memory(error, path, text.size_bytes)
                                     : whit_writer_open_private(path, NULL, &writer, error);
    if (status == WHIT_OK) {
        status = whit_writer_append(&writer, text.data, text.size_bytes, error);
        if (status == WHIT_OK)
            status = whit_writer_commit(&writer, error);
        else
            whit_writer_discard(&writer);
    }
    whit_buf_free(&text);
    return status;
}

/* ---- the question -------------------------------------------------------------------------- */

/* Returns the answer for the folder of a text, which may lie outside of the project. */
static int read_answer_of_text(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int n = slash && slash > path ? (int)(slash - path) : 1;
    return snprintf(folder, sizeof folder, "%.*s", n, path) < (int)sizeof folder ? read_answer(folder, true) : -1;
}

bool ed_servers_look(ed *e)
{
    struct ed_doc *doc = e->window->doc;
    char project[PATH_MAX], label[200];
    if (e->settings.find_servers == ED_FIND_NEVER || e->prompt.kind || doc->looked_for_server || !doc->buffer->path ||
        doc == e->results.peeked)
        return false;
    doc->looked_for_server = true;
    if (strchr(doc->buffer->path, '\n') || !project_of(e, project) || strchr(project, '\n')) return false;
    const bool is_always = e->settings.find_servers == ED_FIND_ALWAYS;
    const int answer = is_always ? 1 : read_answer(project, false);
    const int of_text = is_always ? 1 : read_answer_of_text(doc->buffer->path);
    doc->server_agreed = answer == 1 && of_text == 1;
    const struct known_server *server = ed_server_of(e, doc) ? NULL : find_server(doc);
    if (!server) return false;
    if (doc->server_agreed && ed_language_add(e, server->language, server->command))
        e->servers[e->n_servers - 1].is_found = true;
    if (answer >= 0 || of_text >= 0 || e->servers_asked_ns || !is_within(doc->buffer->path, project, strlen(project)))
        return doc->server_agreed;
    e->servers_asked_ns = whit_now_ns();
    snprintf(label, sizeof label, "%s is installed: y starts it for this project, n never", server->program);
    ed_prompt_open(e, ED_PROMPT_SERVERS, label, "");
    return true;
}

bool ed_servers_answer(ed *e, whit_key key)
{
    char project[PATH_MAX];
    whit_error error;
    ed_prompt_close(e);
    bool yes = key.code == 'y', decided = !key.mods && (yes || key.code == 'n');
    if (key.code == WHIT_KEY_ESCAPE) return true;
    if (!decided || whit_now_ns() - e->servers_asked_ns < HASTE_NS || !project_of(e, project)) return false;
    if (keep_answer(project, yes, &error) != WHIT_OK)
        ed_complain_error(e, &error);
    else
        ed_say(e, yes ? "language servers are started in this project" : "not asked again in this project");
    for (struct ed_doc *doc = e->docs; doc; doc = doc->next) doc->looked_for_server = false;
    return true;
}
