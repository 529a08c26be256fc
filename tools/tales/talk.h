/* SPDX-License-Identifier: MIT
 * Writes conversations: a person asks for a tale, asks a question about it, or makes small talk. */
#ifndef TALES_TALK_H
#define TALES_TALK_H

#include "grammar.h"
#include "plots.h"

/* Appends a request, to which the tale of this plot and scene is the answer. */
void tales_request(struct text *text, const struct plot *plot, const struct scene *scene, whit_rng *rng);
/* Appends a question about the hero of a tale that was told, and its answer. */
void tales_question(struct text *question, struct text *answer, const struct scene *scene, whit_rng *rng);
/* Appends small talk of the person to `said`, and the reply to `answer`. after_tale: a tale was told before. */
void tales_small_talk(struct text *said, struct text *answer, bool after_tale, const struct scene *scene,
                      whit_rng *rng);

#endif
