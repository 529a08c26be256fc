/* SPDX-License-Identifier: MIT
 * Parses a call's arguments by the verb's table. Each mistake is reported in one line with a hint. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/habits.h"

const cli_option *cli_verb_option(const cli_verb *verb, size_t i, size_t *group_offset)
{
    for (const cli_group *group = verb->groups; group < verb->groups + CLI_GROUPS_MAX && group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (i-- == 0) {
                if (group_offset) *group_offset = group->offset;
                return option;
            }
    return NULL;
}

const char *cli_option_name(const char *names, char *name, size_t name_bytes)
{
    if (!names) return NULL;
    names += strspn(names, ", ");
    size_t n = strcspn(names, ",");
    if (!n || n >= name_bytes) return NULL;
    memcpy(name, names, n);
    name[n] = 0;
    return names + n;
}

/* Returns the edit distance of two short words (Wagner and Fischer, 1974), for suggestions. Exchanging two adjacent
 * letters is one edit (Damerau, 1964). */
static size_t edits(const char *a, const char *b)
{
    enum { MOST = 32 };
    size_t n_a = strlen(a), n_b = strlen(b), row[MOST + 1], before[MOST + 1] = {0}, last[MOST + 1];
    if (n_a > MOST || n_b > MOST) return MOST;
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        memcpy(last, row, sizeof last);
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            row[j] = best;
            diagonal = above;
        }
        memcpy(before, last, sizeof before);
    }
    return row[n_b];
}

/* Returns whether `word` contains `part`; upper and lower case are equal. */
static bool has_part(const char *word, const char *part)
{
    const size_t n = strlen(part);
    for (; n && strlen(word) >= n; word++)
        if (strncasecmp(word, part, n) == 0) return true;
    return false;
}

bool cli_is_near_name(const char *given, const char *name)
{
    const size_t n = strlen(given);
    return (n > 1 && has_part(name, given)) || (n > 2 && has_part(given, name)) || edits(given, name) < (n > 4 ? 3 : 2);
}

const char *cli_near_commands(const char *given, const char *const *commands, char *line, size_t room)
{
    size_t n = 0;
    for (line[0] = 0; *commands; commands++) {
        if (!cli_is_near_name(given, *commands + 1)) continue; /* compares the name without its '/' */
        const int more = snprintf(line + n, room - n, "%s%s", n ? ", " : "; did you mean ", *commands);
        if (more < 0 || (size_t)more >= room - n) break;
        n += (size_t)more;
    }
    line[n] = 0;
    return line;
}

const cli_verb *cli_verb_guess(const char *word)
{
    const cli_verb *closest = NULL;
    size_t fewest = strlen(word) > 4 ? 3 : 2; /* a word at this distance is not similar any more */
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++)
        if (edits(word, (*verb)->name) < fewest) {
            fewest = edits(word, (*verb)->name);
            closest = *verb;
        }
    return closest;
}

static int refuse_unknown(const cli_call *call, const char *given)
{
    char name[32], closest[32] = "";
    size_t n_given = strlen(given);
    size_t fewest = 0;
    if (n_given > 4)
        fewest = 3;
    else if (n_given > 2)
        /* `fewest` stays 0 for an option of one letter, such as "-x": nothing is suggested for it */
        fewest = 2;
    const cli_option *option;
    for (size_t i = 0; (option = cli_verb_option(call->verb, i, NULL)); i++)
        for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));)
            if (edits(given, name) < fewest) {
                fewest = edits(given, name);
                strcpy(closest, name);
            }
    if (closest[0]) return cli_fail(call, CLI_USAGE, "unknown option %s; did you mean %s?", given, closest);
    return cli_fail(call, CLI_USAGE, "unknown option %s; 'whit %s --help' lists them", given, call->verb->name);
}

static const cli_option *find_option(const cli_verb *verb, const char *given, size_t n_given, size_t *group_offset)
{
    char name[32];
    const cli_option *option;
    for (size_t i = 0; (option = cli_verb_option(verb, i, group_offset)); i++)
        for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));)
            if (strlen(name) == n_given && !memcmp(name, given, n_given)) return option;
    return NULL;
}

