/* SPDX-License-Identifier: MIT
 * Reads any bytes as a question of whit eval: it must have an answer among its choices, or be refused with a reason. */
#include "cli/task.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cli_question question;
    char reason[CLI_TASK_REASON_BYTES];
    for (int label = -1; label < 2; label++) {
        if (!cli_question_read(&question, (const char *)data, size, label, reason)) {
            if (!*reason || question.n) abort();
            continue;
        }
        if (question.n < 2 || question.answer >= question.n) abort();
        for (size_t i = 0; i < question.n; i++)
            if (strlen(question.context[i]) > 2 * size + 64 || strlen(question.choice[i]) > 2 * size + 64) abort();
        cli_question_free(&question);
    }
    return 0;
}
