/* SPDX-License-Identifier: MIT
 * Draws scenes from the world of the tales, which has persons, helpers, things and places. A scene has all that a tale
 * is about, so that the tale's names, pronouns, things and places agree. */
#ifndef TALES_WORLD_H
#define TALES_WORLD_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

struct person {
    const char *name, *kind; /* for example "Lily" and "girl", or "Pip" and "fox" */
    bool female, animal;
};

struct helper { /* a grown person without a name: "a kind old farmer" */
    const char *adjectives, *noun;
    bool female;
};

struct thing {
    const char *adjective, *noun;
    bool toy; /* one can play with it; other things are kept, worn or carried */
};

#define N_SPOTS 5
struct place {
    const char *name, *preposition; /* for example "the park" and "in" */
    const char *spots[N_SPOTS];     /* where a thing can be there: "under the bench" */
};

struct scene {
    struct person a, b; /* the hero and a friend, whose names differ; if they are animals, their kinds differ, too */
    struct helper h;
    struct thing o, q; /* two things whose nouns differ; q is a toy */
    const char *food;  /* for example "apple" */
    const struct place *p;
    const char *s1, *s2, *s3; /* three different spots of the place */
    const char *small;        /* a small animal without a name, for example "kitten" */
};

/* Replace the noun of a thing by one that can fly or can float, for plots with PLOT_FLIES or PLOT_FLOATS. The thing is
 * then a toy if it flies, and counts as no toy if it floats; its noun can be that of the other thing. */
void tales_draw_flyer(whit_rng *rng, struct thing *thing);
void tales_draw_floater(whit_rng *rng, struct thing *thing);
/* Draws all members of a scene. */
void tales_draw_scene(whit_rng *rng, struct scene *scene);
/* Returns whether a scene belongs to the held-out text, by a hash of its hero's name, thing {o} and place. About one in
 * sixteen of their combinations does. */
bool tales_scene_is_held(const struct scene *scene);

/* Returns a random number from 0 to n - 1. */
static inline size_t tales_draw(whit_rng *rng, size_t n)
{
    return (size_t)whit_rng_below(rng, n);
}

#endif