static int refuse_value(const cli_call *call, const char *name, const cli_option *option, const char *text)
{
    enum { LARGEST_SAID = 1000000 }; /* larger bounds only protect against overflow and are not mentioned to users */
    if (option->kind == CLI_CHOICE)
        return cli_fail(call, CLI_USAGE, "%s takes one of %s, not '%s'", name, option->argument, text);
    const char *what = option->kind == CLI_REAL ? "a number" : "a whole number";
    char bounds[80] = "";
    if (option->min != option->max && option->max < LARGEST_SAID)
        snprintf(bounds, sizeof bounds, " from %.10g to %.10g", option->min, option->max);
    else if (option->min != option->max && option->min > -LARGEST_SAID)
        snprintf(bounds, sizeof bounds, " of at least %.10g", option->min);
    return cli_fail(call, CLI_USAGE, "%s takes %s%s, not '%s': %s", name, what, bounds, text, option->help);
}

/* Parses `text` by the option's kind and stores the result in *value; returns false if it is malformed or out of
 * bounds. */
static bool store(const cli_option *option, const char *text, void *value)
{
    bool bounded = option->min != option->max;
    char *end;
    errno = 0;
    switch (option->kind) {
    case CLI_FLAG: *(bool *)value = true; return true;
    case CLI_FILE:
        /* converts the path in place (only on Windows), which is allowed: text is an argument of this process, or the
         * copy of an environment variable that getenv returns there */
        whit_path_adopt((char *)(uintptr_t)text);
    /* fall through */
    case CLI_TEXT: *(const char **)value = text; return true;
    case CLI_COUNT:
    case CLI_AUTO:
    case CLI_INT:
    case CLI_SEED: {
        long long number = strtoll(text, &end, 10);
        if (end == text || *end || errno || isspace((unsigned char)*text)) return false;
        if (option->kind == CLI_AUTO && number == -1) number = 0;
        if (bounded && ((double)number < option->min || (double)number > option->max)) return false;
        if (option->kind == CLI_SEED) {
            *(int64_t *)value = number;
        } else if (option->kind == CLI_COUNT || option->kind == CLI_AUTO) {
            if (number < 0 || number > UINT32_MAX) return false;
            *(uint32_t *)value = (uint32_t)number;
        } else {
            if (number < INT32_MIN || number > INT32_MAX) return false;
            *(int32_t *)value = (int32_t)number;
        }
        return true;
    }
    case CLI_REAL: {
        double number;
        if (!whit_parse_f64(text, &number) || !isfinite((float)number)) return false;
        if (bounded && (number < option->min || number > option->max)) return false;
        *(float *)value = (float)number;
        return true;
    }
    case CLI_CHOICE: {
        int index = 0;
        size_t n_text = strlen(text);
        for (const char *word = option->argument;; index++) {
            size_t n = strcspn(word, "|");
            if (n == n_text && !memcmp(word, text, n)) {
                *(int *)value = index;
                return true;
            }
            if (!word[n]) return false;
            word += n + 1;
        }
    }
    case CLI_REPEAT: {
        cli_list *list = value;
        const char **items = realloc(list->items, (list->n + 1) * sizeof *items);
        if (!items) return false;
        list->items = items;
        list->items[list->n++] = text;
        return true;
    }
    }
    return false;
}

int cli_set_option(const cli_call *call, const cli_option *options, const char *given, const char *text, void *values)
{
    char name[32];
    for (const cli_option *option = options; option->names; option++)
        for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));) {
            const char *bare = name + strspn(name, "-");
            size_t i = 0;
            while (given[i] && (given[i] == bare[i] || (given[i] == '_' && bare[i] == '-'))) i++;
            if (given[i] || bare[i]) continue;
            /* For these kinds, the value would point into the typed line, which is freed earlier. */
            if (option->kind == CLI_FLAG || option->kind == CLI_TEXT || option->kind == CLI_FILE ||
                option->kind == CLI_REPEAT)
                return -1;
            return store(option, text, (char *)values + option->offset) ? CLI_OK
                                                                        : refuse_value(call, given, option, text);
        }
    return -1;
}

