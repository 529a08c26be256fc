/* SPDX-License-Identifier: MIT
 * Declares model families: each has a program that states its forward pass; running the program builds the graph. */
#ifndef WHIT_MODEL_FAMILIES_H
#define WHIT_MODEL_FAMILIES_H

#include "model/graph.h"

#define WHIT_FAMILY_MAX_PROGRAM_BYTES ((size_t)64 << 10)

/* Name of the family of decoder.ndl's models that the earliest families cannot describe, because they have layer kinds,
 * RoPE tables or optional numbers. */
#define WHIT_FAMILY_DECODER "decoder"
/* Names the family of an imported configuration: WHIT_FAMILY_DECODER if its early family cannot describe it, then the
 * name with a suffix for its newest extension ("-experts", "-rotated", ...) if a family of that name is known. */
void whit_config_name_family(whit_config *config);

typedef struct whit_family_program {
    const char *name; /* begins error lines; NULL: the family's name */
    const char *text;
} whit_family_program;

/* Builds the graph of a configuration by its own program, or by that of its family. The error for an unknown family
 * names it and the known ones. An error in the configuration's program begins with its place as
 * "FAMILY:LINE:COLUMN: ". */
whit_status whit_family_build(const whit_config *config, whit_graph *graph);

#endif
