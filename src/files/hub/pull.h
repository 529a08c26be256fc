/* SPDX-License-Identifier: MIT
 * Pulling a model: list the repository, choose, download, put in place. */
#ifndef WHIT_HUB_PULL_H
#define WHIT_HUB_PULL_H

#include "hub/store.h"

typedef struct whit_hub_progress {
    const char *file;                 /* that is on its way */
    uint64_t done_bytes, total_bytes; /* of all files wanted; a total of 0 is unknown */
} whit_hub_progress;

typedef struct whit_hub_pull_options {
    const char *endpoint, *token; /* settings.h; "" for no token */
    const char *cache_dir;        /* NULL: as whit_cache_folder finds it */
    uint32_t connect_s, stall_s;  /* 0: 30 and 60 seconds */
    uint32_t n_tries, wait_ms;    /* 0: 5 tries without progress, the first pause 1 s, doubling */
    const volatile bool *cancel;
    bool (*progress)(void *user, const whit_hub_progress *progress); /* false cancels */
    void *user;
} whit_hub_pull_options;

typedef struct whit_hub_pulled {
    char path[WHIT_CACHE_PATH_BYTES]; /* what to open */
    whit_hub_kind kind;
    size_t n_files;
    uint64_t size_bytes, fetched_bytes; /* of all files; of those fetched now */
    char commit[WHIT_HUB_COMMIT_BYTES]; /* "" where the hub names none */
} whit_hub_pulled;

/* Brings the model that `name` means into the store. Files that are there with the digest that the
 * hub names are not fetched again. New files replace old ones only once all of them are here and
 * checked; a run that ends early, by whatever cause, leaves what came for the next. */
whit_status whit_hub_pull(const whit_hub_name *name, const whit_hub_pull_options *options, whit_hub_pulled *pulled,
                          whit_error *error);

#endif
