/* SPDX-License-Identifier: MIT
 * Implements whit inspect, which prints the contents of a model file, and how much memory and reading the model needs
 * to run. */
#include <stdio.h>
#include <string.h>

#include "cli/flags.h"
#include "base/items.h"
#include "base/phrase.h"
#include "cli/inspect.h"
#include "cli/verbs.h"
#include "kernels/codec.h"
#include "runtime/session.h"

struct inspect_values {
    bool tensors, plan, json, no_cache;
    uint32_t rows;
    cli_list overrides;
    cli_session_flags session;
    cli_adapter_flags adapters;
};
static const struct inspect_values defaults = {.rows = 1};

#define AT(member) offsetof(struct inspect_values, member)
static const cli_option options[] = {
    {"--tensors", CLI_FLAG, AT(tensors), NULL, "List every tensor."},
    {"--plan", CLI_FLAG, AT(plan), NULL,
     "Print the operations that run on this machine, with adapters if some are named."},
    {"--rows", CLI_COUNT, AT(rows), "N",
     "With --plan: the pass has N tokens, of which the last one needs outputs; 1 by default.", 1, 1 << 20},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object with everything but the plan."},
    CLI_OVERRIDE_OPTION(AT(overrides)),
    {"--no-cache", CLI_FLAG, AT(no_cache), NULL, "Convert a source in memory and write nothing."},
    {0},
};

static json_t *value_to_json(const whit_value *value)
{
    switch (value->type) {
    case WHIT_VALUE_U64: return json_integer((json_int_t)value->u64);
    case WHIT_VALUE_I64: return json_integer(value->i64);
    case WHIT_VALUE_F64: return json_real(value->f64);
    case WHIT_VALUE_BOOL: return json_boolean(value->boolean);
    case WHIT_VALUE_STRING: {
        json_t *text = json_stringn(value->string, value->count);
        return text ? text : json_null(); /* the string is not UTF-8 */
    }
    default: return json_pack("{s:I}", "elements", (json_int_t)value->count);
    }
}

json_t *cli_table_to_json(const whit_table *table)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < whit_table_count(table); i++) {
        whit_value value;
        const char *key = whit_table_at(table, i, &value);
        json_object_set_new(object, key, value_to_json(&value));
    }
    return object;
}

static const char *scale_name(const whit_tensor_type *type)
{
    static const char *const kinds[] = {"none", "tensor", "row", "group"};
    return type->scale_kind < 4 ? kinds[type->scale_kind] : "?";
}

static json_t *tensor_to_json(const whit_ndf *file, uint32_t i)
{
    static const char *const scale_types[] = {"f32", "f16", "u8"};
    const whit_tensor_type *type = whit_ndf_tensor_type(file, i);
    char digest[2 * WHIT_HASH_BYTES + 1];
    whit_hash_hex(whit_ndf_tensor_digest(file, i), digest);
    whit_tensor parts;
    whit_ndf_tensor(file, i, &parts);
    uint64_t bytes = whit_codec_tensor_bytes(&parts);
    json_t *tensor =
        json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:s}", "name", whit_ndf_tensor_name(file, i), "rows",
                  (json_int_t)type->n_rows, "columns", (json_int_t)type->n_cols, "codec",
                  whit_codec_find(type->codec)->name, "layout", type->layout == WHIT_LAYOUT_TILE16 ? "tile16" : "plain",
                  "scales", scale_name(type), "bytes", (json_int_t)bytes, "digest", digest);
    if (type->scale_kind != WHIT_SCALE_NONE && type->scale_type < 3)
        json_object_set_new(tensor, "scale_type", json_string(scale_types[type->scale_type]));
    if (type->group) json_object_set_new(tensor, "group", json_integer(type->group));
    if (parts.part_bytes[WHIT_PART_OUTLIERS])
        json_object_set_new(tensor, "outlier_bytes", json_integer((json_int_t)parts.part_bytes[WHIT_PART_OUTLIERS]));
    if (parts.part_bytes[WHIT_PART_PLANE])
        json_object_set_new(tensor, "plane_bytes", json_integer((json_int_t)parts.part_bytes[WHIT_PART_PLANE]));
    if (parts.part_bytes[WHIT_PART_FACTOR_A])
        json_object_set_new(
            tensor, "low_rank_bytes",
            json_integer((json_int_t)(parts.part_bytes[WHIT_PART_FACTOR_A] + parts.part_bytes[WHIT_PART_FACTOR_B])));
    if (type->act == WHIT_TENSOR_ACT_TOKEN) json_object_set_new(tensor, "activations", json_string("i8 per token"));
    return tensor;
}