bool cli_verb_takes_model(const cli_verb *verb)
{
    return !verb->n_max && find_option(verb, "-m", 2, NULL);
}

/* Returns the options that a verb's operands set, in this order. For a verb that is not in this table: -m if the verb
 * takes a model (cli_verb_takes_model), otherwise "". */
static const char *operand_options(const cli_verb *verb)
{
    static const struct {
        const char *verb, *options;
    } rows[] = {{"distill", "--teacher"}, {"perplexity", "-m, -f"}, {"tokenize", "-m, -p"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].verb, verb->name)) return rows[i].options;
    return cli_verb_takes_model(verb) ? "-m" : "";
}

/* Uses the first operands as values of options that were not given; returns the number of operands used. */
static size_t take_operands(cli_call *call)
{
    size_t n = 0, group_offset;
    char name[32];
    if (call->verb->n_max) return 0;
    for (const char *at = operand_options(call->verb);
         n < call->n_operands && (at = cli_option_name(at, name, sizeof name));) {
        const cli_option *option = find_option(call->verb, name, strlen(name), &group_offset);
        void *value = (char *)call->values + group_offset + option->offset;
        bool is_set = option->kind == CLI_REPEAT ? false : cli_was_given(call, name);
        if (!is_set && store(option, call->operands[n], value)) n++;
    }
    return n;
}

static int check_operands(cli_call *call)
{
    const cli_verb *verb = call->verb;
    if (call->n_operands >= verb->n_min && call->n_operands <= verb->n_max) return CLI_OK;
    const size_t n_taken = take_operands(call);
    if (n_taken && n_taken == call->n_operands) return CLI_OK;
    /* like cp, the verb accepts an input and an output: whit compress IN OUT */
    const bool may_be_output = verb->n_max == 1 && call->n_operands == 2 && find_option(verb, "--output", 8, NULL) &&
        !cli_was_given(call, "--output");
    if (may_be_output)
        return cli_fail(call, CLI_USAGE, "unexpected argument '%s'; an output is given by -o: whit %s %s -o %s",
                        call->operands[1], verb->name, call->operands[0], call->operands[1]);
    if (call->n_operands > verb->n_max)
        return cli_fail(call, CLI_USAGE, "unexpected argument '%s'; see 'whit %s --help'",
                        call->operands[n_taken ? n_taken : verb->n_max], verb->name);
    return cli_fail(call, CLI_USAGE, "usage: whit %s %s [options]; see 'whit %s --help'", verb->name, verb->operands,
                    verb->name);
}

/* Skips an option of another program that is not needed here. Returns true, with *i at the option's last argument, if
 * the option is such a one. */
static bool pass_over(const cli_call *call, const cli_habit *habit, bool has_text, int *i, int argc, char **argv)
{
    if (!cli_habit_is_needless(habit, call->verb->name)) return false;
    cli_note("%s is not needed: %s", argv[*i], habit->line);
    if (!has_text && *i + 1 < argc && cli_habit_takes(habit, argv[*i + 1])) ++*i;
    return true;
}

/* Makes the name of an option's environment variable from its last name: "WHIT_API_KEY_FILE" for "--api-key-file". */
static void variable_name(const cli_option *option, char *variable, size_t variable_bytes)
{
    char name[32] = "";
    for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));) {
    }
    const char *bare = name + strspn(name, "-");
    snprintf(variable, variable_bytes, "WHIT_%s", bare);
    for (char *c = variable + 5; *c; c++) {
        if (*c == '-')
            *c = '_';
        else if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 32);
    }
}

bool cli_was_given(const cli_call *call, const char *name)
{
    const cli_option *option, *wanted = find_option(call->verb, name, strlen(name), NULL);
    for (size_t i = 0; i < CLI_OPTIONS_MAX && (option = cli_verb_option(call->verb, i, NULL)); i++)
        if (option == wanted) return call->given[i];
    return false;
}

