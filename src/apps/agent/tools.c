/* SPDX-License-Identifier: MIT */
#include "agent/tools.h"

#include "agent/ask_graph.h"
#include "agent/guard.h"
#include "agent/light.h"
#include "agent/search.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/phrase.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRIES_MAX   2000
#define FOLDERS_DEEP  24
#define GREP_FILE_MAX ((size_t)4 << 20)
#define GREP_LINE_MAX 2000
/* maximum length in bytes of a command that a person is asked about; longer ones are refused */
#define REASON_MAX 4000

/* A tool: its name, its description for the model, and its parameters as "name:type", with a '?' if optional. */
static const struct tool {
    const char *name, *help, *parameters;
} tools[] = {
    {"read", "Read a file of the project, or its lines first..last, counted from 1.",
     "path:string first:integer? last:integer?"},
    {"list", "List the files below a folder of the project.", "path:string?"},
    {"grep", "Find lines that match a regular expression (PCRE), in a file or below a folder.",
     "pattern:string path:string?"},
    {"patch_file",
     "Change files by a patch: SEARCH/REPLACE blocks, *** Begin Patch, or a unified diff. `path` is the file of "
     "blocks that name none.",
     "patch:string path:string?"},
    {"write", "Write a whole file of the project.", "path:string content:string"},
    {"graph", "Ask what the project's code defines and calls. query: " WHIT_ASK_GRAPH_KINDS ".",
     "query:string name:string?"},
    {"ask", "Ask the person a question.", "question:string"},
    {WHIT_TOOL_AGENT,
     "Let another agent do a part of the task, of which it is told all that it must know; files that another one has "
     "changed in the same answer are refused to it.",
     "task:string"},
    {"run",
     "Run a line of shell in a copy of the project, with the changes of this answer: to build and test. It has no "
     "network, and what it writes stays in the copy, which is kept.",
     "command:string seconds:integer?"},
};
enum { TOOL_READ, TOOL_LIST, TOOL_GREP, TOOL_PATCH, TOOL_WRITE, TOOL_GRAPH, TOOL_ASK, TOOL_AGENT, TOOL_RUN, N_TOOLS };

json_t *whit_tools_schema(bool may_run)
{
    json_t *all = json_array();
    for (size_t i = 0; i < (may_run ? N_TOOLS : TOOL_RUN); i++) {
        json_t *properties = json_object(), *required = json_array();
        for (const char *at = tools[i].parameters; *at; at += strcspn(at, " "), at += *at == ' ') {
            char name[32], type[32];
            if (sscanf(at, "%31[a-z]:%31[a-z]", name, type) != 2) break;
            json_object_set_new(properties, name, json_pack("{s:s}", "type", type));
            if (!memchr(at, '?', strcspn(at, " "))) json_array_append_new(required, json_string(name));
        }
        json_array_append_new(all,
                              json_pack("{s:s, s:{s:s, s:s, s:{s:s, s:o, s:o}}}", "type", "function", "function",
                                        "name", tools[i].name, "description", tools[i].help, "parameters", "type",
                                        "object", "properties", properties, "required", required));
    }
    return all;
}

static bool is_folder(const char *project, const char *path)
{
    char full[PATH_MAX];
    struct stat info;
    return snprintf(full, sizeof full, "%s/%s", project, path) < (int)sizeof full && lstat(full, &info) == 0 &&
        S_ISDIR(info.st_mode);
}

/* ---- read ----------------------------------------------------------------------------------- */

