/* SPDX-License-Identifier: MIT
 * One file from a hub to disk: gone on with where an earlier run stopped, tried again where the
 * connection breaks, and checked against what the listing promised. */
#ifndef WHIT_HUB_DOWNLOAD_H
#define WHIT_HUB_DOWNLOAD_H

#include "hub/http.h"
#include "hub/listing.h"

/* `fetched_bytes` counts up as data come, `size_bytes` is the file's; false cancels. */
typedef bool whit_hub_bytes_fn(void *user, uint64_t n_new_bytes);

/* What all requests of a pull share. */
typedef struct whit_hub_line {
    whit_http *http;
    uint32_t n_tries, wait_ms; /* how often without progress, and the first pause, which doubles */
    const volatile bool *cancel;
    whit_hub_bytes_fn *on_bytes; /* may be NULL */
    void *user;
} whit_hub_line;

/* In front of every try; a status other than WHIT_OK ends them. */
typedef whit_status whit_hub_try_fn(void *user, whit_error *error);

/* Calls get until its answer needs no second try. `have` says how far a file has come, so that
 * progress is told from none. `before` (NULL: nothing) is called with the sink's user. */
whit_status whit_hub_get(const whit_hub_line *line, const char *url, const uint64_t *have, const char *if_range,
                         whit_hub_try_fn *before, const whit_http_sink *sink, whit_http_answer *answer,
                         whit_error *error);

/* Fetches `url` into the file `part`, which may hold a beginning from before; "PART.etag" keeps what
 * the server called that version. On WHIT_OK the part is whole, checked and on disk; where there is no
 * digest "PART.etag" stays, for the next call to ask by. On failure the part stays, so that the next
 * call goes on, except where its content was not what was promised. `what` names the file in messages.
 * `file` learns its size, and its digest where only the answer has it. */
whit_status whit_hub_download(const whit_hub_line *line, const char *url, const char *what, const char *part,
                              whit_hub_file *file, whit_error *error);

/* A small answer into memory. */
whit_status whit_hub_read(const whit_hub_line *line, const char *url, size_t limit_bytes, whit_buf *out,
                          whit_http_answer *answer, whit_error *error);

/* The line for a status that is not 2xx, as hubs mean it. */
whit_status whit_hub_refusal(const whit_http_answer *answer, const char *what, whit_error *error);

#endif
