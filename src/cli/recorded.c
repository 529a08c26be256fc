/* SPDX-License-Identifier: MIT */
#include "cli/recorded.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

/* Options that do not change the result: the file's name and layout, what is measured or printed, how fast the work is
 * done, and whether an interrupted run is resumed. */
static const char *const neutral[] = {
    "--output",   "--split-max-size", "--append",     "--report",           "--log",     "--plot",
    "--held-out", "--held-out-every", "--checkpoint", "--held-out-windows", "--verbose", "--checkpoint-seconds",
    "--json",     "--threads",        "--resume",     "--no-cache",         "--strict"};

static bool has_name(const cli_option *option, const char *wanted)
{
    char name[32];
    for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));)
        if (!strcmp(name, wanted)) return true;
    return false;
}

static bool is_neutral(const cli_option *option)
{
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
        if (has_name(option, neutral[i])) return true;
    return false;
}

/* Writes the first name of the option that begins with two dashes; if no name does, its last name. */
static void long_name(const cli_option *option, char *name, size_t name_bytes)
{
    for (const char *at = option->names; (at = cli_option_name(at, name, name_bytes));)
        if (name[1] == '-') return;
}

static void add_option(const cli_option *option, whit_buf *text)
{
    char name[32] = "";
    long_name(option, name, sizeof name);
    whit_buf_printf(text, " %s", name);
}

/* Appends a value, cut after VALUE_BYTES bytes or before invalid UTF-8; in double quotes if it contains a blank, a line
 * feed or a quote. */
static void add_value(const char *value, whit_buf *text)
{
    enum { VALUE_BYTES = 80 };
    /* only valid UTF-8, since JSON output may show it */
    const int n = (int)whit_utf8_valid_bytes((const uint8_t *)value, strnlen(value, VALUE_BYTES));
    const char *quote = strpbrk(value, " \t\n'\"") ? "\"" : "";
    whit_buf_printf(text, " %s%.*s%s", quote, n, value, quote);
}

/* Returns the beginning of the last name in a path; slashes after it do not count. */
static const char *last_name(const char *path)
{
    size_t n = strlen(path);
    while (n && path[n - 1] == '/') n--;
    while (n && path[n - 1] != '/') n--;
    return path + n;
}

static void add_choice(const cli_option *option, int index, whit_buf *text)
{
    const char *word = option->argument;
    while (index-- > 0) word += strcspn(word, "|") + 1;
    whit_buf_printf(text, " %.*s", (int)strcspn(word, "|"), word);
}

static void add_whole(const cli_option *option, bool is_wanted, int64_t number, whit_buf *text)
{
    if (!is_wanted) return;
    add_option(option, text);
    whit_buf_printf(text, " %" PRId64, number);
}

static void add_real(const cli_option *option, bool is_wanted, double number, whit_buf *text)
{
    if (!is_wanted) return;
    add_option(option, text);
    whit_buf_printf(text, " %.7g", number);
}

/* Appends an option with its value. If the option was not given, appends its default if that is a text other than NULL,
 * a list that is not empty, or a flag that is set; with with_defaults also if it is a seed, a choice, or a number that
 * is not 0 (for a real number: above 0). */
static void add_given(const cli_option *option, const void *value, bool given, bool with_defaults, whit_buf *text)
{
    const bool wanted = given || with_defaults;
    switch (option->kind) {
    case CLI_FLAG:
        if (*(const bool *)value) add_option(option, text);
        break;
    case CLI_TEXT:
    case CLI_FILE: {
        const char *word = *(const char *const *)value;
        if (!word) break;
        add_option(option, text);
        add_value(option->kind == CLI_FILE ? last_name(word) : word, text);
        break;
    }
    case CLI_COUNT:
    case CLI_AUTO:
        add_whole(option, given || (wanted && *(const uint32_t *)value), *(const uint32_t *)value, text);
        break;
    case CLI_INT: add_whole(option, given || (wanted && *(const int32_t *)value), *(const int32_t *)value, text); break;
    case CLI_REAL: /* a negative default means that the value depends on other options */
        add_real(option, given || (wanted && *(const float *)value > 0), (double)*(const float *)value, text);
        break;
    case CLI_SEED: add_whole(option, wanted, *(const int64_t *)value, text); break;
    case CLI_CHOICE:
        if (!wanted) break;
        add_option(option, text);
        add_choice(option, *(const int *)value, text);
        break;
    case CLI_REPEAT: {
        const cli_list *list = value;
        for (size_t i = 0; i < list->n; i++) {
            add_option(option, text);
            add_value(strncmp(option->argument, "FILE", 4) ? list->items[i] : last_name(list->items[i]), text);
        }
        break;
    }
    }
}

bool cli_record_command(const cli_call *call, bool with_defaults, const cli_effective *effective, size_t n_effective,
                        whit_buf *text)
{
    const cli_option *option;
    size_t group_offset;
    whit_buf_printf(text, "whit %s", call->verb->name);
    for (size_t i = 0; i < CLI_OPTIONS_MAX && (option = cli_verb_option(call->verb, i, &group_offset)); i++) {
        const cli_effective *computed = effective, *end = effective + n_effective;
        while (computed < end && !has_name(option, computed->name)) computed++;
        if (is_neutral(option) || (computed < end && !computed->value)) continue;
        if (computed < end) {
            add_option(option, text);
            add_value(computed->value, text);
        } else {
            add_given(option, (const char *)call->values + group_offset + option->offset, call->given[i], with_defaults,
                      text);
        }
    }
    return whit_buf_append(text, "", 1);
}
