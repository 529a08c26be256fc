/* SPDX-License-Identifier: MIT
 * Compares prompts of hybrid models in one pass with the same prompts token by token: a delta rule that processes
 * many tokens in blocks of columns must give the bits of one that processes single tokens. */
#include "prompt_logits.h"
#include "random_model.h"

enum { WIDE_VALUES = 128 }; /* more than one block of columns per value head */

static void prompts_give_the_bits_of_single_tokens(void **state)
{
    (void)state;
    uint32_t n_wide = 0;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_error error;
        whit_config config;
        whit_ndf_writer *writer;
        whit_model *model;
        char path[64];
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
        if (config.delta_heads) {
            whit_model_options model_options = whit_model_options_default();
            whit_session_options options = whit_session_options_default();
            model_options.no_cache = true;
            options.n_threads = 1;
            assert_ok(whit_model_open(path, &model_options, &model, &error), error);
            const uint32_t n_vocab = whit_model_vocab_size(model);
            options.n_batch_tokens = PROMPT_TOKENS;
            float *together = prompt_logits_below(model, options, n_vocab);
            options.n_batch_tokens = 1;
            float *single = prompt_logits_below(model, options, n_vocab);
            assert_memory_equal(together, single, (size_t)PROMPT_TOKENS * n_vocab * sizeof *single);
            free(together);
            free(single);
            whit_model_close(model);
            n_wide += config.delta_value_dim >= WIDE_VALUES;
        }
        whit_ndf_writer_close(writer);
    }
    assert_true(n_wide > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prompts_give_the_bits_of_single_tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
