/* SPDX-License-Identifier: MIT
 * Text with choices and places for what the scene holds.
 *
 *   [x|y|z]   one of these, at random; they may be empty and may nest
 *   <x|y>     x where the thing {o} is a toy, else y; likewise nesting
 *   {a}       the hero's name; {a.he} {a.him} {a.his} {a.self}; {a.kind} "fox", {a.akind} "a fox";
 *             {a.intro} "a little fox named Pip"; {b} likewise the friend
 *   {h}       "the farmer"; {h.a} "a kind old farmer"; {h.he} {h.him} {h.his}
 *   {o}       "the red ball"; {o.a} "a red ball"; {o.an} "red ball"; {o.n} "ball"; {q} another toy
 *   {f}       "the apple"; {f.a} "an apple"; {f.n} "apple"
 *   {p}       "the park"; {p.in} "in the park"; {s1} {s2} {s3} spots there
 *   {c}       "the kitten"; {c.a} "a kitten"; {c.n} "kitten"
 *   {^...}    the same with a capital
 *   `         a double quote */
#ifndef TALES_GRAMMAR_H
#define TALES_GRAMMAR_H

#include "world.h"

struct text {
    char data[4096];
    size_t n;
    bool failed; /* too long, or a grammar that makes no sense */
};

/* Appends `pattern` with its choices made. */
void tales_expand(struct text *text, const char *pattern, const struct scene *scene, whit_rng *rng);

#endif