static void tool_read(const whit_tool_place *place, const json_t *arguments, whit_buf *result)
{
    const char *path = json_string_value(json_object_get(arguments, "path"));
    const json_t *ends[2] = {json_object_get(arguments, "first"), json_object_get(arguments, "last")};
    json_int_t first = ends[0] ? json_integer_value(ends[0]) : 1;
    json_int_t last = ends[1] ? json_integer_value(ends[1]) : 0;
    whit_buf content = {0};
    whit_error error;
    whit_project_file file = {.exists = true};
    bool is_open;
    char name[PATH_MAX];
    if (whit_texts_name(place->staged->open, place->project, path, name, &error) == WHIT_OK) path = name;
    const whit_change *staged = whit_changes_find(place->staged, path);
    whit_status status = WHIT_OK;
    if (whit_light_secret(place->project, path) || (staged && staged->is_hidden))
        file.is_hidden = true;
    else if (!staged)
        status = whit_texts_read(place->staged->open, place->project, path, &content, &file, &is_open, &error);
    if (status != WHIT_OK)
        whit_buf_printf(result, "error: %s", error.message);
    else if (file.is_hidden)
        whit_buf_printf(result, "error: %s: may contain keys or belongs to version control, so it is not read", path);
    else if (staged ? !staged->is : !file.exists)
        whit_buf_printf(result, "error: %s: there is no such file", path);
    else {
        const char *text = staged ? staged->after : whit_chars(&content);
        size_t n = staged ? staged->after_bytes : content.size_bytes, from = 0, line = 1;
        for (; from < n && (json_int_t)line < first; line++) {
            const char *end = memchr(text + from, '\n', n - from);
            from = end ? (size_t)(end - text) + 1 : n;
        }
        size_t to = from;
        for (; to < n && (!last || (json_int_t)line <= last); line++) {
            const char *end = memchr(text + to, '\n', n - to);
            to = end ? (size_t)(end - text) + 1 : n;
        }
        if (whit_guard_has_key(text, n) || (staged && whit_change_had_key(staged)))
            whit_buf_printf(result, "error: %s: contains a key or a token, so it is not read", path);
        else if (n && memchr(text, 0, n))
            whit_buf_printf(result, "error: %s: is not text (%zu bytes)", path, n);
        else if (from == to)
            whit_buf_printf(result, n ? "(no such lines: %s has %zu bytes)" : "(%s has %zu bytes)", path, n);
        else
            whit_buf_append(result, text + from, to - from);
    }
    whit_buf_free(&content);
}

/* ---- list and grep -------------------------------------------------------------------------- */

typedef struct walk {
    const whit_tool_place *place;
    whit_buf *result;
    whit_search *pattern; /* NULL: list names; otherwise: search for this pattern */
    size_t n_entries, n_costly;
    bool is_spent;
} walk;

/* Appends a path in one line: a path with line feeds or other control characters becomes a JSON string. */
static void put_name(whit_buf *result, const char *path)
{
    char *quoted = NULL;
    for (const char *at = path; *at; at++)
        if ((uint8_t)*at < 32 || *at == 127) {
            json_t *name = json_string(path);
            quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
            json_decref(name);
            break;
        }
    whit_buf_append_str(result, quoted ? quoted : path);
    free(quoted);
}

static bool may_continue(const walk *w)
{
    return w->result->size_bytes <= WHIT_TOOL_RESULT_BYTES && !w->is_spent && !whit_flag_is_set(w->place->cancel);
}

static void grep_file(walk *w, const char *path)
{
    whit_buf content = {0};
    whit_error error;
    whit_project_file file;
    bool is_open;
    if (whit_texts_read(w->place->staged->open, w->place->project, path, &content, &file, &is_open, &error) ==
            WHIT_OK &&
        !file.is_hidden && content.size_bytes <= GREP_FILE_MAX && content.size_bytes &&
        !memchr(content.data, 0, content.size_bytes)) {
        const char *text = whit_chars(&content), *stop = text + content.size_bytes;
        /* a file with a key is not searched at all, since single lines of a key block cannot be recognised as a key */
        if (whit_guard_has_key(text, content.size_bytes)) stop = text;
        for (size_t number = 1; text < stop && may_continue(w); number++) {
            const char *end = memchr(text, '\n', (size_t)(stop - text));
            size_t n = (size_t)((end ? end : stop) - text);
            size_t n_text = n && text[n - 1] == '\r' ? n - 1 : n;
            if (n_text > GREP_LINE_MAX) n_text = GREP_LINE_MAX;
            whit_search_found found = whit_search_line(w->pattern, text, n_text);
            w->n_costly += found == WHIT_SEARCH_COSTLY;
            w->is_spent = found == WHIT_SEARCH_SPENT;
            if (found == WHIT_SEARCH_YES) {
                put_name(w->result, path);
                whit_buf_printf(w->result, ":%zu:%.*s\n", number, (int)whit_utf8_cut(text, n_text, 300), text);
            }
            text += n + 1;
        }
    }
    whit_buf_free(&content);
}