/* Returns the facts about a model as a JSON object; the text form is printed from it, too. */
static json_t *describe_model(const char *path, const whit_model *model, const whit_session_options *session,
                              const cli_adapters *adapters)
{
    const whit_ndf *file = model->file;
    char identity[2 * WHIT_HASH_BYTES + 1];
    whit_hash_hex(whit_ndf_identity(file), identity);
    uint64_t n_weights = 0, tensor_bytes = 0;
    json_t *tensors = json_array(), *files = json_array(), *templates = json_array(), *appended = json_array();
    for (uint32_t i = 0; i < whit_ndf_n_tensors(file); i++) {
        const whit_tensor_type *type = whit_ndf_tensor_type(file, i);
        whit_tensor parts;
        whit_ndf_tensor(file, i, &parts);
        n_weights += (uint64_t)type->n_rows * type->n_cols;
        tensor_bytes += whit_codec_tensor_bytes(&parts);
        json_array_append_new(tensors, tensor_to_json(file, i));
    }
    for (uint32_t i = 0; i < whit_ndf_n_files(file); i++) {
        uint64_t bytes;
        const char *name = whit_ndf_file(file, i, &bytes);
        json_array_append_new(files, json_pack("{s:o, s:I}", "path", cli_json_path(name), "bytes", (json_int_t)bytes));
    }
    for (uint32_t i = 0; i < whit_table_count(whit_ndf_templates(file)); i++) {
        whit_value value;
        json_array_append_new(templates, json_string(whit_table_at(whit_ndf_templates(file), i, &value)));
    }
    for (uint32_t i = 0; i < whit_ndf_n_appended(file); i++) {
        whit_ndf_appended frame;
        if (whit_ndf_appended_at(file, i, &frame, NULL) != WHIT_OK) continue;
        if (frame.type == WHIT_NDF_ADAPTER)
            json_array_append_new(appended, cli_describe_adapter(&frame));
        else
            json_array_append_new(appended,
                                  json_pack("{s:s, s:s, s:I}", "type", whit_ndf_frame_type_name(frame.type), "name",
                                            frame.name, "bytes", (json_int_t)frame.size_bytes));
    }
    size_t session_bytes = 0, tokenizer_bytes = 0;
    whit_mark_counts marks = {.struct_bytes = sizeof marks};
    if (whit_session_predict_marks(model, session, &marks, NULL) != WHIT_OK)
        marks = (whit_mark_counts){.struct_bytes = sizeof marks};
    whit_session_predict_bytes(model, session, adapters->mounts, adapters->n, &session_bytes, NULL);
    whit_ndf_tokenizer(file, &tokenizer_bytes);
    return json_pack("{s:o, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
                     cli_json_path(path), "identity", identity, "family", model->config.family, "parameters",
                     (json_int_t)n_weights, "tensor_bytes", (json_int_t)tensor_bytes, "body_bits_per_weight",
                     whit_weights_layer_bits(&model->weights), "tokenizer_bytes", (json_int_t)tokenizer_bytes,
                     "context", (json_int_t)whit_model_context_size(model), "session_bytes", (json_int_t)session_bytes,
                     "checkpoints", (json_int_t)marks.n_marks_max, "checkpoint_bytes", (json_int_t)marks.mark_bytes,
                     "config", cli_table_to_json(whit_ndf_config(file)), "metadata",
                     cli_table_to_json(whit_ndf_meta(file)), "templates", templates, "files", files, "appended",
                     appended, "tensors", tensors);
}

