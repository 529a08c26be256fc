/* SPDX-License-Identifier: MIT
 * Prints the tables of whit bench: results as Markdown, CSV or JSON. */
#ifndef WHIT_CLI_BENCH_REPORT_H
#define WHIT_CLI_BENCH_REPORT_H

#include "base/ranks.h"
#include "bench/bench.h"
#include "cli/cli.h"

typedef enum bench_form { BENCH_MD, BENCH_CSV, BENCH_JSON } bench_form;

typedef enum bench_kind { BENCH_TEXT, BENCH_COUNT, BENCH_REAL } bench_kind;

/* These columns exist only with certain options. */
enum { BENCH_WITH_STOLEN = 1, BENCH_WITH_DRAFT = 2 };

typedef struct bench_column {
    const char *key, *title; /* title NULL: not in the Markdown table */
    bench_kind kind;
    int digits;    /* in the table */
    double factor; /* in the table */
    bool is_main;  /* also shown on a terminal */
    unsigned with; /* BENCH_WITH_...: the option that adds the column; 0: always present */
} bench_column;

typedef struct bench_cell {
    char text[BENCH_NAME_BYTES];
    double number; /* NAN: unknown */
} bench_cell;
#define BENCH_COLUMNS_MAX 24

/* Describes results as a table. make_cells fills (n_columns) cells from result i. */
typedef struct bench_table {
    const bench_column *columns;
    size_t n_columns; /* at most BENCH_COLUMNS_MAX */
    unsigned with;    /* the columns that the options add */
    void (*make_cells)(const void *results, size_t i, bench_cell *cells);
    const void *results;
    size_t n;
} bench_table;

/* Prints a table as Markdown or CSV. all: Markdown has not only the main columns. */
void bench_print_table(cli_call *call, bench_form form, const bench_table *table, bool all);
/* Returns a row as an object with the columns' keys. */
json_t *bench_row_json(const bench_table *table, size_t row);

/* Prints all results. with: the columns that the options add; all: also columns that a terminal does not show. */
void bench_report(cli_call *call, bench_form form, const bench_result *results, size_t n, unsigned with, bool all);

/* Runs whit bench under mpirun, called by all ranks: measures the network, then on rank 0 the tests, by itself and with
 * the other ranks, and prints them. All tests are of one model. */
int cli_bench_ranks(cli_call *call, bench_form form, const whit_ranks *ranks, const bench_test *tests, size_t n_tests,
                    uint32_t n_rounds, bool all);

/* Runs whit bench --kernels. */
int cli_bench_kernels(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu);
/* Runs whit bench --arrays. */
int cli_bench_arrays(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu);

#endif
