/* SPDX-License-Identifier: MIT
 * Reads the questions of benchmarks. The prompts equal those of EleutherAI's lm-evaluation-harness, so that results are
 * comparable. */
#include "base/phrase.h"
#include "cli/task.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Returns the four texts joined, which the caller frees; NULL if memory runs out. */
static char *join_texts(const char *a, const char *b, const char *c, const char *d)
{
    size_t n = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;
    char *text = malloc(n);
    if (text) snprintf(text, n, "%s%s%s%s", a, b, c, d);
    return text;
}

static bool add_choice(cli_question *q, char *context, char *choice)
{
    if (!context || !choice || q->n == CLI_CHOICES_MAX) {
        free(context);
        free(choice);
        return false;
    }
    q->context[q->n] = context;
    q->choice[q->n++] = choice;
    return true;
}

/* Returns the value of an integer in [0, 1000) or of a string of one digit; -1 for all others. */
static int number_of(const json_t *value)
{
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        return n >= 0 && n < 1000 ? (int)n : -1;
    }
    const char *text = json_string_value(value);
    return text && text[0] >= '0' && text[0] <= '9' && !text[1] ? text[0] - '0' : -1;
}

/* Removes the marks of WikiHow as the reference harness does: " [title]" becomes ". ", other text in brackets is
 * removed, repeated spaces become one, and spaces and line feeds at both ends are removed. The caller frees the result;
 * NULL if memory runs out. */
static char *without_marks(const char *text)
{
    char *clean = malloc(2 * strlen(text) + 1), *to = clean;
    while (clean && (*text == ' ' || *text == '\n')) text++;
    for (; clean && *text; text++) {
        const char *end = *text == '[' ? strchr(text, ']') : NULL;
        if (strncmp(text, " [title]", 8) == 0) {
            to += sprintf(to, ". ");
            text += 7;
        } else if (end) {
            text = end;
        } else if (*text != ' ' || to == clean || to[-1] != ' ') {
            *to++ = *text;
        }
    }
    while (clean && to > clean && (to[-1] == ' ' || to[-1] == '\n')) to--;
    if (clean) *to = 0;
    return clean;
}

/* Makes the first letter upper case and all others lower case, like Python's capitalize, but only ASCII letters. */
static void capitalise(char *text)
{
    if (*text >= 'a' && *text <= 'z') *text -= 'a' - 'A';
    for (char *c = text; *c && *++c;)
        if (*c >= 'A' && *c <= 'Z') *c += 'a' - 'A';
}

static bool read_hellaswag(cli_question *q, const json_t *o)
{
    const json_t *endings = json_object_get(o, "endings");
    const char *activity = text_of(o, "activity_label"), *a = text_of(o, "ctx_a"), *b = text_of(o, "ctx_b");
    char *second = b ? join_texts(b, "", "", "") : NULL;
    if (second) capitalise(second);
    char *all;
    if (a) {
        const char *colon = activity ? ": " : "";
        all = join_texts(whit_or_empty(activity), colon, a, second && *second ? " " : "");
    } else
        all = join_texts(whit_or_empty(activity), activity ? ": " : "", text_of(o, "ctx"), "");
    char *whole = NULL;
    if (all) whole = join_texts(all, a ? whit_or_empty(second) : "", "", "");
    char *context = whole ? without_marks(whole) : NULL;
    bool ok = context != NULL;
    for (size_t i = 0; ok && i < json_array_size(endings); i++) {
        const char *ending = json_string_value(json_array_get(endings, i));
        char *clean = ending ? without_marks(ending) : NULL;
        ok = clean && add_choice(q, join_texts(context, "", "", ""), join_texts(" ", clean, "", ""));
        free(clean);
    }
    free(second), free(all), free(whole), free(context);
    q->answer = (size_t)number_of(json_object_get(o, "label"));
    return ok;
}

static bool read_arc(cli_question *q, const json_t *o)
{
    const json_t *question = json_object_get(o, "question"), *from = json_is_object(question) ? question : o,
                 *choices = json_object_get(from, "choices");
    const char *stem = json_is_object(question) ? text_of(question, "stem") : json_string_value(question),
               *key = text_of(o, "answerKey");
    bool columns = json_is_object(choices);
    size_t n = json_array_size(columns ? json_object_get(choices, "text") : choices);
    q->answer = SIZE_MAX;
    if (!stem || !key) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = columns ? NULL : json_array_get(choices, i);
        const char *text =
            columns ? json_string_value(json_array_get(json_object_get(choices, "text"), i)) : text_of(one, "text");
        const char *label =
            columns ? json_string_value(json_array_get(json_object_get(choices, "label"), i)) : text_of(one, "label");
        if (!text || !label ||
            !add_choice(q, join_texts("Question: ", stem, "\nAnswer:", ""), join_texts(" ", text, "", "")))
            return false;
        if (strcmp(label, key) == 0) q->answer = i;
    }
    return true;
}

