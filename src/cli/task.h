/* SPDX-License-Identifier: MIT
 * Multiple-choice questions of eval, from the files in which they are published: a line of JSON each. */
#ifndef WHIT_CLI_TASK_H
#define WHIT_CLI_TASK_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_CHOICES_MAX = 16, CLI_TASK_REASON_BYTES = 192 };

typedef struct cli_question {
    size_t n, answer;
    char *context[CLI_CHOICES_MAX]; /* text before each choice */
    char *choice[CLI_CHOICES_MAX];  /* the scored text; begins with its space or line break */
} cli_question;

/* Reads one line: HellaSwag (ctx_a or ctx, endings), ARC (question, choices, answerKey), PIQA (goal, sol1, sol2,
 * label), WinoGrande (sentence with a blank, option1, option2), BoolQ (passage, question, answer), or whit's own form
 * (context, choices, answer). False with the reason for any other form; the question is then empty. `label` (negative:
 * not given) is the answer, for files that keep answers apart, as PIQA does. */
bool cli_question_read(cli_question *question, const char *line, size_t line_bytes, int label,
                       char reason[CLI_TASK_REASON_BYTES]);
void cli_question_free(cli_question *question);

#endif
