/* SPDX-License-Identifier: MIT
 * Implements whit list, which lists the pulled models and the converted copies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "hub/store.h"
#include "format/conversion_cache.h"

struct list_values {
    bool json, names;
};
static const struct list_values defaults;
static const cli_option options[] = {
    {"--json", CLI_FLAG, offsetof(struct list_values, json), NULL, "Print one JSON array."},
    {"--names", CLI_FLAG, offsetof(struct list_values, names), NULL, "Print the names alone, for completion."},
    {0},
};

/* A row of the list: a model, or an unfinished download. */
struct row {
    char name[WHIT_CACHE_PATH_BYTES];
    char path[WHIT_CACHE_PATH_BYTES];
    const char *format;
    uint64_t size_bytes;
    int64_t modified_s;
};

static json_t *add_row(json_t *rows, const struct row *row)
{
    char date[40] = "";
    struct tm when;
    time_t modified = (time_t)row->modified_s;
    if (gmtime_r(&modified, &when)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &when);
    json_array_append_new(rows,
                          json_pack("{s:o, s:o, s:I, s:s, s:s, s:b}", "name", cli_json_path(row->name), "path",
                                    cli_json_path(row->path), "bytes", (json_int_t)row->size_bytes, "format",
                                    row->format, "date", row->modified_s ? date : "", "finished",
                                    row->modified_s != 0));
    return rows;
}

/* Adds the models of a pulled repository: each GGUF model under the name of its first part, and all other files as one
 * folder. A repository without files is an unfinished download, which gets one row. */
static void add_models(json_t *rows, const whit_hub_entry *entry)
{
    char name[WHIT_HUB_FOLDER_BYTES];
    struct row folder = {.format = "safetensors", .modified_s = entry->modified_s};
    whit_hub_name_print(&entry->name, name);
    memcpy(folder.name, name, sizeof name);
    snprintf(folder.path, sizeof folder.path, "%s", entry->folder);
    bool is_folder = whit_hub_listing_find(&entry->files, "config.json") != NULL;
    for (size_t i = 0; i < entry->files.n_files; i++) {
        const whit_hub_file *file = &entry->files.files[i];
        size_t stem_bytes;
        unsigned part, n_parts;
        whit_hub_choice choice;
        if (!whit_hub_gguf_stem(file->path, &stem_bytes, &part, &n_parts)) {
            folder.size_bytes += file->size_bytes;
            continue;
        }
        if (part != 1 || whit_hub_choose(&entry->files, entry->name.repo, file->path, &choice, NULL) != WHIT_OK)
            continue;
        struct row row = {.format = "GGUF", .modified_s = entry->modified_s};
        snprintf(row.name, sizeof row.name, "%s:%.*s", name, WHIT_HUB_PATH_BYTES, file->path);
        for (size_t k = 0; k < choice.n_files; k++) row.size_bytes += entry->files.files[choice.files[k]].size_bytes;
        if (whit_hub_entry_path(entry, file->path, "", row.path, NULL) == WHIT_OK) add_row(rows, &row);
        whit_hub_choice_free(&choice);
    }
    if (!entry->files.n_files) {
        folder.format = "unfinished";
        folder.modified_s = 0;
        folder.size_bytes = whit_hub_entry_bytes(entry);
    }
    if (is_folder || !entry->files.n_files || folder.size_bytes) {
        if (!is_folder && entry->files.n_files) folder.format = "files";
        add_row(rows, &folder);
    }
}

/* Adds the converted copies whose sources are outside the store of pulled models. If a source was edited, or converted
 * by an older program, it has several copies. They form one row, since 'whit rm' removes them together. */
