/* SPDX-License-Identifier: MIT
 * Pulls a model: lists the repository, chooses files, downloads them and puts them in place. */
#ifndef WHIT_HUB_PULL_H
#define WHIT_HUB_PULL_H

#include "hub/store.h"

typedef struct whit_hub_progress {
    const char *file;                 /* the file being downloaded */
    uint64_t done_bytes, total_bytes; /* over all chosen files; total_bytes 0: unknown */
} whit_hub_progress;

typedef struct whit_hub_pull_options {
    const char *endpoint, *token; /* see settings.h; token "": no token */
    const char *cache_dir;        /* NULL: whit_cache_folder chooses it */
    uint32_t connect_s, stall_s;  /* 0: 30 and 60 seconds */
    uint32_t n_tries, wait_ms;    /* 0: 5 tries without progress, the first pause 1 s, doubling */
    const volatile bool *cancel;
    bool (*progress)(void *user, const whit_hub_progress *progress); /* false cancels */
    void *user;
} whit_hub_pull_options;

typedef struct whit_hub_pulled {
    char path[WHIT_CACHE_PATH_BYTES]; /* the file or folder to open */
    whit_hub_kind kind;
    size_t n_files;
    uint64_t size_bytes, fetched_bytes; /* sizes of all files, and the bytes downloaded now */
    char commit[WHIT_HUB_COMMIT_BYTES]; /* "": unknown */
    char licence[64];                   /* "": unknown; as in whit_hub_listing */
} whit_hub_pulled;

/* Downloads the model that `name` means into the store. Files that are there with the hub's digest are not downloaded
 * again. New files replace old ones only once all of them are downloaded and checked; if a run ends early, for any
 * reason, the next one resumes with the parts that it left. */
whit_status whit_hub_pull(const whit_hub_name *name, const whit_hub_pull_options *options, whit_hub_pulled *pulled,
                          whit_error *error);

#endif