/* Visits a folder and its subfolders, depth first. Links are listed but not followed. */
static void visit(walk *w, const char *path, int deep)
{
    char **names;
    const size_t n = whit_project_list(w->place->project, path, &names);
    for (size_t i = 0; i < n; i++) {
        const char *name = names[i] + 1;
        const bool folder = *names[i] == '/';
        char below[PATH_MAX];
        bool skip = w->n_entries >= ENTRIES_MAX || !may_continue(w) ||
            snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", name) >= (int)sizeof below ||
            whit_light_secret(w->place->project, below);
        if (!skip) {
            w->n_entries++;
            if (folder && deep < FOLDERS_DEEP)
                visit(w, below, deep + 1);
            else if (w->pattern)
                grep_file(w, below);
            else {
                put_name(w->result, below);
                whit_buf_append_str(w->result, folder ? "/\n" : "\n");
            }
        }
        free(names[i]);
    }
    free(names);
}

/* Removes "./" at the beginning and slashes at the end of a path, which models add. Writes the result into `plain`,
 * which must have room for the path and its zero byte, and returns `plain`. */
static const char *plain_folder(const char *path, char *plain)
{
    while (path[0] == '.' && path[1] == '/') path += 1 + strspn(path + 1, "/");
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    memcpy(plain, path, n);
    plain[n] = '\0';
    return plain;
}

static void tool_walk(const whit_tool_place *place, const json_t *arguments, bool grep, whit_buf *result)
{
    const char *path = json_string_value(json_object_get(arguments, "path"));
    const char *pattern = json_string_value(json_object_get(arguments, "pattern"));
    char why[200];
    whit_buf content = {0};
    whit_error error;
    bool there = false;
    uint32_t mode;
    char plain[PATH_MAX];
    if (!path || strcmp(path, ".") == 0) path = "";
    if (strlen(path) < sizeof plain) path = plain_folder(path, plain);
    bool folder = !*path || is_folder(place->project, path);
    walk w = {.place = place, .result = result};
    char inside[PATH_MAX];
    whit_status status = WHIT_OK;
    /* resolving a name below the folder refuses ".." and links out of the project */
    if (snprintf(inside, sizeof inside, "%s/a", path) >= (int)sizeof inside)
        status = whit_fail(&error, WHIT_ERROR_ARGUMENT, "path: it is longer than %d bytes, the limit", PATH_MAX - 1);
    else if (folder && *path)
        status = whit_project_holds(place->project, inside, &error);
    else if (!folder)
        status = whit_project_read(place->project, path, &content, &there, &mode, &error);
    if (status != WHIT_OK) {
        whit_buf_printf(result, "error: %s", error.message);
    } else if (whit_light_secret(place->project, path)) {
        whit_buf_printf(result, "error: %s: may contain keys or belongs to version control, so it is not read", path);
    } else if (!folder && !there) {
        whit_buf_printf(result, "error: %s: there is no such file or folder", path);
    } else if (grep && !(w.pattern = whit_search_open(pattern, why, sizeof why))) {
        whit_buf_printf(result, "error: the pattern cannot be used: %s", why);
    } else {
        if (folder)
            visit(&w, path, 0);
        else if (grep)
            grep_file(&w, path);
        else
            whit_buf_printf(result, "%s\n", path);
        if (!result->size_bytes) whit_buf_append_str(result, grep ? "(no match)" : "(empty)");
        if (w.n_entries >= ENTRIES_MAX) whit_buf_printf(result, "(stopped after %d names)\n", ENTRIES_MAX);
        if (w.n_costly)
            whit_buf_printf(result, "(%zu lines were skipped, because the pattern takes too many steps on them)\n",
                            w.n_costly);
        if (w.is_spent) whit_buf_append_str(result, "(stopped: the pattern takes too many steps)\n");
        if (whit_flag_is_set(place->cancel)) whit_buf_append_str(result, "(interrupted)\n");
        whit_search_close(w.pattern);
    }
    whit_buf_free(&content);
}

/* ---- write and patch ------------------------------------------------------------------------ */

