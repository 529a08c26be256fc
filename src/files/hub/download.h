/* SPDX-License-Identifier: MIT
 * Downloads one file from a hub: resumes an earlier download, retries when the connection breaks, and checks the result
 * against the listing's size and digest. */
#ifndef WHIT_HUB_DOWNLOAD_H
#define WHIT_HUB_DOWNLOAD_H

#include "hub/http.h"
#include "hub/listing.h"

/* Receives the number of bytes that arrived since the last call. Returning false cancels the download. */
typedef bool whit_hub_bytes_fn(void *user, uint64_t n_new_bytes);

/* Settings that all requests of a pull share. */
typedef struct whit_hub_line {
    whit_http *http;
    uint32_t n_tries, wait_ms; /* attempts without progress before giving up; the first pause between attempts, which
                                * doubles */
    const volatile bool *cancel;
    whit_hub_bytes_fn *on_bytes; /* may be NULL */
    void *user;
} whit_hub_line;

/* Called before every attempt. A status other than WHIT_OK ends the attempts and becomes their result. */
typedef whit_status whit_hub_try_fn(void *user, whit_error *error);

/* Downloads `url` into the file `part`, which may already contain the beginning from an earlier run. "PART.etag" stores
 * the ETag of the version that the beginning belongs to. `what` is the file's name for messages. `file` has the
 * expected size and digest, and receives the actual size, and the digest if only the response states it. On WHIT_OK the
 * part is complete, checked and flushed to disk; "PART.etag" then remains only if there is no digest. On failure the
 * part remains, so that the next call can resume, unless it is empty or its content does not match the digest. */
whit_status whit_hub_download(const whit_hub_line *line, const char *url, const char *what, const char *part,
                              whit_hub_file *file, whit_error *error);

/* Reads a response of at most `limit_bytes` into memory. With a status that is not 2xx the result is WHIT_OK too, and
 * `out` does not get the body. */
whit_status whit_hub_read(const whit_hub_line *line, const char *url, size_t limit_bytes, whit_buf *out,
                          whit_http_answer *answer, whit_error *error);

/* Returns an error for a status that is not 2xx. Its text explains what hubs mean by that status. */
whit_status whit_hub_refusal(const whit_http_answer *answer, const char *what, whit_error *error);

#endif
