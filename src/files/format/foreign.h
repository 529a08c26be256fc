/* SPDX-License-Identifier: MIT
 * Recognises files that users open by mistake instead of a model: archives, PyTorch files, web pages, error messages of
 * servers, failed downloads. It only provides texts for error messages. */
#ifndef WHIT_FORMAT_FOREIGN_H
#define WHIT_FORMAT_FOREIGN_H

#include "base/mem.h"

/* Identifies, from its first bytes, a file that is neither GGUF nor .ndf. Returns a static text that says what it is
 * and what to do, such as "is a zip archive; unpack it"; NULL if the content is not recognised. */
const char *whit_foreign_reason(const void *data, uint64_t size_bytes);

#endif
