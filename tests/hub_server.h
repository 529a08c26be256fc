/* SPDX-License-Identifier: MIT
 * A model hub on this machine, for tests: one repository, answered as hubs answer, with the faults
 * that a test asks for. Plain sockets, one connection at a time, in a thread of its own. Large files
 * may lie on a second port, as on a content network. */
#ifndef WHIT_TESTS_HUB_SERVER_H
#define WHIT_TESTS_HUB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUB_COMMIT "0123456789abcdef0123456789abcdef01234567"

struct hub_file {
    const char *path;
    const void *data;
    size_t size_bytes;
    bool is_large; /* listed with its SHA-256, else with git's digest */
    /* What the listing says instead of the truth. */
    const char *listed_digest; /* "" for none */
    int64_t listed_bytes;      /* 0: the truth */
    /* How it is sent. */
    long status; /* in place of 200 */
    const char *error_code;
    const char *etag;       /* in place of the digest; "" for none */
    size_t cut_after_bytes; /* close the connection after so many bytes of a body, */
    unsigned n_cuts;        /* so many times */
    unsigned bytes_per_s;   /* 0: as fast as it goes */
    unsigned pause_s;       /* say nothing for so long before the body */
    bool no_ranges, no_length, no_linked_etag, is_elsewhere, redirects_for_ever;
};

struct hub_repository {
    const char *name;    /* "owner/name" */
    const char *token;   /* that requests must bring; NULL: none is wanted */
    const char *licence; /* of the description; NULL: it has none */
    struct hub_file *files;
    size_t n_files;
    size_t page_files;  /* entries of a page of the tree; 0: all */
    const char *tree;   /* sent as it is, in place of the true one */
    const char *commit; /* NULL: HUB_COMMIT */
    unsigned n_busy;    /* answer 503 so many times first */
    bool no_tree, no_info, endless_pages;
};

typedef struct hub_server hub_server;

/* The repository stays the caller's and may change while the server rests. NULL where no port is free.
 * `verbose` prints each request on stderr. */
hub_server *hub_server_start(struct hub_repository *repository, bool verbose);
void hub_server_stop(hub_server *server);
/* Returns when no request is being answered: who was answered may be gone before that is so. */
void hub_server_rest(hub_server *server);
/* "http://127.0.0.1:PORT". */
const char *hub_server_address(const hub_server *server);
/* One line a request: "PORT METHOD TARGET range=... if-range=... auth=..." with 1 or 2 for the port.
 * The log since the last call; valid until the next. */
const char *hub_server_log(hub_server *server);

#endif
