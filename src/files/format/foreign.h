/* SPDX-License-Identifier: MIT
 * Recognises what people open in place of a model: archives, PyTorch's files, pages and messages of servers, downloads
 * that failed. It only gives texts for messages: it opens and refuses no file. */
#ifndef WHIT_FORMAT_FOREIGN_H
#define WHIT_FORMAT_FOREIGN_H

#include "base/mem.h"

/* Identifies a file that is not a model by its first bytes; returns what it is and what to do, as in "is a zip
 * archive; unpack it", or NULL if it is unknown. The text is static. */
const char *whit_foreign_reason(const void *data, uint64_t size_bytes);

#endif