bool whit_tool_patch(const whit_tool_place *place, const char *text, size_t n_bytes, const char *path, whit_buf *result)
{
    whit_patch patch = {0};
    whit_error error;
    bool ok = whit_patch_parse(text, n_bytes, &patch, &error) == WHIT_OK &&
        whit_changes_patch(place->staged, place->project, &patch, path, &error) == WHIT_OK;
    if (ok)
        whit_buf_printf(result, "%zu file%s staged", whit_patch_n_files(&patch),
                        whit_patch_n_files(&patch) == 1 ? "" : "s");
    else
        whit_buf_printf(result, "error: %s", error.message);
    whit_patch_free(&patch);
    return ok;
}

static bool tool_write(const whit_tool_place *place, const json_t *arguments, whit_buf *result)
{
    const json_t *content = json_object_get(arguments, "content");
    whit_error error;
    bool ok = whit_changes_put(place->staged, place->project, json_string_value(json_object_get(arguments, "path")),
                               json_string_value(content), json_string_length(content), &error) == WHIT_OK;
    if (ok)
        whit_buf_append_str(result, "1 file staged");
    else
        whit_buf_printf(result, "error: %s", error.message);
    return ok;
}

/* ---- run ------------------------------------------------------------------------------------ */

bool whit_tool_reason(whit_buf *reason, const char *begin, const char *text)
{
    return strlen(text) <= REASON_MAX && whit_buf_append_str(reason, begin) &&
        whit_plain_show(text, strlen(text), WHIT_PLAIN_NAME, reason) && reason->size_bytes <= REASON_MAX + 200 &&
        whit_buf_append(reason, "", 1);
}

/* Asks the person about an action outside the sandbox. If the answer is no, returns false, and `result` gets the
 * reason. */
static bool is_agreed(const whit_tool_place *place, const char *begin, const char *text, const char *not_done,
                      whit_buf *result)
{
    whit_buf reason = {0};
    bool is_long = !whit_tool_reason(&reason, begin, text);
    if (place->why) place->why->size_bytes = 0;
    bool yes = !is_long && !place->is_alone && place->agreed(place->user, whit_chars(&reason), 0) &&
        !whit_flag_is_set(place->cancel);
    if (!yes) {
        const char *why = "refused by the person";
        if (is_long)
            why = "it is too long for a person to be asked about";
        else if (place->is_alone)
            why = "refused, since nobody is there to agree";
        whit_buf_printf(result, "%s: %s", not_done, why);
    }
    if (!yes && !is_long && !place->is_alone && place->why && place->why->size_bytes)
        whit_buf_printf(result, ", with the answer: %.*s", (int)place->why->size_bytes, whit_chars(place->why));
    whit_buf_free(&reason);
    return yes;
}

/* Asks about a command outside of the sandbox. It would run on the changes of the same answer, so they are shown
 * first. */
static bool may_run_outside(const whit_tool_place *place, const char *line, whit_buf *result)
{
    static const char begin[] = "outside the sandbox it would run: ";
    whit_error error;
    whit_buf reason = {0};
    const bool is_asked = !place->is_alone && whit_tool_reason(&reason, begin, line);
    whit_buf_free(&reason);
    whit_changes_settle(place->staged);
    for (size_t i = 0; is_asked && i < whit_changes_count(place->staged); i++)
        if (place->show(place->user, whit_changes_at(place->staged, i), &error) != WHIT_OK) {
            whit_buf_printf(result, "the command was not run: %s", error.message);
            return false;
        }
    return is_agreed(place, begin, line, "the command was not run", result);
}

static void tool_run(const whit_tool_place *place, const json_t *arguments, whit_buf *result)
{
    const char *line = json_string_value(json_object_get(arguments, "command"));
    const json_t *seconds = json_object_get(arguments, "seconds");
    json_int_t limit = json_is_integer(seconds) ? json_integer_value(seconds) : 0;
    whit_sandbox_result ran = {0};
    whit_error error;
    const char *lacks = whit_runner_lacks(place->runner);
    if (limit < 0 || limit > 3600) {
        whit_buf_append_str(result, "error: run: 'seconds' must be 1 to 3600");
        return;
    }
    if (place->runner->no_sandbox) {
        if (!may_run_outside(place, line, result)) return;
    } else if (lacks) {
        whit_buf_printf(result, "error: commands are not run: %s", lacks);
        whit_runner_tell_lack(place->runner, lacks);
        return;
    }
    if (whit_runner_run(place->runner, "run", place->staged, line, (uint32_t)limit, &ran, &error) == WHIT_OK)
        whit_runner_tell(&ran, WHIT_TOOL_RESULT_BYTES - 4096, result);
    else
        whit_buf_printf(result, "error: %s", error.message);
    whit_sandbox_result_free(&ran);
}

