/* SPDX-License-Identifier: MIT */
#include "server/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the shortest decimal number that converts to this 32-bit float: 0.8 rather than 0.800000011920929. */
static json_t *real_json(float value)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) break;
    }
    return json_real(strtod(text, NULL));
}

json_t *whit_settings_json(const whit_sampler_options *s)
{
    const struct {
        const char *name;
        float value;
    } reals[] = {{"temperature", s->temperature},
                 {"dynatemp_range", s->dynatemp_range},
                 {"dynatemp_exponent", s->dynatemp_exponent},
                 {"top_p", s->top_p},
                 {"min_p", s->min_p},
                 {"typical_p", s->typical_p},
                 {"top_n_sigma", s->top_n_sigma},
                 {"xtc_probability", s->xtc_probability},
                 {"xtc_threshold", s->xtc_threshold},
                 {"repeat_penalty", s->repeat_penalty},
                 {"presence_penalty", s->presence_penalty},
                 {"frequency_penalty", s->frequency_penalty},
                 {"dry_multiplier", s->dry_multiplier},
                 {"dry_base", s->dry_base},
                 {"mirostat_tau", s->mirostat_tau},
                 {"mirostat_eta", s->mirostat_eta}};
    const struct {
        const char *name;
        int32_t value;
    } counts[] = {{"top_k", s->top_k},
                  {"repeat_last_n", s->penalty_last_n},
                  {"dry_allowed_length", s->dry_allowed_length},
                  {"dry_penalty_last_n", s->dry_penalty_last_n},
                  {"mirostat", s->mirostat}};
    json_t *settings = json_object(), *biases = json_array();
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        json_object_set_new(settings, reals[i].name, real_json(reals[i].value));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(settings, counts[i].name, json_integer(counts[i].value));
    for (size_t i = 0; i < s->n_biases; i++)
        json_array_append_new(biases,
                              json_pack("{s:i, s:o}", "token", (int)s->bias_ids[i], "bias",
                                        isinf(s->bias_values[i]) ? json_false() : real_json(s->bias_values[i])));
    json_object_set_new(settings, "logit_bias", biases);
    json_object_set_new(settings, "dry_sequence_breakers", json_pack("[s, s, s, s]", "\n", ":", "\"", "*"));
    json_object_set_new(settings, "seed", json_integer((json_int_t)s->seed));
    return settings;
}
