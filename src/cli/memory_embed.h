/* SPDX-License-Identifier: MIT
 * Makes hypervectors of texts by an embedding model (whit memory --embed), in place of hypervectors of the texts'
 * letters. */
#ifndef WHIT_CLI_MEMORY_EMBED_H
#define WHIT_CLI_MEMORY_EMBED_H

#include "cli/cli.h"
#include "memory/encode.h"

/* Holds an embedding model; if zero-initialised, it is closed. */
typedef struct cli_memory_embedder {
    whit_model *model;
    whit_session *session;
    const char *query, *document; /* prompts that the model's files name; may be NULL */
    float *values;                /* (width) */
    size_t width;
} cli_memory_embedder;

/* Opens the model, and checks that the records of the store were made with it: the file "STORE.model" has the identity
 * of the model, and is written for a new store. Without a path (NULL) a store that has such a file is refused. The
 * result is CLI_OK or a status already reported; close in every case. */
int cli_memory_embedder_open(cli_call *call, const char *path, const char *store, cli_memory_embedder *embedder);
void cli_memory_embedder_close(cli_memory_embedder *embedder);
/* Encodes a text of n bytes: bit b says on which side of the b-th of 8,192 random planes the text's vector lies, so
 * that the share of equal bits is 1 - angle / pi (Charikar, "Similarity estimation techniques from rounding
 * algorithms", 2002). */
int cli_memory_embed(cli_call *call, cli_memory_embedder *embedder, const char *text, size_t n_bytes, bool is_query,
                     uint64_t out[WHIT_MEMORY_WORDS]);

#endif
