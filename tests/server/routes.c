/* SPDX-License-Identifier: MIT
 * Tests that the table of endpoints and the table of docs/use/server.md name the same paths. */
#include "test.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/routes.h"

static char *read_document(void)
{
    FILE *file = fopen(WHIT_SOURCE_DIR "/docs/use/server.md", "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long n = ftell(file);
    rewind(file);
    char *text = malloc((size_t)n + 1);
    assert_non_null(text);
    text[fread(text, 1, (size_t)n, file)] = 0;
    fclose(file);
    return text;
}

/* Returns the length of a row's path before its "*". */
static size_t fixed_bytes(const whit_route *row)
{
    return strcspn(row->path, "*");
}

/* Returns whether a path of the document, with names in capitals instead of "*", is the path of the row. */
static bool names_row(const whit_route *row, const char *path, size_t n)
{
    if (n > 3 && !strncmp(path, "/v1/", 4) && !(row->flags & WHIT_ROUTE_BARE)) path += 3, n -= 3;
    size_t n_fixed = fixed_bytes(row);
    if (!row->path[n_fixed]) return n == n_fixed && !strncmp(path, row->path, n);
    const char *after = row->path + n_fixed + 1;
    return n > n_fixed + strlen(after) && !strncmp(path, row->path, n_fixed) && isupper((unsigned char)path[n_fixed]) &&
        !strncmp(path + n - strlen(after), after, strlen(after));
}

/* Returns the next path in backticks in a row of the document's table, or NULL at the end. `method` gets the method
 * before it, or before an earlier path of the row. */
static const char *next_path(const char **at, char method[8], size_t *n)
{
    for (; **at;) {
        if (*(*at)++ != '`') continue;
        const char *begin = *at, *end = strchr(begin, '`');
        if (!end) return NULL;
        *at = end + 1;
        size_t n_method = strspn(begin, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (n_method && n_method < 8 && begin[n_method] == ' ' && begin[n_method + 1] == '/') {
            snprintf(method, 8, "%.*s", (int)n_method, begin);
            begin += n_method + 1;
        }
        if (*begin != '/') continue;
        *n = strcspn(begin, "`?");
        return begin;
    }
    return NULL;
}

static void test_document(void **state)
{
    (void)state;
    const whit_route *rows = whit_routes;
    const size_t n_rows = whit_n_routes;
    size_t n;
    bool *found = calloc(n_rows, sizeof *found);
    char *text = read_document(), method[8] = "", *line = strstr(text, "| Endpoint |");
    assert_non_null(line);
    assert_non_null(found);
    for (char *next; *line == '|'; line = next) {
        next = strchr(line, '\n') + 1;
        char *cell_end = strstr(line + 1, " | ");   /* end of the first cell */
        if (!cell_end || cell_end > next) continue; /* not a table row with a path, such as the line after the header */
        *cell_end = 0;
        const char *at = line, *path;
        while ((path = next_path(&at, method, &n))) {
            bool known = false;
            for (size_t i = 0; i < n_rows; i++)
                if (rows[i].method && !strcmp(rows[i].method, method) && names_row(&rows[i], path, n))
                    known = found[i] = true;
            if (!known)
                print_error("docs/use/server.md: %s %.*s is not in the table of routes\n", method, (int)n, path);
            assert_true(known);
        }
    }
    for (size_t i = 0; i < n_rows; i++) {
        bool known = found[i] || !rows[i].method || !strcmp(rows[i].path, "/");
        if (!known) print_error("docs/use/server.md does not name %s %s\n", rows[i].method, rows[i].path);
        assert_true(known);
    }
    free(found);
    free(text);
}

static void test_rows(void **state)
{
    (void)state;
    const whit_route *rows = whit_routes;
    for (size_t i = 0; i < whit_n_routes; i++) {
        assert_int_equal(rows[i].path[0], '/');
        assert_int_equal(rows[i].method != NULL, rows[i].handler != NULL);
        for (size_t k = 0; k < i; k++)
            assert_false(rows[i].method && rows[k].method && !strcmp(rows[i].method, rows[k].method) &&
                         !strcmp(rows[i].path, rows[k].path));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_document), cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
