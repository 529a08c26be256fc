/* SPDX-License-Identifier: MIT
 * Makes hypervectors of texts by an embedding model (whit memory --embed). Without it, hypervectors are made from the
 * letters of texts. */
#ifndef WHIT_CLI_MEMORY_EMBED_H
#define WHIT_CLI_MEMORY_EMBED_H

#include "cli/cli.h"
#include "memory/encode.h"

/* An embedding model; zero-initialised, none is open. */
typedef struct cli_memory_embedder {
    whit_model *model;
    whit_session *session;
    const char *query, *document; /* prompts for queries and for stored texts, from the model's metadata; may be NULL */
    float *values;                /* array of `width` floats for a vector */
    size_t width;
} cli_memory_embedder;

/* Opens the model (path NULL: none), and checks that the store was made with it: the file "STORE.model" contains the
 * hash of the model, and is written for a new store. A store with such a file is refused if path is NULL; otherwise an
 * existing store without such a file, or with the hash of another model, is refused. Returns CLI_OK, or a status that
 * was already reported; the caller must close in both cases. */
int cli_memory_embedder_open(cli_call *call, const char *path, const char *store, cli_memory_embedder *embedder);
void cli_memory_embedder_close(cli_memory_embedder *embedder);
/* Encodes a text of n bytes: bit b tells on which side of the b-th of 8,192 random planes the text's vector lies. The
 * share of equal bits of two texts is then about 1 - angle / pi (Charikar, "Similarity estimation techniques from
 * rounding algorithms", 2002). Returns an exit status. */
int cli_memory_embed(cli_call *call, cli_memory_embedder *embedder, const char *text, size_t n_bytes, bool is_query,
                     uint64_t out[WHIT_MEMORY_WORDS]);

#endif
