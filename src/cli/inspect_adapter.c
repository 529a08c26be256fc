/* SPDX-License-Identifier: MIT
 * Implements whit inspect for adapters, in a model's file or in a file of their own. */
#include "cli/inspect.h"

#include <string.h>

json_t *cli_describe_adapter(const whit_ndf_appended *frame)
{
    whit_adapter_view view;
    whit_error error;
    if (whit_adapter_check(frame->data, frame->size_bytes, frame->name, &view, &error) != WHIT_OK)
        return json_pack("{s:s, s:s, s:I, s:s}", "type", "ADAPTER", "name", frame->name, "bytes",
                         (json_int_t)frame->size_bytes, "damage", error.message);
    char identity[2 * WHIT_HASH_BYTES + 1];
    whit_hash_hex(view.identity, identity);
    json_t *pairs = json_array();
    for (uint32_t i = 0; i < view.n_pairs; i++) {
        whit_adapter_pair pair = whit_adapter_pair_at(&view, i);
        json_array_append_new(pairs,
                              json_pack("{s:s, s:I, s:I, s:I}", "name", pair.name, "rows",
                                        (json_int_t)pair.b.type.n_rows, "columns", (json_int_t)pair.a.type.n_cols,
                                        "rank", (json_int_t)pair.a.type.n_rows));
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:o, s:o}", "type", "ADAPTER", "name", frame->name, "bytes",
                     (json_int_t)frame->size_bytes, "model", identity, "rank", (json_int_t)view.max_rank, "metadata",
                     cli_table_to_json(&view.meta), "matrices", pairs);
}

void cli_print_adapter(cli_call *call, const json_t *adapter)
{
    const char *damage = json_string_value(json_object_get(adapter, "damage"));
    cli_print(call, "%-12s %s, ", "adapter", json_string_value(json_object_get(adapter, "name")));
    if (damage)
        cli_print(call, "damaged: %s\n", damage);
    else
        cli_print(call, "rank %lld, %zu matrices, %.3f MB, for the model %.16s\n",
                  (long long)json_integer_value(json_object_get(adapter, "rank")),
                  json_array_size(json_object_get(adapter, "matrices")),
                  (double)json_integer_value(json_object_get(adapter, "bytes")) / 1e6,
                  json_string_value(json_object_get(adapter, "model")));
}

bool cli_inspect_adapter(cli_call *call, const char *path, bool json, int *status)
{
    whit_ndf *file;
    whit_error error;
    whit_ndf_appended frame;
    if (whit_ndf_open_loose(path, NULL, &file, &error) != WHIT_OK) return false;
    *status = CLI_OK;
    if (whit_ndf_appended_at(file, 0, &frame, &error) != WHIT_OK) {
        *status = cli_fail_error(call, &error);
    } else if (frame.type != WHIT_NDF_ADAPTER) {
        *status = cli_fail(call, CLI_REFUSED, "%s: the file is neither a model nor an adapter", path);
    } else {
        json_t *adapter = cli_describe_adapter(&frame);
        if (!adapter)
            *status = cli_fail(call, CLI_LIMIT, "not enough memory for the description of the adapter");
        else if (json)
            cli_print_json(call, json_incref(adapter));
        else {
            cli_print(call, "%-12s %s\n", "file", path);
            cli_print_adapter(call, adapter);
            if (json_object_get(adapter, "metadata"))
                cli_print_table(call, "metadata", json_object_get(adapter, "metadata"));
        }
        json_decref(adapter);
    }
    whit_ndf_close(file);
    return true;
}