static whit_status add_converted(json_t *rows, const whit_hub_entry *pulled, size_t n_pulled, whit_error *error)
{
    whit_cached *entries;
    size_t n;
    WHIT_TRY(whit_cache_list(NULL, &entries, &n, error));
    for (size_t i = 0, end; i < n; i = end) {
        struct row row = {.format = "converted"};
        const char *source = entries[i].source[0] ? entries[i].source : entries[i].path;
        bool is_pulled = false;
        for (end = i; end < n && (end == i || (entries[i].source[0] && !strcmp(entries[end].source, source))); end++) {
            row.size_bytes += entries[end].size_bytes;
            if (row.path[0] && entries[end].modified_s < row.modified_s) continue;
            row.modified_s = entries[end].modified_s;
            snprintf(row.path, sizeof row.path, "%s", entries[end].path);
        }
        for (size_t k = 0; k < n_pulled; k++) is_pulled |= whit_path_is_below(source, pulled[k].folder);
        if (is_pulled) continue;
        if (entries[i].source[0] && !whit_path_exists(source)) row.format = "orphan";
        snprintf(row.name, sizeof row.name, "%s", source);
        add_row(rows, &row);
    }
    free(entries);
    return WHIT_OK;
}

static void print_rows(cli_call *call, const json_t *rows)
{
    enum { OTHERS = 36, NARROWEST = 20 }; /* width of the columns after the name, and minimum width of the name */
    size_t i, widest = 4, columns = cli_columns(STDOUT_FILENO);
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        size_t n = json_string_length(json_object_get(row, "name"));
        if (n > widest) widest = n;
    }
    if (!json_array_size(rows)) {
        cli_note("nothing is here yet but tales, the built-in model; 'whit pull OWNER/NAME' downloads another");
        return;
    }
    if (columns && widest + OTHERS > columns) widest = columns > OTHERS + NARROWEST ? columns - OTHERS : NARROWEST;
    cli_print(call, "%-*s  %9s  %-11s  %s\n", (int)widest, "NAME", "SIZE", "FORMAT", "DATE");
    json_array_foreach(rows, i, row)
    {
        char size[32];
        cli_bytes((uint64_t)json_integer_value(json_object_get(row, "bytes")), size);
        /* a name that is too long for its column is printed on a separate line and not cut, since users copy it */
        const char *name = json_string_value(json_object_get(row, "name"));
        bool fits = json_string_length(json_object_get(row, "name")) <= widest;
        if (!fits) cli_print(call, "%s\n", name);
        cli_print(call, "%-*s  %9s  %-11s  %.10s\n", (int)widest, fits ? name : "", size,
                  json_string_value(json_object_get(row, "format")), json_string_value(json_object_get(row, "date")));
    }
}

static void print_names(cli_call *call, const json_t *rows)
{
    size_t i;
    const json_t *row;
    cli_print(call, "tales\n");
    json_array_foreach(rows, i, row) cli_print(call, "%s\n", json_string_value(json_object_get(row, "name")));
}

static int run_list(cli_call *call)
{
    const struct list_values *values = call->values;
    whit_hub_entry *entries;
    size_t n_entries;
    whit_error error;
    if (whit_hub_store_list(NULL, &entries, &n_entries, &error) != WHIT_OK) return cli_fail_error(call, &error);
    json_t *rows = json_array();
    for (size_t i = 0; i < n_entries; i++) add_models(rows, &entries[i]);
    whit_status status = add_converted(rows, entries, n_entries, &error);
    whit_hub_store_free(entries, n_entries);
    if (status != WHIT_OK) {
        json_decref(rows);
        return cli_fail_error(call, &error);
    }
    if (values->names) {
        print_names(call, rows);
        json_decref(rows);
        return CLI_OK;
    }
    if (values->json) return cli_print_json(call, rows) ? CLI_OK : CLI_IO;
    print_rows(call, rows);
    json_decref(rows);
    return CLI_OK;
}

const cli_verb cli_list_verb = {
    "list",
    "",
    0,
    0,
    "show the models that are here",
    "Shows the name, size, format and date of every model that 'whit pull' brought; the name is what -m takes. "
    "An unfinished download is listed as such; pulling it again resumes it. Behind them come the copies in the "
    "cache that were converted from other sources, by the source's path, with the size of all copies of it: 'orphan' "
    "where that is gone. 'whit rm' takes either name.",
    {{"OPTIONS", options, 0}},
    sizeof(struct list_values),
    &defaults,
    run_list,
};
