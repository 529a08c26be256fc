/* SPDX-License-Identifier: MIT */
#include "compress/permute.h"

#include <stdbool.h>
#include <string.h>

/* Permutes the elements of each row: new element j is old element order[j]; with `back` the reverse. `row` (n) is
 * scratch memory. */
static void permute_columns(float *square, size_t n, const uint32_t *order, float *row, bool back)
{
    for (size_t i = 0; i < n; i++) {
        float *at = square + i * n;
        memcpy(row, at, n * sizeof *row);
        for (size_t j = 0; j < n; j++)
            if (back)
                at[order[j]] = row[j];
            else
                at[j] = row[order[j]];
    }
}

/* Permutes whole rows, cycle by cycle. `moved` (n) marks the rows that have been moved. */
static void permute_rows(float *square, size_t n, const uint32_t *order, float *row, float *moved, bool back)
{
    size_t bytes = n * sizeof *row;
    memset(moved, 0, bytes);
    for (size_t first = 0; first < n; first++) {
        if (moved[first] > 0 || order[first] == first) continue;
        float *kept = square + first * n;
        memcpy(row, kept, bytes);
        size_t at = first;
        for (size_t next = order[at]; next != first; at = next, next = order[at]) {
            moved[at] = 1;
            if (back) { /* the row in `row` belongs at `next` */
                for (size_t j = 0; j < n; j++) {
                    float other = square[next * n + j];
                    square[next * n + j] = row[j];
                    row[j] = other;
                }
            } else {
                memcpy(square + at * n, square + next * n, bytes);
            }
        }
        moved[at] = 1;
        memcpy(back ? kept : square + at * n, row, bytes);
    }
}

void whit_permute_square(float *square, size_t n, const uint32_t *order, float *scratch)
{
    permute_columns(square, n, order, scratch, false);
    permute_rows(square, n, order, scratch, scratch + n, false);
}

void whit_permute_back(float *square, size_t n, const uint32_t *order, float *scratch)
{
    permute_columns(square, n, order, scratch, true);
    permute_rows(square, n, order, scratch, scratch + n, true);
}
