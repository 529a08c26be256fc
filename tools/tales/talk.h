/* SPDX-License-Identifier: MIT
 * Conversations: somebody asks for a tale, or says hello. */
#ifndef TALES_TALK_H
#define TALES_TALK_H

#include "grammar.h"
#include "plots.h"

/* A request that the tale of this scene and plot answers. */
void tales_request(struct text *text, const struct plot *plot, const struct scene *scene, whit_rng *rng);
/* A question about a tale that was told, and its answer. */
void tales_question(struct text *question, struct text *answer, const struct scene *scene, whit_rng *rng);
/* Small talk and the answer to it. */
void tales_small_talk(struct text *said, struct text *answer, bool after_tale, const struct scene *scene,
                      whit_rng *rng);

#endif