void cli_print_table(cli_call *call, const char *title, const json_t *table)
{
    const char *key;
    json_t *value;
    cli_print(call, "\n%s\n", title);
    json_object_foreach((json_t *)table, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        const bool is_cut = text && strlen(text) > 100 && strcmp(key, "whit.command") != 0;
        cli_print(call, is_cut ? "  %-34s %.100s...\n" : "  %-34s %s\n", key, whit_or_empty(text));
        free(text);
    }
}

static double read_number(const json_t *facts, const char *key)
{
    return json_number_value(json_object_get(facts, key));
}

/* Prints the codecs that a budget of bits has chosen for the matrices (whit compress --bits). */
static void print_choice(cli_call *call, const json_t *metadata)
{
    const char *line = json_string_value(json_object_get(metadata, "whit.bits"));
    if (!line) return;
    cli_print(call, "\nchoice of codecs\n");
    for (const char *end; (end = strchr(line, '\n')); line = end + 1)
        cli_print(call, "  %.*s\n", (int)(end - line < 200 ? end - line : 200), line);
}

static void print_text(cli_call *call, const json_t *facts, bool all_tensors)
{
    const json_t *tensors = json_object_get(facts, "tensors");
    cli_print(call, "%-12s %s\n", "file", json_string_value(json_object_get(facts, "path")));
    cli_print(call, "%-12s %s\n", "identity", json_string_value(json_object_get(facts, "identity")));
    cli_print(call, "%-12s %s, %.3f M parameters, context %.0f\n", "model",
              json_string_value(json_object_get(facts, "family")), read_number(facts, "parameters") / 1e6,
              read_number(facts, "context"));
    cli_print(call, "%-12s %zu tensors, %.3f MB, %.3f bits per weight in the layers\n", "weights",
              json_array_size(tensors), read_number(facts, "tensor_bytes") / 1e6,
              read_number(facts, "body_bits_per_weight"));
    cli_print(call, "%-12s %.3f MB beside the weights\n", "session", read_number(facts, "session_bytes") / 1e6);
    if (read_number(facts, "checkpoint_bytes") > 0)
        cli_print(call, "%-12s at most %.0f of %.3f MB, in the session\n", "checkpoints",
                  read_number(facts, "checkpoints"), read_number(facts, "checkpoint_bytes") / 1e6);
    size_t i_frame;
    json_t *frame;
    json_array_foreach(json_object_get(facts, "appended"), i_frame,
                       frame) if (!strcmp(json_string_value(json_object_get(frame, "type")), "ADAPTER"))
        cli_print_adapter(call, frame);
    cli_print_table(call, "configuration", json_object_get(facts, "config"));
    cli_print_table(call, "metadata", json_object_get(facts, "metadata"));
    print_choice(call, json_object_get(facts, "metadata"));
    if (!all_tensors) return;
    cli_print(call, "\ntensors\n");
    size_t i;
    json_t *tensor;
    json_array_foreach(tensors, i, tensor)
        cli_print(call, "  %-34s %7.0f x %-7.0f %-5s scales %-7s %12.0f bytes\n",
                  json_string_value(json_object_get(tensor, "name")), read_number(tensor, "rows"),
                  read_number(tensor, "columns"), json_string_value(json_object_get(tensor, "codec")),
                  json_string_value(json_object_get(tensor, "scales")), read_number(tensor, "bytes"));
}

static const char *tensor_name(void *file, int32_t tensor)
{
    return whit_ndf_tensor_name(file, (uint32_t)tensor);
}

/* Prints the plan of a pass over n_rows rows with greedy sampling, which needs only the last row's logits. Returns an
 * exit status. */
