/* SPDX-License-Identifier: MIT
 * Declares model families: each has a program that states its forward pass; running the program builds the graph. */
#ifndef WHIT_MODEL_FAMILIES_H
#define WHIT_MODEL_FAMILIES_H

#include "model/graph.h"

#define WHIT_FAMILY_MAX_PROGRAM_BYTES ((size_t)64 << 10)

/* Name of the family of models that run decoder.ndl but need layer kinds, RoPE tables or optional numbers, which the
 * earliest families ("llama", "qwen2", ...) do not have. */
#define WHIT_FAMILY_DECODER "decoder"
/* Sets the family's name in an imported configuration. An earliest family that cannot describe the configuration
 * becomes WHIT_FAMILY_DECODER. Then a suffix for the newest extension is appended ("-experts", "-rotated", ...) if a
 * family of that name is known. */
void whit_config_name_family(whit_config *config);

typedef struct whit_family_program {
    const char *name; /* begins the error lines of `text`; NULL: the family's name */
    const char *text;
} whit_family_program;

/* Builds and finishes a begun graph by the configuration's own program, or else by the program of its family. The error
 * for an unknown family names it and the known ones. An error of the configuration's own program begins with "NAME: ",
 * where NAME is program_name or the family; if one place in the program causes it, with "NAME:LINE:COLUMN: ". */
whit_status whit_family_build(const whit_config *config, whit_graph *graph);

#endif
