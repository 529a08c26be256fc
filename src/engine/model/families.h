/* SPDX-License-Identifier: MIT
 * Model families: the program that states a family's forward pass, run into a graph. */
#ifndef WHIT_MODEL_FAMILIES_H
#define WHIT_MODEL_FAMILIES_H

#include "model/graph.h"

#define WHIT_FAMILY_MAX_PROGRAM_BYTES ((size_t)64 << 10)

/* The family of decoder.ndl's models that the earliest families cannot say: with layer kinds, RoPE tables, numbers of
 * their own. */
#define WHIT_FAMILY_DECODER "decoder"
/* For importers: names a configuration that its early family cannot describe WHIT_FAMILY_DECODER, and one with
 * experts by its family's name with the suffix "-experts". */
void whit_config_name_family(whit_config *config);

typedef struct whit_family_program {
    const char *name; /* begins error lines; NULL: the family's name */
    const char *text;
} whit_family_program;

/* Builds the graph of a configuration by its own program, or by the one of its family; unknown families
 * are named in the error together with the known ones. A mistake of the configuration's program begins
 * with its place, "FAMILY:LINE:COLUMN: ". */
whit_status whit_family_build(const whit_config *config, whit_graph *graph);

#endif
