/* SPDX-License-Identifier: MIT
 * Pulls a model: lists the repository, chooses files, downloads them and moves them into the store. */
#ifndef WHIT_HUB_PULL_H
#define WHIT_HUB_PULL_H

#include "hub/store.h"

typedef struct whit_hub_progress {
    const char *file;                 /* the file being downloaded */
    uint64_t done_bytes, total_bytes; /* bytes of all chosen files together; total_bytes 0: unknown */
} whit_hub_progress;

typedef struct whit_hub_pull_options {
    const char *endpoint, *token; /* the hub's address and the user's token (settings.h); token "": no token */
    const char *cache_dir;        /* NULL: whit_cache_folder chooses it */
    uint32_t connect_s, stall_s;  /* seconds to connect (0: 30); seconds without received data before a request fails
                                   * (0: 60) */
    uint32_t n_tries, wait_ms;    /* attempts without progress (0: 5); first pause between attempts, which doubles (0: 1
                                   * s) */
    const volatile bool *cancel;
    bool (*progress)(void *user, const whit_hub_progress *progress); /* called as bytes arrive; false cancels the
                                                                      * pull */
    void *user;
} whit_hub_pull_options;

typedef struct whit_hub_pulled {
    char path[WHIT_CACHE_PATH_BYTES]; /* the file or folder to open */
    whit_hub_kind kind;
    size_t n_files;
    uint64_t size_bytes, fetched_bytes; /* total size of the model's files; the bytes that this pull has downloaded */
    char commit[WHIT_HUB_COMMIT_BYTES]; /* "": unknown */
    char licence[64];                   /* "": unknown; as in whit_hub_listing */
} whit_hub_pulled;

/* Downloads the model named `name` into the store. Files that the store already has with the hub's digest are not
 * downloaded again. New files replace old ones only after all of them are downloaded and checked. If a run ends early,
 * for any reason, the next one resumes its unfinished files, except those whose version cannot be told. */
whit_status whit_hub_pull(const whit_hub_name *name, const whit_hub_pull_options *options, whit_hub_pulled *pulled,
                          whit_error *error);

#endif
