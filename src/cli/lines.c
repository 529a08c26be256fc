/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/flags.h"
#include "base/items.h"
#include "cli/lines.h"

int cli_reader_next(cli_reader *reader, const char **line, size_t *n_bytes)
{
    for (size_t searched = 0;;) {
        const char *start = whit_chars(&reader->bytes) + reader->next;
        size_t n = reader->bytes.size_bytes - reader->next;
        const char *feed = n > searched ? memchr(start + searched, '\n', n - searched) : NULL;
        if (feed || (reader->ended && n)) {
            *line = start;
            *n_bytes = feed ? (size_t)(feed - start) : n;
            reader->next += *n_bytes + (feed != NULL);
            return 1;
        }
        if (reader->ended) return 0;
        searched = n;
        if (reader->next) {
            memmove(reader->bytes.data, start, n);
            reader->bytes.size_bytes = n;
            reader->next = 0;
        }
        errno = ENOMEM;
        if (!whit_buf_reserve(&reader->bytes, CLI_READER_BYTES)) return -1;
        ssize_t got = cli_read_some(reader->fd, WHIT_ITEMS(char, &reader->bytes) + n, CLI_READER_BYTES);
        if (got < 0) return -1;
        reader->ended = got == 0;
        reader->bytes.size_bytes += (size_t)got;
    }
}

void cli_reader_free(cli_reader *reader)
{
    whit_buf_free(&reader->bytes);
}

int cli_each_line(cli_call *call, cli_line_fn *answer, void *user)
{
    cli_reader reader = {0};
    whit_buf out = {0};
    const char *line;
    size_t n_bytes;
    int status = CLI_OK, more;
    for (uint64_t number = 1; (more = cli_reader_next(&reader, &line, &n_bytes)) > 0; number++) {
        if (!n_bytes) continue;
        whit_error error;
        out.size_bytes = 0;
        whit_status answered = answer(user, line, n_bytes, &out, &error);
        cli_write_json(call, out.size_bytes ? whit_chars(&out) : "", out.size_bytes);
        if (!cli_flush(call))
            status = CLI_IO;
        else if (answered != WHIT_OK)
            status = cli_fail(call, answered == WHIT_ERROR_MEMORY ? CLI_LIMIT : CLI_REFUSED, "line %llu: %s",
                              (unsigned long long)number, error.message);
        if (status != CLI_OK) break;
    }
    if (more < 0)
        status = *cli_cancelled() ? CLI_INTERRUPTED : cli_fail(call, CLI_IO, "stdin: cannot read: %s", strerror(errno));
    cli_reader_free(&reader);
    whit_buf_free(&out);
    return status;
}
