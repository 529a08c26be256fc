/* SPDX-License-Identifier: MIT
 * Reads llama.cpp's "samplers", a list of the sampling stages that a request wants. */
#include "server/samplers.h"

#include <string.h>

#include "server/fields.h"

/* The sampler's stages in their fixed order; `letter` is for the short form; `other` is a second name, or NULL. */
static const struct {
    const char *name, *other;
    char letter;
} stages[] = {{"penalties", NULL, 'e'}, {"dry", NULL, 'd'},          {"top_n_sigma", NULL, 's'},
              {"top_k", NULL, 'k'},     {"typ_p", "typical_p", 'y'}, {"top_p", NULL, 'p'},
              {"min_p", NULL, 'm'},     {"xtc", NULL, 'x'},          {"temperature", "temp", 't'}};
enum { PENALTIES, DRY, TOP_N_SIGMA, TOP_K, TYPICAL, TOP_P, MIN_P, XTC, TEMPERATURE, N_STAGES };

/* Returns the index of the stage with this name or, if the name is NULL, with this letter; -1 if not found. */
static int find_stage(const char *name, char letter)
{
    for (int i = 0; i < N_STAGES; i++)
        if (name ? !strcmp(name, stages[i].name) || (stages[i].other && !strcmp(name, stages[i].other))
                 : letter == stages[i].letter)
            return i;
    return -1;
}

static void leave_out(unsigned kept, whit_sampler_options *s)
{
    if (!(kept >> PENALTIES & 1)) s->repeat_penalty = 1, s->presence_penalty = s->frequency_penalty = 0;
    if (!(kept >> DRY & 1)) s->dry_multiplier = 0;
    if (!(kept >> TOP_N_SIGMA & 1)) s->top_n_sigma = -1;
    if (!(kept >> TOP_K & 1)) s->top_k = 0;
    if (!(kept >> TYPICAL & 1)) s->typical_p = 1;
    if (!(kept >> TOP_P & 1)) s->top_p = 1;
    if (!(kept >> MIN_P & 1)) s->min_p = 0;
    if (!(kept >> XTC & 1)) s->xtc_probability = 0;
    if (!(kept >> TEMPERATURE & 1)) s->temperature = 1, s->dynatemp_range = 0;
}

bool whit_samplers_read(const json_t *body, whit_sampler_options *s, whit_web_reply *reply)
{
    const json_t *given = json_object_get(body, "samplers");
    const char *letters = json_string_value(given);
    size_t n = letters ? strlen(letters) : json_array_size(given);
    unsigned kept = 0;
    int last = -1;
    if (!given || json_is_null(given) || (letters && !n)) return true;
    if (!letters && !json_is_array(given))
        return whit_field_refuse(reply, "samplers", "expected a list of names, or a text of letters");
    for (size_t i = 0; i < n; i++) {
        const char *name = letters ? NULL : json_string_value(json_array_get(given, i));
        int stage = letters || name ? find_stage(name, letters ? letters[i] : 0) : -1;
        if (stage <= last)
            return whit_field_refuse(reply, "samplers",
                                     "expected some of penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, "
                                     "temperature, in this order");
        kept |= 1u << stage;
        last = stage;
    }
    leave_out(kept, s);
    return true;
}
