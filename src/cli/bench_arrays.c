/* SPDX-License-Identifier: MIT
 * Prints the table of whit bench --arrays. */
#include "cli/bench_report.h"

static void report_rows(cli_call *call, bench_form form, const bench_array *rows, size_t n)
{
    json_t *array = json_array();
    if (form == BENCH_MD) cli_print(call, "| test | form | level | ns | beside the first |\n|---|---|---|--:|--:|\n");
    if (form == BENCH_CSV) cli_print(call, "test,form,isa,ns,ratio\n");
    for (const bench_array *row = rows; row < rows + n; row++) {
        if (form == BENCH_JSON)
            json_array_append_new(array,
                                  json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "test", row->test, "form", row->form,
                                            "isa", row->isa, "item", row->item, "ns", row->ns, "ratio", row->ratio));
        else
            cli_print(call, form == BENCH_MD ? "| %s | %s | %s | %.3f | %.1f |\n" : "\"%s\",\"%s\",%s,%.4f,%.2f\n",
                      row->test, row->form, row->isa, row->ns, row->ratio);
    }
    if (form == BENCH_JSON)
        cli_print_json(call, array);
    else
        json_decref(array);
}

int cli_bench_arrays(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu)
{
    bench_array rows[BENCH_ARRAYS_MAX];
    size_t n = 0;
    whit_error error = {0};
    const whit_status status = bench_measure_arrays(cpu, n_rounds, cli_cancelled(), rows, &n, &error);
    if (status == WHIT_OK) report_rows(call, form, rows, n);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}