/* ---- running a call and describing it ------------------------------------------------------- */

/* Checks a call's arguments against the tool's parameters: required arguments must be present, and all must have the
 * right type. If not, returns false, and `result` gets the reason. */
static bool check_arguments(const struct tool *tool, const json_t *arguments, whit_buf *result)
{
    for (const char *at = tool->parameters; *at; at += strcspn(at, " "), at += *at == ' ') {
        char name[32], type[32];
        if (sscanf(at, "%31[a-z]:%31[a-z]", name, type) != 2) break;
        const json_t *value = json_object_get(arguments, name);
        bool may_miss = memchr(at, '?', strcspn(at, " ")) != NULL;
        if (may_miss && (!value || json_is_null(value))) continue;
        if (strcmp(type, "string") == 0 ? json_is_string(value) : json_is_integer(value)) continue;
        whit_buf_printf(result, "error: %s: '%s' must be a%s %s", tool->name, name, *type == 'i' ? "n" : "", type);
        return false;
    }
    return true;
}

/* Runs a tool of an MCP server. Such a tool runs outside the sandbox, so a person is asked and shown all arguments,
 * unless the configuration lets the calls of the server pass (is_red is false). In a plan it asks about these, too,
 * because they may write. */
static void call_server(const whit_tool_place *place, const char *name, bool is_red, const char *text, whit_buf *result)
{
    json_error_t wrong;
    char begin[200];
    json_t *arguments = json_loads(*text ? text : "{}", JSON_REJECT_DUPLICATES, &wrong);
    char *shown = arguments ? json_dumps(arguments, JSON_COMPACT) : NULL;
    /* the name of the tool does not tell it: an editor may name a server as the configuration does */
    const char *whose =
        whit_mcp_is_editors(place->mcp, name) ? "the tool of a server that the editor names" : "a server's tool";
    snprintf(begin, sizeof begin, "%s, outside the sandbox: %.120s ", whose, name);
    if (!json_is_object(arguments) || !shown)
        whit_buf_printf(result, "error: the arguments of %s are not a JSON object", name);
    else if ((!is_red && !place->only_reads) || is_agreed(place, begin, shown, "the tool was not called", result))
        whit_mcp_call(place->mcp, name, arguments, result);
    free(shown);
    json_decref(arguments);
}

/* How a call is described to a person: a verb, the argument that follows it, and the words used if that argument is
 * missing. */
static const struct {
    const char *tool, *verb, *argument, *without;
} deeds[] = {
    {"read", "reads", "path", "a file"},
    {"list", "lists", "path", "the project"},
    {"grep", "searches for", "pattern", "a pattern"},
    {"patch_file", "patches", "path", "files"},
    {"write", "writes", "path", "a file"},
    {"graph", "asks the code graph for", "query", "something"},
    {"ask", "asks you", NULL, NULL},
    {WHIT_TOOL_AGENT, "lets another agent", "task", "do a part"},
    {"run", "runs", "command", "a command"},
};

/* Appends the second argument of the tools that have one: lines (read), folder (grep) or name (graph). */
static void tell_rest(const char *tool, const json_t *arguments, whit_buf *line)
{
    const char *name = json_string_value(json_object_get(arguments, "name")),
               *path = json_string_value(json_object_get(arguments, "path"));
    const json_t *first = json_object_get(arguments, "first"), *last = json_object_get(arguments, "last");
    if (!strcmp(tool, "graph") && name) whit_buf_printf(line, " of %s", name);
    if (!strcmp(tool, "grep") && path && *path) whit_buf_printf(line, " in %s", path);
    if (strcmp(tool, "read") != 0) return;
    if (json_is_integer(first) && json_is_integer(last))
        whit_buf_printf(line, ", lines %lld to %lld", (long long)json_integer_value(first),
                        (long long)json_integer_value(last));
    else if (json_is_integer(first))
        whit_buf_printf(line, " from line %lld", (long long)json_integer_value(first));
}