static bool read_piqa(cli_question *q, const json_t *o, int label)
{
    static const char *const keys[] = {"sol1", "sol2"};
    for (int i = 0; i < 2; i++)
        if (!text_of(o, keys[i]) ||
            !add_choice(q, join_texts("Question: ", text_of(o, "goal"), "\nAnswer:", ""),
                        join_texts(" ", text_of(o, keys[i]), "", "")))
            return false;
    q->answer = (size_t)(label >= 0 ? label : number_of(json_object_get(o, "label")));
    return true;
}

/* Reads a question of WinoGrande: each option in turn replaces the blank in the context, and the same text after the
 * blank is scored for both. */
static bool read_winogrande(cli_question *q, const json_t *o)
{
    static const char *const keys[] = {"option1", "option2"};
    const char *sentence = text_of(o, "sentence"), *blank = strchr(sentence, '_');
    if (!blank) return false;
    for (int i = 0; i < 2; i++) {
        const char *option = text_of(o, keys[i]), *rest = blank + 1;
        char *before = strndup(sentence, (size_t)(blank - sentence));
        while (*rest == ' ') rest++;
        bool ok = before && option && add_choice(q, join_texts(before, option, "", ""), join_texts(" ", rest, "", ""));
        free(before);
        if (!ok) return false;
    }
    q->answer = (size_t)number_of(json_object_get(o, "answer")) - 1;
    return true;
}

static bool read_boolq(cli_question *q, const json_t *o)
{
    static const char *const answers[] = {" no", " yes"};
    const json_t *answer = json_object_get(o, "answer");
    for (int i = 0; i < 2; i++) {
        char *first = join_texts(text_of(o, "passage"), "\nQuestion: ", text_of(o, "question"), "?\nAnswer:");
        if (!add_choice(q, first, join_texts(answers[i], "", "", ""))) return false;
    }
    q->answer = json_is_boolean(answer) ? json_is_true(answer) : (size_t)number_of(answer);
    return true;
}

static bool read_own(cli_question *q, const json_t *o)
{
    const json_t *choices = json_object_get(o, "choices");
    for (size_t i = 0; i < json_array_size(choices); i++) {
        const char *choice = json_string_value(json_array_get(choices, i));
        if (!choice || !add_choice(q, join_texts(text_of(o, "context"), "", "", ""), join_texts(" ", choice, "", "")))
            return false;
    }
    q->answer = (size_t)number_of(json_object_get(o, "answer"));
    return true;
}

bool cli_question_read(cli_question *q, const char *line, size_t line_bytes, int label,
                       char reason[CLI_TASK_REASON_BYTES])
{
    json_error_t fault;
    json_t *o = json_loadb(line, line_bytes, 0, &fault);
    bool ok = false;
    *q = (cli_question){0};
    snprintf(reason, CLI_TASK_REASON_BYTES, "is not a question of HellaSwag, ARC, PIQA, WinoGrande or BoolQ");
    if (!o)
        snprintf(reason, CLI_TASK_REASON_BYTES, "is not JSON: %s", fault.text);
    else if (json_object_get(o, "endings") && (text_of(o, "ctx") || text_of(o, "ctx_a")))
        ok = read_hellaswag(q, o);
    else if (json_object_get(o, "answerKey"))
        ok = read_arc(q, o);
    else if (text_of(o, "goal"))
        ok = read_piqa(q, o, label);
    else if (text_of(o, "sentence"))
        ok = read_winogrande(q, o);
    else if (text_of(o, "passage") && text_of(o, "question"))
        ok = read_boolq(q, o);
    else if (text_of(o, "context") && json_object_get(o, "choices"))
        ok = read_own(q, o);
    json_decref(o);
    if (ok && (q->n < 2 || q->answer >= q->n)) {
        snprintf(reason, CLI_TASK_REASON_BYTES, "has no answer among its %zu choices", q->n);
        ok = false;
    }
    if (!ok) cli_question_free(q);
    return ok;
}

void cli_question_free(cli_question *q)
{
    for (size_t i = 0; i < q->n; i++) {
        free(q->context[i]);
        free(q->choice[i]);
    }
    *q = (cli_question){0};
}