static int print_plan(cli_call *call, const whit_model *model, whit_session_options wanted, uint32_t n_rows,
                      bool is_adapted)
{
    whit_session *session = NULL;
    whit_buf text = {0};
    whit_error error;
    wanted.n_ctx_tokens = wanted.n_batch_tokens = n_rows;
    wanted.n_sequences = wanted.n_threads = 1;
    if (whit_session_open(model, &wanted, &session, &error) != WHIT_OK) return cli_fail_error(call, &error);
    const whit_exec_schedules *schedules = &session->schedules;
    const uint32_t n[WHIT_ROWS_COUNT] = {n_rows, 1};
    const int mode[WHIT_ROWS_COUNT] = {is_adapted ? WHIT_EXEC_ADAPTED : WHIT_EXEC_PLAIN,
                                       wanted.exact_head ? WHIT_EXEC_PLAIN : WHIT_EXEC_SCREENED};
    for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++)
        whit_schedule_print(
            &session->plan,
            &schedules->list[whit_exec_schedule_of(schedules, (whit_row_set)rows, mode[rows], n[rows])].schedule,
            tensor_name, model->file, &text);
    whit_plan_print_slots(&session->plan, &text);
    whit_session_close(session);
    int status = text.failed ? cli_fail(call, CLI_LIMIT, "not enough memory for the graph's text") : CLI_OK;
    if (status == CLI_OK) cli_write(call, whit_chars(&text), text.size_bytes);
    whit_buf_free(&text);
    return status;
}

/* Returns whether a file is an associative memory, which `whit memory` can show. */
static bool is_memory(const char *path)
{
    whit_ndf *file;
    if (!whit_ndf_begins_loose(path) || whit_ndf_open_loose(path, NULL, &file, NULL) != WHIT_OK) return false;
    bool is = whit_ndf_n_appended(file) && whit_ndf_appended_type(file, 0) == WHIT_NDF_MEMORY;
    whit_ndf_close(file);
    return is;
}

static int run_inspect(cli_call *call)
{
    const struct inspect_values *values = call->values;
    whit_model *model = NULL;
    cli_adapters adapters = {0};
    int status;
    if (cli_inspect_session(call, call->operands[0], values->json, &status)) return status;
    if (is_memory(call->operands[0]))
        return cli_fail(call, CLI_REFUSED, "%s: the file is a memory; 'whit memory stats %s' describes its contents",
                        call->operands[0], call->operands[0]);
    if (cli_inspect_adapter(call, call->operands[0], values->json, &status)) return status;
    const cli_model_flags flags = {
        .path = call->operands[0], .no_cache = values->no_cache, .overrides = values->overrides};
    status = cli_open_flagged_model(call, &flags, &model);
    if (status == CLI_OK) status = cli_open_adapters(call, &values->adapters, model, &adapters);
    whit_session_options session = cli_session_wanted(&values->session, WHIT_ACT_I8);
    session.only_vectors = model && !whit_model_makes_text(model);
    if (status == CLI_OK && values->plan) {
        status = print_plan(call, model, session, values->rows, adapters.n > 0);
    } else if (status == CLI_OK) {
        json_t *facts = describe_model(call->operands[0], model, &session, &adapters);
        if (!facts) {
            status = cli_fail(call, CLI_LIMIT, "not enough memory for the description of the model");
        } else if (values->json) {
            cli_print_json(call, facts);
        } else {
            print_text(call, facts, values->tensors);
            json_decref(facts);
        }
    }
    cli_close_adapters(&adapters);
    whit_model_close(model);
    return status;
}

const cli_verb cli_inspect_verb = {
    "inspect",
    "FILE",
    1,
    1,
    "show what a model, an adapter or a session holds",
    "Shows the identity, configuration, metadata and tensors of a model, and the memory that a "
    "session with the given options and adapters takes beside the weights; of an adapter, its matrices; of a session "
    "file, what it was made with and its turns. In the JSON "
    "object, "
    "\"body_bits_per_weight\" counts all bits of the layers' matrices, scales and padding "
    "included.\n"
    "  whit inspect model.ndf --json\n"
    "  whit inspect model.ndf --plan",
    {{"OPTIONS", options, 0},
     {"SESSION", cli_session_options, AT(session)},
     {"ADAPTERS", cli_adapter_options, AT(adapters)}},
    sizeof(struct inspect_values),
    &defaults,
    run_inspect,
};
