/* SPDX-License-Identifier: MIT
 * Prints the tables of whit bench: results as Markdown, CSV or JSON. */
#ifndef WHIT_CLI_BENCH_REPORT_H
#define WHIT_CLI_BENCH_REPORT_H

#include "base/ranks.h"
#include "bench/bench.h"
#include "cli/cli.h"

typedef enum bench_form { BENCH_MD, BENCH_CSV, BENCH_JSON } bench_form;

typedef enum bench_kind { BENCH_TEXT, BENCH_COUNT, BENCH_REAL } bench_kind;

/* Columns that exist only with certain options; bits of `with`. */
enum { BENCH_WITH_STOLEN = 1, BENCH_WITH_DRAFT = 2 };

typedef struct bench_column {
    const char *key, *title; /* title: heading in the Markdown table; NULL: the column is not in that table */
    bench_kind kind;
    int digits;    /* decimal places in the Markdown table */
    double factor; /* in the Markdown table numbers are multiplied by this */
    bool is_main;  /* part of the short table, which a terminal shows */
    unsigned with; /* BENCH_WITH_... of the option that adds the column; 0: always present */
} bench_column;

typedef struct bench_cell {
    char text[BENCH_NAME_BYTES];
    double number; /* value of a column that is not text; NAN: unknown */
} bench_cell;
#define BENCH_COLUMNS_MAX 24

/* A table of n results. make_cells fills n_columns cells from result i. */
typedef struct bench_table {
    const bench_column *columns;
    size_t n_columns; /* at most BENCH_COLUMNS_MAX */
    unsigned with;    /* bits BENCH_WITH_... of the given options */
    void (*make_cells)(const void *results, size_t i, bench_cell *cells);
    const void *results;
    size_t n;
} bench_table;

/* Prints a table as Markdown or CSV. all: the Markdown table has all columns and not only the main ones. */
void bench_print_table(cli_call *call, bench_form form, const bench_table *table, bool all);
/* Returns a row as a JSON object whose keys are those of the columns; the caller owns it. */
json_t *bench_row_json(const bench_table *table, size_t row);

/* Prints n results. with: bits BENCH_WITH_... of the given options; all: the Markdown table has all columns and not
 * only the main ones. */
void bench_report(cli_call *call, bench_form form, const bench_result *results, size_t n, unsigned with, bool all);

/* Runs whit bench under mpirun; all ranks call it. Measures the network, then the tests on rank 0 alone and on all
 * ranks together, and prints the results. All tests must be of one model. */
int cli_bench_ranks(cli_call *call, bench_form form, const whit_ranks *ranks, const bench_test *tests, size_t n_tests,
                    uint32_t n_rounds, bool all);

/* Runs whit bench --kernels. */
int cli_bench_kernels(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu);
/* Runs whit bench --arrays. */
int cli_bench_arrays(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu);

#endif
