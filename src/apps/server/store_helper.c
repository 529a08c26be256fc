/* SPDX-License-Identifier: MIT
 * Runs the helper process, which changes the store of models. A connection's thread and the helper exchange lines:
 *
 *     connection's thread                       helper
 *     {"do": "pull", "name": NAME}     ->       store->pull
 *     lines of Ollama's progress       <-       {"status": ..., "total": ..., "completed": ...}
 *     "\n" when the client has left    ->       stops at its next progress
 *     the last line                    <-       {"status": "success"} or {"error": ...} */
#include "server/store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/helper.h"
#include "server/access.h"
#include "server/endpoints.h"

enum { PROGRESS_MS = 200 };

struct helper {
    const whit_server_store *store;
    int fd;
    uint64_t told_ns; /* time of the last line of progress */
};

static bool say_line(const struct helper *h, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    bool ok = text && whit_write_all(h->fd, text, strlen(text)) && whit_write_all(h->fd, "\n", 1);
    free(text);
    json_decref(line);
    return ok;
}

/* Sends a line of progress, but not too often. Returns false, which stops the download, if the client or the server has
 * left. */
static bool say_progress(void *user, const char *file, uint64_t done_bytes, uint64_t total_bytes)
{
    struct helper *h = user;
    char byte;
    if (recv(h->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0) return false;
    uint64_t now_ns = whit_now_ns();
    if (now_ns - h->told_ns < PROGRESS_MS * UINT64_C(1000000) && done_bytes < total_bytes) return true;
    h->told_ns = now_ns;
    return say_line(h,
                    json_pack("{s:o, s:s, s:I, s:I}", "status", json_sprintf("pulling %s", file), "digest", file,
                              "total", (json_int_t)total_bytes, "completed", (json_int_t)done_bytes));
}

static void serve_request(struct helper *h, const char *text)
{
    json_t *request = json_loads(text, 0, NULL);
    const char *what = json_string_value(json_object_get(request, "do"));
    const char *name = json_string_value(json_object_get(request, "name"));
    const char *to = json_string_value(json_object_get(request, "to"));
    whit_error error = {.message = "the request to the download process is incomplete"};
    whit_status status = WHIT_ERROR_ARGUMENT;
    if (what && name && !strcmp(what, "pull")) {
        say_line(h, json_pack("{s:s}", "status", "pulling manifest"));
        status = h->store->pull(h->store->user, name, say_progress, h, &error);
    } else if (what && name && to && !strcmp(what, "copy")) {
        status = h->store->copy(h->store->user, name, to, &error);
    } else if (what && name && !strcmp(what, "remove")) {
        status = h->store->remove(h->store->user, name, &error);
    }
    json_decref(request);
    say_line(h,
             status == WHIT_OK ? json_pack("{s:s}", "status", "success")
                               : json_pack("{s:o}", "error", whit_api_any_text(error.message)));
}

/* Reads a line of at most `room` - 1 bytes. Skips empty lines, which only stop a download. Returns false at the end of
 * the input, or if the line is longer. */
static bool read_request(int fd, char *line, size_t room)
{
    for (size_t n = 0; n + 1 < room;) {
        ssize_t got = read(fd, line + n, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        if (line[n] == '\n' && !n) continue;
        if (line[n] == '\n') {
            line[n] = 0;
            return true;
        }
        n++;
    }
    return false;
}

static void serve_store(int socket, void *user)
{
    struct helper *helper = user;
    char *line = malloc(WHIT_STORE_LINE_BYTES);
    helper->fd = socket;
    signal(SIGTERM, SIG_DFL); /* SIGTERM must also end a download that waits for the hub */
    while (line && read_request(socket, line, WHIT_STORE_LINE_BYTES)) serve_request(helper, line);
    free(line);
}

whit_status whit_store_open(const whit_server_store *store, int *fd, whit_error *error)
{
    struct helper helper = {.store = store};
    return whit_helper_start("the helper", serve_store, &helper, fd, error);
}
