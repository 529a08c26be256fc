/* SPDX-License-Identifier: MIT
 * Implements whit inspect for session files: prints the model and settings that a session was made with, and its
 * turns. */
#include <string.h>

#include "cli/inspect.h"
#include "base/items.h"
#include "runtime/session_frames.h"

static const char *finish_name(uint32_t finish)
{
    static const char *const names[] = {"length", "end", "stop", "cancelled"};
    return finish < sizeof names / sizeof *names ? names[finish] : "?";
}

static whit_status on_turn(void *user, const whit_session_record *before, const whit_turn_view *turn, whit_error *error)
{
    const whit_turn_header *h = turn->header;
    json_t *item =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:I}", "frame", (json_int_t)turn->frame, "kept",
                  (json_int_t)h->n_keep, "undone", (json_int_t)(whit_session_record_n_ids(before) - (size_t)h->n_keep),
                  "given", (json_int_t)h->n_given, "picked", (json_int_t)(h->n_ids - h->n_given), "finish",
                  finish_name(h->finish), "blocks", (json_int_t)h->n_blocks);
    return json_array_append_new(user, item) == 0 ? WHIT_OK : whit_fail_memory(error, "a list of turns", 0);
}

/* Writes the hash that identifies the session's model in hexadecimal digits; "" if it is unknown. */
static void name_model(const whit_session_record *record, char text[2 * WHIT_HASH_BYTES + 1])
{
    whit_value model;
    text[0] = 0;
    if (record->begin.size_bytes && whit_table_get(&record->about, "session.model", &model) &&
        model.type == WHIT_VALUE_BYTES && model.count == WHIT_HASH_BYTES)
        whit_hash_hex(model.bytes, text);
}

static json_t *ids_of(const whit_session_record *record)
{
    json_t *list = json_array();
    const int32_t *ids = WHIT_ITEMS(const int32_t, &record->ids);
    for (size_t i = 0; i < whit_session_record_n_ids(record); i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static void print_text(cli_call *call, const json_t *facts)
{
    const json_t *turns = json_object_get(facts, "turns");
    size_t i;
    json_t *turn;
    cli_print(call, "%-12s %s\n", "file", json_string_value(json_object_get(facts, "path")));
    cli_print(call, "%-12s %zu turn%s, %lld tokens, %lld of their KV blocks, %.3f MB\n", "session",
              json_array_size(turns), json_array_size(turns) == 1 ? "" : "s",
              (long long)json_integer_value(json_object_get(facts, "tokens")),
              (long long)json_integer_value(json_object_get(facts, "blocks")),
              (double)json_integer_value(json_object_get(facts, "bytes")) / 1e6);
    cli_print(call, "%-12s %s\n", "model", json_string_value(json_object_get(facts, "model")));
    cli_print_table(call, "made with", json_object_get(facts, "about"));
    if (json_object_size(json_object_get(facts, "sampling")))
        cli_print_table(call, "sampling of the last turn", json_object_get(facts, "sampling"));
    cli_print(call, "\nturns %6s %8s %8s %8s %8s %8s  finish\n", "frame", "kept", "undone", "given", "picked",
              "blocks");
    json_array_foreach(turns, i, turn)
    {
        cli_print(call, "%5zu", i);
        for (int k = 0; k < 6; k++) {
            static const char *const keys[] = {"frame", "kept", "undone", "given", "picked", "blocks"};
            cli_print(call, k ? " %8lld" : " %6lld", (long long)json_integer_value(json_object_get(turn, keys[k])));
        }
        bool picked = json_integer_value(json_object_get(turn, "picked")) > 0;
        cli_print(call, "  %s\n", picked ? json_string_value(json_object_get(turn, "finish")) : "");
    }
}

bool cli_inspect_session(cli_call *call, const char *path, bool json, int *status)
{
    whit_ndf_log log;
    whit_session_record record = {0};
    whit_error error;
    if (!whit_ndf_begins_loose(path) || whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, NULL) != WHIT_OK)
        return false;
    if (whit_ndf_log_frame(&log, 0)->type != WHIT_NDF_SESSION) {
        whit_ndf_log_close(&log);
        return false;
    }
    json_t *turns = json_array();
    *status = CLI_OK;
    if (whit_session_record_read(&log, NULL, on_turn, turns, &record, &error) != WHIT_OK) {
        *status = cli_fail_error(call, &error);
        json_decref(turns);
    } else {
        char model[2 * WHIT_HASH_BYTES + 1];
        name_model(&record, model);
        json_t *about = record.begin.size_bytes ? cli_table_to_json(&record.about) : json_object();
        json_t *sampling = record.settings.size_bytes ? cli_table_to_json(&record.settings_table) : json_object();
        json_t *facts =
            json_pack("{s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "path", cli_json_path(path), "model", model,
                      "bytes", (json_int_t)log.end_bytes, "tokens", (json_int_t)whit_session_record_n_ids(&record),
                      "blocks", (json_int_t)whit_session_record_n_blocks(&record), "about", about, "sampling", sampling,
                      "turns", turns, "ids", ids_of(&record));
        if (!facts)
            *status = cli_fail(call, CLI_LIMIT, "not enough memory for the description of the session");
        else if (json)
            cli_print_json(call, json_incref(facts));
        else
            print_text(call, facts);
        json_decref(facts);
    }
    whit_session_record_free(&record);
    whit_ndf_log_close(&log);
    return true;
}
