/* SPDX-License-Identifier: MIT */
#include "model/import_gguf.h"

#include "tokenizer/from_gguf.h"

whit_status whit_import_gguf_tokenizer(whit_source *source, const whit_gguf *gguf, whit_error *error)
{
    bool found; /* not needed, because a file without a vocabulary works with token ids */
    return whit_tokenizer_from_gguf(gguf, source->path, &found, &source->tokenizer, error);
}
