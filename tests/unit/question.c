/* SPDX-License-Identifier: MIT
 * Tests that whit eval asks questions as lm-evaluation-harness does. */
#include "test.h"

#include "cli/task.h"

static void read_question(cli_question *question, const char *line)
{
    char reason[CLI_TASK_REASON_BYTES];
    assert_true(cli_question_read(question, line, strlen(line), -1, reason));
}

/* As ctx_b.capitalize() in Python, which also makes the other letters lower-case. */
static void test_hellaswag_capitalises(void **state)
{
    cli_question question;
    (void)state;
    read_question(&question,
                  "{\"activity_label\": \"Tea\", \"ctx_a\": \"A man in the USA sits.\", \"ctx_b\": \"the TV of Ann\","
                  " \"endings\": [\"is On.\", \"falls.\"], \"label\": 0}");
    assert_string_equal(question.context[0], "Tea: A man in the USA sits. The tv of ann");
    assert_string_equal(question.choice[0], " is On.");
    cli_question_free(&question);
    read_question(&question, "{\"ctx_a\": \"A man.\", \"ctx_b\": \"\", \"endings\": [\"a\", \"b\"], \"label\": \"1\"}");
    assert_string_equal(question.context[1], "A man.");
    cli_question_free(&question);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hellaswag_capitalises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