void whit_tool_tell(const char *name, const char *arguments_text, char line[WHIT_TOOL_LINE_BYTES])
{
    whit_buf text = {0}, shown = {0};
    json_t *arguments = json_loads(arguments_text, JSON_REJECT_DUPLICATES, NULL);
    size_t i = 0;
    while (i < sizeof deeds / sizeof *deeds && strcmp(deeds[i].tool, name) != 0) i++;
    if (i < sizeof deeds / sizeof *deeds) {
        const char *what = deeds[i].argument ? json_string_value(json_object_get(arguments, deeds[i].argument)) : NULL;
        if (!what || !*what) what = deeds[i].without;
        whit_buf_printf(&text, "%s%s%s", deeds[i].verb, what ? " " : "", whit_or_empty(what));
        tell_rest(name, arguments, &text);
    } else {
        whit_buf_printf(&text, "calls %.60s", name);
    }
    size_t n = whit_utf8_cut(whit_chars(&text), text.size_bytes, WHIT_TOOL_LINE_BYTES - 24);
    bool ok = text.size_bytes && whit_plain_show(whit_chars(&text), n, WHIT_PLAIN_NAME, &shown);
    size_t n_shown = ok ? whit_utf8_cut(whit_chars(&shown), shown.size_bytes, WHIT_TOOL_LINE_BYTES - 8) : 0;
    const char *rest = n < text.size_bytes || n_shown < shown.size_bytes ? "..." : "";
    snprintf(line, WHIT_TOOL_LINE_BYTES, "%.*s%s", (int)n_shown, ok ? whit_chars(&shown) : "", rest);
    whit_buf_free(&shown);
    whit_buf_free(&text);
    json_decref(arguments);
}

bool whit_tool_call(const whit_tool_place *place, const char *name, const char *arguments_text, whit_buf *result)
{
    size_t i = 0;
    json_error_t wrong;
    bool stages = false, is_red;
    if (place->mcp && whit_mcp_has(place->mcp, name, &is_red)) {
        call_server(place, name, is_red, arguments_text, result);
        return false;
    }
    const size_t n_tools = place->runner ? N_TOOLS : TOOL_RUN;
    while (i < n_tools && strcmp(name, tools[i].name) != 0) i++;
    if (i == n_tools) {
        whit_buf_printf(result, "error: there is no tool '%.60s'; there are", name);
        for (i = 0; i < n_tools; i++) whit_buf_printf(result, "%s %s", i ? "," : "", tools[i].name);
        return false;
    }
    json_t *arguments = json_loads(*arguments_text ? arguments_text : "{}", JSON_REJECT_DUPLICATES, &wrong);
    if (!json_is_object(arguments)) {
        whit_buf_printf(result, "error: the arguments of %s are not a JSON object: %s", name,
                        arguments ? "they are another JSON value" : wrong.text);
    } else if (check_arguments(&tools[i], arguments, result)) {
        const char *path = json_string_value(json_object_get(arguments, "path"));
        switch (i) {
        case TOOL_READ: tool_read(place, arguments, result); break;
        case TOOL_LIST: tool_walk(place, arguments, false, result); break;
        case TOOL_GREP: tool_walk(place, arguments, true, result); break;
        case TOOL_PATCH: {
            const json_t *patch = json_object_get(arguments, "patch");
            stages = whit_tool_patch(place, json_string_value(patch), json_string_length(patch), path, result);
            break;
        }
        case TOOL_WRITE: stages = tool_write(place, arguments, result); break;
        case TOOL_GRAPH:
            whit_ask_graph(place->project, json_string_value(json_object_get(arguments, "query")),
                           json_string_value(json_object_get(arguments, "name")), result);
            break;
        case TOOL_AGENT:
            whit_buf_append_str(result, "error: an agent that another agent started cannot start agents");
            break;
        case TOOL_RUN: tool_run(place, arguments, result); break;
        default:
            if (!place->ask(place->user, json_string_value(json_object_get(arguments, "question")), result))
                whit_buf_append_str(result, "error: nobody is there to answer");
        }
    }
    json_decref(arguments);
    return stages;
}
