/* SPDX-License-Identifier: MIT
 * Sets keys and settings: the defaults, and those of the user's file. */
#include "editor/state.h"

#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define CONFIG_BYTES (1u << 20)
#define N_BINDINGS   1024

bool ed_bind(ed *e, whit_key key, int command, bool is_own)
{
    for (size_t i = 0; i < e->n_bindings; i++)
        if (e->bindings[i].key.code == key.code && e->bindings[i].key.mods == key.mods) {
            e->bindings[i].command = command;
            e->bindings[i].is_own = is_own;
            return true;
        }
    if (!e->bindings && !(e->bindings = calloc(N_BINDINGS, sizeof *e->bindings))) return false;
    if (e->n_bindings == N_BINDINGS) return false;
    e->bindings[e->n_bindings++] = (struct ed_binding){{key.code, key.mods, 0, 0}, command, is_own};
    return true;
}

int ed_config_command(const ed *e, whit_key key)
{
    for (size_t i = 0; i < e->n_bindings; i++)
        if (e->bindings[i].key.code == key.code && e->bindings[i].key.mods == key.mods) return e->bindings[i].command;
    return -1;
}

bool ed_config_is_own(const ed *e, whit_key key)
{
    for (size_t i = 0; i < e->n_bindings; i++)
        if (e->bindings[i].key.code == key.code && e->bindings[i].key.mods == key.mods) return e->bindings[i].is_own;
    return false;
}

static void bind_usual(ed *e)
{
    for (size_t i = 0; i < ed_n_commands; i++)
        for (const char *at = ed_commands[i].keys; *at;) {
            size_t n = strcspn(at, " ");
            whit_key key;
            if (whit_key_parse(at, n, &key)) ed_bind(e, key, (int)i, false);
            at += n;
            at += strspn(at, " ");
        }
}

static bool is_yes(const char *value, bool *result)
{
    *result = !strcmp(value, "yes");
    return *result || !strcmp(value, "no");
}

/* Sets one option. If its name or value is invalid, returns false, and `why` gets the reason. */
static bool set_option(ed *e, const char *name, const char *value, char *why, size_t why_bytes)
{
    char *behind;
    unsigned long number = strtoul(value, &behind, 10);
    bool is_number = *value && !*behind, ok = true;
    const char *wanted = "yes or no";
    if (!strcmp(name, "wrap"))
        ok = is_yes(value, &e->settings.wrap);
    else if (!strcmp(name, "line_numbers"))
        ok = is_yes(value, &e->settings.numbers);
    else if (!strcmp(name, "pairs"))
        ok = is_yes(value, &e->settings.pairs);
    else if (!strcmp(name, "mouse"))
        ok = is_yes(value, &e->settings.mouse);
    else if (!strcmp(name, "suggest")) {
        bool yes = false;
        ok = is_yes(value, &yes);
        e->suggest = yes ? ED_SUGGEST_ANYWHERE : ED_SUGGEST_NEVER;
    } else if (!strcmp(name, "editorconfig"))
        ok = is_yes(value, &e->settings.editorconfig);
    else if (!strcmp(name, "text_width")) {
        wanted = "a number from 20 to 1000";
        if ((ok = is_number && number >= 20 && number <= 1000)) e->settings.text_columns = (int)number;
    } else if (!strcmp(name, "tab_width")) {
        wanted = "a number from 1 to 16";
        if ((ok = is_number && number >= 1 && number <= 16)) e->settings.tab_columns = (int)number;
    } else if (!strcmp(name, "indent")) {
        wanted = "auto, tabs, or a number from 1 to 16";
        if (!strcmp(value, "auto"))
            e->settings.indent = 0;
        else if (!strcmp(value, "tabs"))
            e->settings.indent = -1;
        else if ((ok = is_number && number >= 1 && number <= 16))
            e->settings.indent = (int)number;
    } else if (!strcmp(name, "keys")) {
        wanted = "usual or vi";
        ok = !strcmp(value, "vi") || !strcmp(value, "usual");
        e->vi.on = !strcmp(value, "vi");
    } else if (!strcmp(name, "theme")) {
        wanted = "auto, dark, light or plain";
        ok = whit_theme_named(value, &e->settings.theme);
    } else if (!strcmp(name, "find_servers")) {
        static const char *const values[] = {"ask", "no", "yes"};
        wanted = "ask, yes or no";
        ok = false;
        for (int i = 0; i < 3; i++)
            if (!strcmp(value, values[i])) ok = true, e->settings.find_servers = i;
    } else if (!strcmp(name, "make")) {
        wanted = "a command";
        free(e->settings.make);
        ok = (e->settings.make = *value ? strdup(value) : NULL) != NULL;
    } else if (!strncmp(name, "model", 5)) {
        char **kept = NULL;
        if (!strcmp(name + 5, ""))
            kept = &e->panel.model;
        else if (!strcmp(name + 5, "_url"))
            kept = &e->panel.url;
        else if (!strcmp(name + 5, "_name"))
            kept = &e->panel.name;
        else if (!strcmp(name + 5, "_key_file"))
            kept = &e->panel.key_file;
        if (!kept) {
            snprintf(why, why_bytes, "there is no option '%.40s'; docs/use/editor.md lists them", name);
            return false;
        }
        wanted = "a value";
        free(*kept);
        *kept = *value ? strdup(value) : NULL;
        ok = *kept != NULL;
    } else {
        snprintf(why, why_bytes, "there is no option '%.40s'; docs/use/editor.md lists them", name);
        return false;
    }
    if (!ok) snprintf(why, why_bytes, "%s must be %s, not '%.40s'", name, wanted, value);
    return ok;
}

