/* SPDX-License-Identifier: MIT
 * Downloads one file from a hub: resumes an earlier run, retries when the connection breaks, and checks the result
 * against the listing's size and digest. */
#ifndef WHIT_HUB_DOWNLOAD_H
#define WHIT_HUB_DOWNLOAD_H

#include "hub/http.h"
#include "hub/listing.h"

/* Functions of this type receive the number of bytes that have just arrived, and return false to cancel. */
typedef bool whit_hub_bytes_fn(void *user, uint64_t n_new_bytes);

/* Holds the settings that all requests of a pull share. */
typedef struct whit_hub_line {
    whit_http *http;
    uint32_t n_tries, wait_ms; /* attempts without progress, and the first pause between them, which doubles */
    const volatile bool *cancel;
    whit_hub_bytes_fn *on_bytes; /* may be NULL */
    void *user;
} whit_hub_line;

/* A function of this type is called before every attempt; a status other than WHIT_OK ends the attempts. */
typedef whit_status whit_hub_try_fn(void *user, whit_error *error);

/* Downloads `url` into the file `part`, which may hold the beginning from an earlier run; "PART.etag" holds the ETag of
 * that version. On WHIT_OK the part is complete, checked and on disk; without a digest "PART.etag" stays for the next
 * call. On failure the part stays, so that the next call can resume, unless its content was not the promised one.
 * `what` names the file in messages. `file` receives the size, and the digest if only the answer has it. */
whit_status whit_hub_download(const whit_hub_line *line, const char *url, const char *what, const char *part,
                              whit_hub_file *file, whit_error *error);

/* Reads an answer of at most `limit_bytes` into memory. */
whit_status whit_hub_read(const whit_hub_line *line, const char *url, size_t limit_bytes, whit_buf *out,
                          whit_http_answer *answer, whit_error *error);

/* Reports a status that is not 2xx, in the sense in which hubs use the status. */
whit_status whit_hub_refusal(const whit_http_answer *answer, const char *what, whit_error *error);

#endif
