/* SPDX-License-Identifier: MIT
 * Prints the table of whit bench --kernels. */
#include "cli/bench_report.h"

static void report_kernels(cli_call *call, bench_form form, const bench_kernels *list)
{
    json_t *array = json_array();
    if (form == BENCH_MD)
        cli_print(call,
                  "| format | columns | kernel | us | GB/s | of one thread's | GMAC/s | of one thread's |\n"
                  "|---|--:|---|--:|--:|--:|--:|--:|\n");
    if (form == BENCH_CSV) cli_print(call, "format,columns,kernel,isa,us,gbps,bandwidth_share,gmacs,int8_share\n");
    for (const bench_kernel *m = list->rows; m < list->rows + list->n; m++) {
        if (form == BENCH_JSON)
            json_array_append_new(array,
                                  json_pack("{s:s, s:i, s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "format", m->name,
                                            "columns", (int)m->n_columns, "kernel", m->kernel, "isa", m->isa, "us",
                                            m->us, "gbps", m->gbps, "bandwidth_share", m->read_share, "gmacs", m->gmacs,
                                            "int8_share", m->int8_share));
        else if (form == BENCH_CSV)
            cli_print(call, "\"%s\",%u,%s,%s,%.1f,%.3f,%.4f,%.1f,%.4f\n", m->name, m->n_columns, m->kernel, m->isa,
                      m->us, m->gbps, m->read_share, m->gmacs, m->int8_share);
        else
            cli_print(call, "| %s | %u | %s | %.0f | %.1f | %.0f %% | %.0f | %.0f %% |\n", m->name, m->n_columns,
                      m->kernel, m->us, m->gbps, 100 * m->read_share, m->gmacs, 100 * m->int8_share);
    }
    if (form == BENCH_JSON)
        cli_print_json(call, array);
    else
        json_decref(array);
}

int cli_bench_kernels(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu)
{
    bench_kernels list;
    whit_error error;
    const whit_status status = bench_measure_kernels(cpu, n_rounds, cli_progress, &list, &error);
    cli_progress_end();
    if (status == WHIT_OK) report_kernels(call, form, &list);
    bench_kernels_free(&list);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}
