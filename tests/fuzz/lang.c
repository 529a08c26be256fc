/* SPDX-License-Identifier: MIT
 * Loads any bytes as a program; if it loads, it runs on every tier within small limits, with the same outcome. */
#include <stdlib.h>

#include "kernels/quat/quat.h"
#include "lang/core/lang.h"
#include "lang/jit/jit.h"
#include "lang_digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_cpu cpu;
    whit_error error;
    whit_quat_kernels kernels;
    whit_status loads[WHIT_LANG_TIERS], runs[WHIT_LANG_TIERS];
    uint64_t digests[WHIT_LANG_TIERS];
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, NULL, &kernels, &error) != WHIT_OK) return 0;
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = {.quat = &kernels,
                                     .jit = whit_lang_jit_native(),
                                     .tier = tier,
                                     .max_steps = 20000,
                                     .max_bytes = 8 << 20,
                                     .no_closed_forms = true};
        whit_lang *lang;
        whit_buf plan = {0};
        if (whit_lang_open(&options, &lang, &error) != WHIT_OK) return 0;
        loads[tier] = whit_lang_load(lang, "fuzz", (const char *)data, size, &error);
        runs[tier] = loads[tier] == WHIT_OK ? whit_lang_run(lang, &error) : WHIT_OK;
        digests[tier] = digest_variables(lang);
        (void)whit_lang_plan(lang, &plan);
        whit_buf_free(&plan);
        whit_lang_close(lang);
    }
    /* Tiers may reach a limit at different points of a program, so results are compared only without one. */
    for (int tier = 1; tier < WHIT_LANG_TIERS; tier++) {
        bool limited = runs[0] == WHIT_ERROR_LIMIT || runs[tier] == WHIT_ERROR_LIMIT || loads[tier] == WHIT_ERROR_LIMIT;
        if (!limited && (loads[0] != loads[tier] || runs[0] != runs[tier] || digests[0] != digests[tier])) abort();
    }
    return 0;
}
