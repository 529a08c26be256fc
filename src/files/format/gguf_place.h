/* SPDX-License-Identifier: MIT
 * Finds the positions and types of the tensors of a GGUF file. Only gguf.c uses it. */
#ifndef WHIT_FORMAT_GGUF_PLACE_H
#define WHIT_FORMAT_GGUF_PLACE_H

#include "format/gguf.h"

/* Decides the kind of every tensor and checks that each is inside its file and overlaps no other. Sets kind, data and
 * size_bytes, and appends a note for each type id with several meanings. */
whit_status whit_gguf_place_tensors(whit_gguf *gguf, whit_error *error);

#endif
