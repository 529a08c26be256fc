/* SPDX-License-Identifier: MIT
 * Tests training of matrices with corrections added to their codes: it uses the weights that inference uses, and the
 * scales of such matrices can be tuned. */
#include <math.h>

#include "kernels/corrections.h"
#include "random_model.h"
#include "runtime/model.h"
#include "test.h"
#include "train/tuning.h"

static whit_model *open_random(uint32_t i, whit_ndf_writer **writer)
{
    whit_config config;
    whit_error error;
    whit_model *model;
    char path[64];
    assert_ok(random_model_make(i, writer, &config, &error), error);
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(*writer));
    assert_ok(whit_model_open(path, NULL, &model, &error), error);
    return model;
}

/* For coded matrices with corrections, the values of the forward pass must be the file's, apart from the rounding of a
 * scale that is fitted again. Returns the number of these matrices. */
static uint32_t compare_values(const whit_model *model, whit_params *params)
{
    uint32_t n_compared = 0;
    whit_params_fit(params, NULL, NULL);
    params->share = 1;
    whit_params_round(params, NULL);
    for (uint32_t i = 0; i < params->n; i++) {
        const whit_param *param = &params->items[i];
        int64_t found = whit_ndf_find(model->file, param->name);
        if (!whit_is_corrected(&param->corrected)) continue; /* other matrices get another type */
        uint32_t n = param->type.n_cols;
        float *row = malloc(n * sizeof *row);
        assert_non_null(row);
        for (int32_t r = 0; r < (int32_t)param->type.n_rows; r++) {
            whit_codec_get_rows(&model->weights.tensors[found], &r, 1, row, n);
            for (uint32_t k = 0; k < n; k++)
                if (!(fabsf(row[k] - param->value[(size_t)r * n + k]) <= 1e-4f))
                    fail_msg("%s: row %d, column %u is %g, training has %g", param->name, r, k, (double)row[k],
                             (double)param->value[(size_t)r * n + k]);
        }
        free(row);
        n_compared++;
    }
    return n_compared;
}

static void training_sees_corrections(void **state)
{
    uint32_t n_compared = 0, n_whole = 0;
    (void)state;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_ndf_writer *writer;
        whit_trainee trainee;
        whit_error error;
        whit_model *model = open_random(i, &writer);
        const whit_trainee_codecs codecs = {.layers = "own", .embedding = "i8"};
        whit_status status = whit_trainee_open(&trainee, model, &codecs, NULL, NULL, &error);
        if (status == WHIT_OK) {
            n_compared += compare_values(model, &trainee.params);
            for (uint32_t k = 0; k < trainee.params.n; k++)
                n_whole +=
                    trainee.params.items[k].n_lines == 1 && whit_is_corrected(&trainee.params.items[k].corrected);
            whit_trainee_close(&trainee);
        } else {
            assert_int_equal(status, WHIT_ERROR_UNSUPPORTED); /* offsets, u8 factors and i4 cannot be trained */
        }
        whit_model_close(model);
        whit_ndf_writer_close(writer);
    }
    assert_true(n_compared >= 20);
    assert_true(n_whole >= 2); /* matrices with a single scale */
}

static void their_scales_can_be_tuned(void **state)
{
    uint32_t n_tuned = 0;
    (void)state;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_ndf_writer *writer;
        whit_trainee trainee;
        whit_error error;
        whit_model *model = open_random(i, &writer);
        const whit_tuning tuning = {.scales = true};
        whit_status status = whit_tuning_open(&trainee, model, &tuning, NULL, NULL, &error);
        if (status == WHIT_OK) {
            for (uint32_t k = 0; k < trainee.params.n; k++)
                n_tuned += whit_is_corrected(&trainee.params.items[k].corrected);
            whit_trainee_close(&trainee);
        } else { /* t2 with codes of 2, or no matrices with scales */
            assert_int_equal(status, WHIT_ERROR_UNSUPPORTED);
        }
        whit_model_close(model);
        whit_ndf_writer_close(writer);
    }
    assert_true(n_tuned >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(training_sees_corrections),
                                       cmocka_unit_test(their_scales_can_be_tuned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
