/* SPDX-License-Identifier: MIT
 * Finds the places and types of the tensors of a GGUF file. This header is for gguf.c alone. */
#ifndef WHIT_FORMAT_GGUF_PLACE_H
#define WHIT_FORMAT_GGUF_PLACE_H

#include "format/gguf.h"

/* Decides the kind of every tensor and checks that each lies inside its file and over no other;
 * fills in kind, data and size_bytes, and writes notes about ids that collide. */
whit_status whit_gguf_place_tensors(whit_gguf *gguf, whit_error *error);

#endif