/* Reads environment variables for the options that were not given; "0" does not set a flag, and an operand takes
 * precedence over WHIT_MODEL. Returns an exit status. */
static int take_variables(cli_call *call)
{
    size_t group_offset;
    const cli_option *option;
    bool has_operand = cli_verb_takes_model(call->verb) && call->n_operands == 1;
    for (size_t i = 0; i < CLI_OPTIONS_MAX && (option = cli_verb_option(call->verb, i, &group_offset)); i++) {
        char variable[64];
        variable_name(option, variable, sizeof variable);
        const char *text = getenv(variable);
        bool is_model = has_operand && !strcmp(variable, "WHIT_MODEL");
        if (call->given[i] || is_model || !text || !*text || (option->kind == CLI_FLAG && !strcmp(text, "0"))) continue;
        if (!store(option, text, (char *)call->values + group_offset + option->offset))
            return refuse_value(call, variable, option, text);
    }
    return CLI_OK;
}

int cli_parse(cli_call *call, int argc, char **argv)
{
    const cli_verb *verb = call->verb;
    call->values = malloc(verb->values_bytes ? verb->values_bytes : 1);
    call->operands = malloc(((size_t)argc + 1) * sizeof *call->operands);
    if (!call->values || !call->operands) return cli_fail(call, CLI_LIMIT, "not enough memory for the command line");
    if (verb->values_bytes) memcpy(call->values, verb->defaults, verb->values_bytes);

    bool options_over = false;
    for (int i = 0; i < argc; i++) {
        char *given = argv[i];
        if (options_over || given[0] != '-' || !given[1]) {
            if (whit_path_is_absolute(given) || !strpbrk(given, " \n")) whit_path_adopt(given);
            call->operands[call->n_operands++] = given;
            continue;
        }
        if (!strcmp(given, "--")) {
            options_over = true;
            continue;
        }
        if (!strcmp(given, "--help") || !strcmp(given, "-h")) {
            call->wants_help = true;
            return CLI_OK;
        }
        size_t n_name = given[1] == '-' ? strcspn(given, "=") : strlen(given);
        size_t group_offset;
        const cli_option *option = find_option(verb, given, n_name, &group_offset);
        if (!option) {
            const cli_habit *habit = cli_habit_option(given, n_name);
            bool has_text = given[n_name];
            given[n_name] = 0;
            if (!habit) return refuse_unknown(call, given);
            if (!pass_over(call, habit, has_text, &i, argc, argv))
                return cli_fail(call, CLI_USAGE, "there is no option %s: %s", given, habit->line);
            continue;
        }
        const char *text = given[n_name] ? given + n_name + 1 : NULL;
        given[n_name] = 0;
        if (option->kind == CLI_FLAG) {
            if (text) return cli_fail(call, CLI_USAGE, "%s takes no value", given);
        } else if (!text) {
            if (i + 1 >= argc)
                return cli_fail(call, CLI_USAGE, "%s needs a value: %s %s", given, given, option->argument);
            text = argv[++i];
        }
        if (!store(option, text, (char *)call->values + group_offset + option->offset))
            return refuse_value(call, given, option, text);
        const cli_option *other;
        for (size_t k = 0; k < CLI_OPTIONS_MAX && (other = cli_verb_option(verb, k, NULL)); k++)
            call->given[k] |= other == option;
    }
    int status = verb->takes_variables ? take_variables(call) : CLI_OK;
    return status == CLI_OK ? check_operands(call) : status;
}

void cli_call_free(cli_call *call)
{
    size_t group_offset;
    const cli_option *option;
    for (size_t i = 0; call->values && (option = cli_verb_option(call->verb, i, &group_offset)); i++)
        if (option->kind == CLI_REPEAT)
            free(((cli_list *)(void *)((char *)call->values + group_offset + option->offset))->items);
    free(call->values);
    free(call->operands);
    call->values = NULL;
    call->operands = NULL;
}
