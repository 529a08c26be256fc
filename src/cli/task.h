/* SPDX-License-Identifier: MIT
 * Reads multiple-choice questions for whit eval from the published files, which contain one JSON object a line. */
#ifndef WHIT_CLI_TASK_H
#define WHIT_CLI_TASK_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_CHOICES_MAX = 16, CLI_TASK_REASON_BYTES = 192 };

typedef struct cli_question {
    size_t n, answer;
    char *context[CLI_CHOICES_MAX]; /* text before each choice */
    char *choice[CLI_CHOICES_MAX];  /* text that is scored; begins with a space */
} cli_question;

/* Reads a line with a question of HellaSwag (ctx_a or ctx, endings), ARC (question, choices, answerKey), PIQA (goal,
 * sol1, sol2, label), WinoGrande (sentence with a blank, option1, option2), BoolQ (passage, question, answer), or in
 * whit's own form (context, choices, answer). label: the answer to a question of PIQA, whose answers are in a separate
 * file; negative: the line has it. Returns false for any other form, for more than CLI_CHOICES_MAX choices and for an
 * answer that is not among the choices, and writes the reason; the question is then empty. The caller frees a question
 * with cli_question_free. */
bool cli_question_read(cli_question *question, const char *line, size_t line_bytes, int label,
                       char reason[CLI_TASK_REASON_BYTES]);
void cli_question_free(cli_question *question);

#endif