static bool read_line(ed *e, char *line, char *why, size_t why_bytes)
{
    char *name = line + strspn(line, " \t");
    size_t n = strlen(name);
    while (n && isspace((uint8_t)name[n - 1])) name[--n] = 0;
    if (!*name || *name == '#') return true;
    if (!strncmp(name, "bind ", 5)) {
        char *key_name = name + 5 + strspn(name + 5, " "), *command = key_name + strcspn(key_name, " ");
        if (*command) *command++ = 0;
        command += strspn(command, " ");
        whit_key key;
        int number = !strcmp(command, "none") ? -1 : ed_command_find(command);
        if (!whit_key_parse(key_name, strlen(key_name), &key)) {
            snprintf(why, why_bytes, "'%.40s' is not a key; keys are written as C-s, M-Left or F5", key_name);
            return false;
        }
        if (number < 0 && strcmp(command, "none")) {
            snprintf(why, why_bytes, "there is no command '%.40s'; F1 lists them", command);
            return false;
        }
        return ed_bind(e, key, number, true);
    }
    if (ed_vi_map(e, name, why, why_bytes)) return !*why;
    if (!strncmp(name, "server ", 7)) {
        char *language = name + 7 + strspn(name + 7, " "), *command = language + strcspn(language, " ");
        if (*command) *command++ = 0;
        command += strspn(command, " ");
        bool known = false;
        char known_name[32];
        for (size_t i = 0; whit_syntax_language(i, known_name, sizeof known_name); i++)
            known = known || !strcmp(known_name, language);
        if (known && *command && ed_language_add(e, language, command)) return true;
        if (!known)
            snprintf(why, why_bytes, "there is no language '%.40s'; the status line shows their names", language);
        else
            snprintf(why, why_bytes,
                     *command ? "at most 16 servers can be named"
                              : "server %.40s needs a command, as in 'server c clangd'",
                     language);
        return false;
    }
    if (!strncmp(name, "color ", 6)) {
        char *style = name + 6 + strspn(name + 6, " "), *look = style + strcspn(style, " \t");
        if (*look) *look++ = 0;
        return whit_theme_set(&e->settings.theme, style, look, why, why_bytes);
    }
    char *value = strchr(name, '=');
    if (!value) {
        snprintf(why, why_bytes,
                 "a line is 'option = value', 'bind KEY COMMAND', 'color STYLE LOOK' or 'server LANGUAGE COMMAND'");
        return false;
    }
    char *name_end = value++;
    while (name_end > name && isspace((uint8_t)name_end[-1])) name_end--;
    *name_end = 0;
    value += strspn(value, " \t");
    return set_option(e, name, value, why, why_bytes);
}

/* Binds the usual keys, then applies the settings in `text` or, if `text` is NULL, in the file `path`, if that exists.
 * The first invalid line is reported with its reason, the others by their numbers; valid lines are still applied. */
void ed_config_read(ed *e, const char *text, const char *path)
{
    whit_buf file = {0};
    whit_error error;
    bind_usual(e);
    if (!text) {
        if (!path || !whit_path_exists(path)) return;
        if (whit_read_file(path, CONFIG_BYTES, &file, &error) != WHIT_OK || !whit_buf_append(&file, "", 1)) {
            if (!file.failed) ed_complain_error(e, &error);
            whit_buf_free(&file);
            return;
        }
        text = whit_chars(&file) + (whit_file_has_mark(file.data, file.size_bytes) ? 3 : 0);
    }
    unsigned number = 1, n_wrong = 0;
    char others[120] = ""; /* line numbers of all errors after the first, such as "7, 9" */
    for (const char *at = text; *at; number++) {
        char line[512], why[200] = "";
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", n < sizeof line ? (int)n : (int)sizeof line - 1, at);
        const bool is_long = n >= sizeof line && line[strspn(line, " \t")] != '#';
        if (is_long) snprintf(why, sizeof why, "the line is longer than %zu bytes, the limit", sizeof line - 1);
        if (is_long || !read_line(e, line, why, sizeof why)) {
            size_t n_others = strlen(others);
            if (!n_wrong++)
                ed_complain(e, "%s:%u: %s", path ? path : "configuration", number, why);
            else
                snprintf(others + n_others, sizeof others - n_others, "%s%u", n_others ? ", " : "", number);
        }
        at += n + (at[n] == '\n');
    }
    if (n_wrong > 1) {
        size_t n = strlen(e->message);
        snprintf(e->message + n, sizeof e->message - n, " (and line%s %s)", n_wrong > 2 ? "s" : "", others);
    }
    whit_buf_free(&file);
}
