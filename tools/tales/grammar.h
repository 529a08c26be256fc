/* SPDX-License-Identifier: MIT
 * Expands patterns: texts with choices, and with slots that are filled from a scene.
 *
 *   [x|y|z]   one of the alternatives, at random; they may be empty and may be nested
 *   <x|y>     x if the thing {o} is a toy, otherwise y; may be nested, too
 *   {a}       the hero's name; {a.he} {a.him} {a.his} {a.self}; {a.kind} "fox", {a.akind} "a fox";
 *             {a.intro} "a little fox named Pip"; {b} has the same forms for the friend
 *   {h}       "the farmer"; {h.a} "a kind old farmer"; {h.he} {h.him} {h.his}
 *   {o}       "the red ball"; {o.a} "a red ball"; {o.an} "red ball"; {o.n} "ball"; {q} has the same forms for a toy
 *   {f}       "the apple"; {f.a} "an apple"; {f.n} "apple"
 *   {p}       "the park"; {p.in} "in the park"; {s1} {s2} {s3} three spots there, "under the bench"
 *   {c}       "the kitten"; {c.a} "a kitten"; {c.n} "kitten"
 *   {^...}    the slot {...} with a capital first letter
 *   `         a double quote */
#ifndef TALES_GRAMMAR_H
#define TALES_GRAMMAR_H

#include "world.h"

struct text {
    char data[4096];
    size_t n;
    bool failed; /* the text became too long, or a pattern is invalid */
};

/* Appends `pattern`, with its choices drawn and its slots filled; sets text->failed if that is not possible. */
void tales_expand(struct text *text, const char *pattern, const struct scene *scene, whit_rng *rng);

#endif
