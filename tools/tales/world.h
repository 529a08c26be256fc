/* SPDX-License-Identifier: MIT
 * The world of the tales: who there is, where, and what things there are; and a scene, which is
 * what one tale is about. Everything that a tale says is said of the scene, so that names, pronouns,
 * things and places hold together. */
#ifndef TALES_WORLD_H
#define TALES_WORLD_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

struct person {
    const char *name, *kind; /* "Lily", "girl"; "Pip", "fox" */
    bool female, animal;
};

struct helper { /* somebody grown, with no name: "a kind old farmer" */
    const char *adjectives, *noun;
    bool female;
};

struct thing {
    const char *adjective, *noun;
    bool toy; /* one can play with it; else it is kept, worn or carried */
};

#define N_SPOTS 5
struct place {
    const char *name, *preposition; /* "the park", "in" */
    const char *spots[N_SPOTS];     /* where something may lie there */
};

struct scene {
    struct person a, b; /* the hero and a friend, never of one name; animals never of one kind */
    struct helper h;
    struct thing o, q; /* two things of different nouns */
    const char *food;  /* "apple" */
    const struct place *p;
    const char *s1, *s2, *s3; /* three different spots of the place */
    const char *small;        /* a small animal without a name */
};

/* Things for plots in which not everything can happen to everything. */
void tales_draw_flyer(whit_rng *rng, struct thing *thing);
void tales_draw_floater(whit_rng *rng, struct thing *thing);
/* Draws a scene. */
void tales_draw_scene(whit_rng *rng, struct scene *scene);
/* Scenes whose hero, thing and place meet in the held-out text only: one in sixteen. */
bool tales_scene_is_held(const struct scene *scene);

/* One of n. */
static inline size_t tales_draw(whit_rng *rng, size_t n)
{
    return (size_t)whit_rng_below(rng, n);
}

#endif
