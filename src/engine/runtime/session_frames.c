/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "runtime/session_frames.h"
#include "base/items.h"

#include "runtime/adapter.h"
#include "runtime/session.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- sampler settings ----------------------------------------------------------------------- */

typedef struct setting {
    const char *key;
    uint32_t offset;
    bool is_int;
} setting;

#define FLOAT(name)                                                                                                    \
    {                                                                                                                  \
        "sampler." #name, offsetof(whit_sampler_options, name), false                                                  \
    }
#define INT(name)                                                                                                      \
    {                                                                                                                  \
        "sampler." #name, offsetof(whit_sampler_options, name), true                                                   \
    }
static const setting settings[] = {
    FLOAT(temperature),
    FLOAT(dynatemp_range),
    FLOAT(dynatemp_exponent),
    INT(top_k),
    FLOAT(top_p),
    FLOAT(min_p),
    FLOAT(typical_p),
    FLOAT(top_n_sigma),
    FLOAT(xtc_probability),
    FLOAT(xtc_threshold),
    FLOAT(repeat_penalty),
    FLOAT(presence_penalty),
    FLOAT(frequency_penalty),
    INT(penalty_last_n),
    FLOAT(dry_multiplier),
    FLOAT(dry_base),
    INT(dry_allowed_length),
    INT(dry_penalty_last_n),
    INT(mirostat),
    FLOAT(mirostat_tau),
    FLOAT(mirostat_eta),
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

whit_status whit_session_settings_build(const whit_sampler_options *options, uint64_t n_stages, whit_buf *out,
                                        whit_error *error)
{
    whit_table_builder table = {.allocator = out->allocator};
    whit_buf ids = {.allocator = out->allocator}, values = {.allocator = out->allocator};
    whit_table_set_u64(&table, "sampler.seed", options->seed);
    whit_table_set_u64(&table, "sampler.n_history_tokens", options->n_history_tokens);
    /* number of stages that change the logits before the sampler */
    if (n_stages) whit_table_set_u64(&table, "sampler.n_stages", n_stages);
    for (int i = 0; i < N_SETTINGS; i++) {
        const char *at = (const char *)options + settings[i].offset;
        if (settings[i].is_int)
            whit_table_set_i64(&table, settings[i].key, *(const int32_t *)(const void *)at);
        else
            whit_table_set_f64(&table, settings[i].key, (double)*(const float *)(const void *)at);
    }
    for (size_t i = 0; i < options->n_biases; i++) {
        int64_t id = options->bias_ids[i];
        double value = (double)options->bias_values[i];
        whit_buf_append(&ids, &id, sizeof id);
        whit_buf_append(&values, &value, sizeof value);
    }
    whit_status status = WHIT_OK;
    if (ids.failed || values.failed) status = whit_fail_memory(error, "the sampler's settings", ids.size_bytes);
    if (status == WHIT_OK && options->n_biases) {
        whit_table_set_i64_array(&table, "sampler.bias_ids", WHIT_ITEMS(const int64_t, &ids), options->n_biases);
        whit_table_set_f64_array(&table, "sampler.bias_values", WHIT_ITEMS(const double, &values), options->n_biases);
    }
    if (status == WHIT_OK) status = whit_table_build(&table, out, error);
    whit_table_builder_free(&table);
    whit_buf_free(&ids);
    whit_buf_free(&values);
    return status;
}

whit_status whit_session_settings_read(const whit_table *table, whit_sampler_options *options, whit_buf *bias_ids,
                                       whit_buf *bias_values, whit_error *error)
{
    uint64_t history = 0;
    *options = whit_sampler_options_default();
    if (!whit_table_get_u64(table, "sampler.seed", &options->seed) ||
        !whit_table_get_u64(table, "sampler.n_history_tokens", &history) || history > UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "the file's sampler settings have no valid seed or history: the file is damaged");
    options->n_history_tokens = (uint32_t)history;
    for (int i = 0; i < N_SETTINGS; i++) {
        char *at = (char *)options + settings[i].offset;
        int64_t integer;
        double real;
        if (settings[i].is_int && whit_table_get_i64(table, settings[i].key, &integer) && integer == (int32_t)integer)
            *(int32_t *)(void *)at = (int32_t)integer;
        else if (!settings[i].is_int && whit_table_get_f64(table, settings[i].key, &real))
            *(float *)(void *)at = (float)real;
        else
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "the file's sampler settings have no valid '%s': the file is damaged", settings[i].key);
    }
    whit_value ids, values;
    if (!whit_table_get(table, "sampler.bias_ids", &ids)) return WHIT_OK;
    if (!whit_table_get(table, "sampler.bias_values", &values) || ids.type != WHIT_VALUE_I64_ARRAY ||
        values.type != WHIT_VALUE_F64_ARRAY || ids.count != values.count)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "the file's sampler settings have unequal numbers of biases and tokens: the file is damaged");
    bias_ids->size_bytes = bias_values->size_bytes = 0;
    for (uint64_t i = 0; i < ids.count; i++) {
        int32_t id = (int32_t)ids.i64s[i];
        float value = (float)values.f64s[i];
        if (id != ids.i64s[i])
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "a bias in the file's sampler settings names no token: the file is damaged");
        if (!whit_buf_append(bias_ids, &id, sizeof id) || !whit_buf_append(bias_values, &value, sizeof value))
            return whit_fail_memory(error, "the sampler's settings", bias_ids->size_bytes);
    }
    options->bias_ids = WHIT_ITEMS(const int32_t, bias_ids);
    options->bias_values = WHIT_ITEMS(const float, bias_values);
    options->n_biases = (size_t)ids.count;
    return WHIT_OK;
}

/* ---- the BEGIN frame ------------------------------------------------------------------------ */

const char *const whit_session_kv_names[] = {"f16", "f32", "i8", "k4v2", "k2v2", "bitmap"};
const char *const whit_session_act_names[] = {"f32", "i8", "q2"};

/* Computes a hash of an adapter's bytes, so that the adapter is recognised independently of its name. */
static void digest_adapter(const whit_adapter *adapter, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "ndf.adapter");
    whit_hash_add(&hash, adapter->view.data, adapter->view.size_bytes);
    whit_hash_end(&hash, digest);
}

static const char *adapter_name(const whit_adapter *adapter)
{
    const char *name = whit_table_get_string(&adapter->view.meta, "general.name");
    return whit_or_empty(name);
}

whit_status whit_session_begin_build(const whit_session *s, uint32_t sequence, const char *purpose, whit_buf *out,
                                     whit_error *error)
{
    const whit_session_mounts *mounts = &s->mounts[sequence];
    uint8_t digests[WHIT_MOUNTS_MAX * WHIT_HASH_BYTES];
    double scales[WHIT_MOUNTS_MAX];
    const char *names[WHIT_MOUNTS_MAX];
    for (uint32_t i = 0; i < mounts->n; i++) {
        digest_adapter(mounts->items[i].adapter, digests + i * WHIT_HASH_BYTES);
        scales[i] = (double)mounts->items[i].scale;
        names[i] = adapter_name(mounts->items[i].adapter);
    }
    whit_table_builder table = {.allocator = out->allocator};
    whit_table_set_bytes(&table, "session.model", whit_model_identity(s->model), WHIT_HASH_BYTES);
    whit_table_set_string(&table, "session.purpose", purpose);
    whit_table_set_string(&table, "session.kv", whit_session_kv_names[s->options.kv]);
    if (whit_kv_is_packed(s->options.kv)) whit_table_set_u64(&table, "session.kv_window", s->options.n_kv_window);
    whit_table_set_string(&table, "session.act", whit_session_act_names[s->options.act]);
    whit_table_set_u64(&table, "session.context", s->options.n_ctx_tokens);
    whit_table_set_u64(&table, "session.block_bytes", whit_kv_whole_block_bytes(&s->kv));
    if (mounts->n) {
        whit_table_set_bytes(&table, "session.adapters", digests, (size_t)mounts->n * WHIT_HASH_BYTES);
        whit_table_set_f64_array(&table, "session.adapter_scales", scales, mounts->n);
        whit_table_set_string_array(&table, "session.adapter_names", names, NULL, mounts->n);
    }
    const uint64_t head[8] = {WHIT_SESSION_BEGIN};
    whit_status status = whit_buf_append(out, head, sizeof head) ? whit_table_build(&table, out, error)
                                                                 : whit_fail_memory(error, "a frame", sizeof head);
    whit_table_builder_free(&table);
    return status;
}

static whit_status refuse_record(const whit_session_record *record, const char *what, const char *there,
                                 const char *here, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "%s: the session was made with %s %s, but this run has %s: use the same, or another file",
                     record->log->path, what, there ? there : "(none)", here);
}

whit_status whit_session_adapters_check(const whit_session_record *record, const whit_session *s, uint32_t sequence,
                                        whit_error *error)
{
    const whit_session_mounts *mounts = &s->mounts[sequence];
    whit_value digests = {0}, scales = {0}, names = {0};
    uint64_t n = 0;
    if (whit_table_get(&record->about, "session.adapters", &digests)) {
        n = digests.count / WHIT_HASH_BYTES;
        if (digests.type != WHIT_VALUE_BYTES || digests.count % WHIT_HASH_BYTES ||
            !whit_table_get(&record->about, "session.adapter_scales", &scales) || scales.type != WHIT_VALUE_F64_ARRAY ||
            scales.count != n || !whit_table_get(&record->about, "session.adapter_names", &names) ||
            names.type != WHIT_VALUE_STRING_ARRAY || names.count != n)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: its list of adapters is invalid: the session is damaged; begin a new one",
                             record->log->path);
    }
    for (uint64_t i = 0; i < n || i < mounts->n; i++) {
        uint8_t digest[WHIT_HASH_BYTES];
        char there[160] = "no further one", here[160] = "none";
        if (i < mounts->n) {
            digest_adapter(mounts->items[i].adapter, digest);
            snprintf(here, sizeof here, "'%.100s' at %g", adapter_name(mounts->items[i].adapter),
                     (double)mounts->items[i].scale);
        }
        if (i < n)
            snprintf(there, sizeof there, "'%.100s' at %g", whit_value_string_at(&names, i, NULL), scales.f64s[i]);
        if (i >= n || i >= mounts->n || memcmp(digest, digests.bytes + i * WHIT_HASH_BYTES, sizeof digest) != 0 ||
            scales.f64s[i] != (double)mounts->items[i].scale)
            return refuse_record(record, "the adapter", there, here, error);
    }
    return WHIT_OK;
}

whit_status whit_session_begin_check(const whit_session_record *record, const whit_session *s, uint32_t sequence,
                                     const char *purpose, whit_error *error)
{
    const whit_table *about = &record->about;
    whit_value model;
    uint64_t block_bytes, n_ctx = 0;
    if (!whit_table_get(about, "session.model", &model) || model.type != WHIT_VALUE_BYTES ||
        model.count != WHIT_HASH_BYTES)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the session does not name its model: it is damaged; begin a new one", record->log->path);
    if (memcmp(model.bytes, whit_model_identity(s->model), WHIT_HASH_BYTES) != 0) {
        char there[2 * WHIT_HASH_BYTES + 1], here[2 * WHIT_HASH_BYTES + 1];
        whit_hash_hex(model.bytes, there);
        whit_hash_hex(whit_model_identity(s->model), here);
        there[16] = here[16] = 0;
        return refuse_record(record, "the model", there, here, error);
    }
    const char *kv = whit_table_get_string(about, "session.kv"), *act = whit_table_get_string(about, "session.act");
    const char *there = whit_table_get_string(about, "session.purpose");
    if (!there || strcmp(there, purpose)) return refuse_record(record, "the purpose", there, purpose, error);
    if (!kv || strcmp(kv, whit_session_kv_names[s->options.kv]))
        return refuse_record(record, "the KV cache", kv, whit_session_kv_names[s->options.kv], error);
    uint64_t n_kv_window;
    if (whit_kv_is_packed(s->options.kv) &&
        (!whit_table_get_u64(about, "session.kv_window", &n_kv_window) || n_kv_window != s->options.n_kv_window))
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: the session was made with another window of unpacked KV blocks than %u: use that, or another file",
            record->log->path, s->options.n_kv_window);
    if (!act || strcmp(act, whit_session_act_names[s->options.act]))
        return refuse_record(record, "the activations", act, whit_session_act_names[s->options.act], error);
    if (!whit_table_get_u64(about, "session.block_bytes", &block_bytes) ||
        block_bytes != whit_kv_whole_block_bytes(&s->kv))
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the session's KV blocks do not have this model's size: it is damaged; begin a new one",
                         record->log->path);
    if (!whit_table_get_u64(about, "session.context", &n_ctx) || n_ctx > UINT32_MAX ||
        !whit_rope_same_frequencies(&s->model->config, (uint32_t)n_ctx, s->options.n_ctx_tokens))
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "%s: the session was made in a context of %llu tokens, in which this model's positions are not those "
            "of a context of %u: open it with that context",
            record->log->path, (unsigned long long)n_ctx, s->options.n_ctx_tokens);
    return whit_session_adapters_check(record, s, sequence, error);
}

/* ---- reading frames ------------------------------------------------------------------------- */

static whit_status read_begin(whit_session_record *record, uint32_t frame, const uint8_t *data, size_t size_bytes,
                              whit_error *error)
{
    char place[256];
    snprintf(place, sizeof place, "%.200s: the session's beginning", record->log->path);
    if (record->begin.size_bytes)
        return whit_ndf_log_bad(record->log, frame, "a second beginning of the session", error);
    if (size_bytes < 64) return whit_ndf_log_bad(record->log, frame, "it is too short", error);
    if (!whit_buf_append(&record->begin, data + 64, size_bytes - 64))
        return whit_fail_memory(error, "a session", size_bytes);
    return whit_table_open(record->begin.data, record->begin.size_bytes, place, &record->about, error);
}

static uint64_t up(uint64_t n, uint64_t multiple)
{
    return (n + multiple - 1) & ~(multiple - 1);
}

/* Offsets in bytes of a turn's parts in its data; `end`: end of the note. place_parts computes them, and returns false
 * if the parts exceed data_bytes. */
typedef struct turn_parts {
    uint64_t settings, note, end, blocks, tail;
} turn_parts;

static bool place_parts(const whit_turn_header *h, uint64_t data_bytes, turn_parts *at)
{
    uint64_t blocks_bytes;
    if (h->n_ids > data_bytes / sizeof(int32_t) || h->settings_bytes > data_bytes || h->note_bytes > data_bytes)
        return false;
    at->settings = up(sizeof *h + h->n_ids * sizeof(int32_t), 8);
    at->note = up(at->settings + h->settings_bytes, 8);
    at->end = at->note + h->note_bytes;
    at->blocks = up(at->end, 64);
    if (__builtin_mul_overflow(h->block_bytes, (uint64_t)h->n_blocks, &blocks_bytes)) return false;
    if (!h->n_blocks && !h->tail_bytes) return at->end <= data_bytes;
    if (!whit_in_bounds(at->blocks, blocks_bytes, data_bytes)) return false;
    at->tail = at->blocks + blocks_bytes;
    return whit_in_bounds(at->tail, h->tail_bytes, data_bytes);
}

/* Returns the reason why a turn contradicts itself or the record of earlier turns, for an error message; NULL if it is
 * valid. */
static const char *check_turn(const whit_session_record *record, const whit_turn_header *h, const int32_t *ids)
{
    uint64_t n_before = whit_session_record_n_ids(record);
    if (h->n_keep > n_before) return "it keeps more tokens than there are";
    uint64_t n_after = h->n_keep + h->n_ids;
    if (h->n_given > h->n_ids || n_after > UINT32_MAX / 2) return "its counts of tokens contradict each other";
    if (h->n_present > n_after || h->n_present + 1 < n_after)
        return "its count of present tokens contradicts the others";
    if (h->finish > WHIT_FINISH_FAILED) return "its ending is not known";
    for (uint64_t i = 0; i < h->n_ids; i++)
        if (ids[i] < 0) return "it has a negative token";
    for (size_t i = 0; i < sizeof h->reserved / sizeof *h->reserved; i++)
        if (h->reserved[i]) return "its reserved words are not 0";
    if (h->tail_bytes && !h->n_present) return "its tail has no tokens";
    if (h->n_blocks == 0) return NULL;
    uint64_t n_kept = h->n_keep / 64, n_stored = whit_session_record_n_blocks(record);
    if (n_stored > n_kept) n_stored = n_kept;
    if (h->first_block != n_stored || (uint64_t)h->first_block + h->n_blocks > h->n_present / 64)
        return "its blocks do not follow the earlier ones";
    uint64_t block_bytes;
    if (!whit_table_get_u64(&record->about, "session.block_bytes", &block_bytes) || block_bytes != h->block_bytes)
        return "its blocks have another size than the session's";
    return NULL;
}

static whit_status append_data(whit_buf *buf, const void *data, size_t size_bytes, whit_error *error)
{
    return whit_buf_append(buf, data, size_bytes) ? WHIT_OK : whit_fail_memory(error, "a session", size_bytes);
}

whit_status whit_session_record_add(whit_session_record *record, const whit_turn_view *turn, whit_error *error)
{
    const whit_turn_header *h = turn->header;
    /* All memory is reserved first, so that the update cannot fail in the middle. */
    if (!whit_buf_reserve(&record->ids, h->n_ids * sizeof(int32_t)) ||
        !whit_buf_reserve(&record->blocks, h->n_blocks * sizeof(uint64_t)) ||
        !whit_buf_reserve(&record->tails, sizeof(whit_tail_view)) || !whit_buf_reserve(&record->notes, h->note_bytes) ||
        !whit_buf_reserve(&record->note_ends, sizeof(uint64_t)))
        return whit_fail_memory(error, "a session", h->n_ids * sizeof(int32_t));
    record->ids.size_bytes = h->n_keep * sizeof(int32_t);
    WHIT_TRY(append_data(&record->ids, turn->ids, h->n_ids * sizeof(int32_t), error));
    if (whit_session_record_n_blocks(record) > h->n_keep / 64)
        record->blocks.size_bytes = h->n_keep / 64 * sizeof(uint64_t);
    for (uint32_t b = 0; b < h->n_blocks; b++) {
        uint64_t offset = turn->blocks_offset + b * h->block_bytes;
        WHIT_TRY(append_data(&record->blocks, &offset, sizeof offset, error));
    }
    if (h->n_blocks) record->block_bytes = h->block_bytes;
    const whit_tail_view *tails = WHIT_ITEMS(const whit_tail_view, &record->tails);
    while (record->tails.size_bytes && tails[whit_session_record_n_tails(record) - 1].n_tokens > h->n_keep)
        record->tails.size_bytes -= sizeof *tails;
    const whit_tail_view tail = {h->n_present, turn->tail_offset, h->tail_bytes};
    if (h->tail_bytes) WHIT_TRY(append_data(&record->tails, &tail, sizeof tail, error));
    WHIT_TRY(append_data(&record->notes, turn->note, h->note_bytes, error));
    uint64_t end = record->notes.size_bytes;
    WHIT_TRY(append_data(&record->note_ends, &end, sizeof end, error));
    record->n_present = h->n_present;
    if (h->n_ids > h->n_given) {
        record->after = h->after;
        record->has_picks = true;
    }
    record->n_turns++;
    return WHIT_OK;
}

/* Checks a turn and adds it to the record. data: the first n_bytes of the frame's data, up to the blocks; offset:
 * offset of the frame's data in the file; data_bytes: their whole size. */
static whit_status read_turn(whit_session_record *record, uint32_t frame, uint64_t offset, const uint8_t *data,
                             size_t n_bytes, uint64_t data_bytes, whit_turn_fn *on_turn, void *user, whit_error *error)
{
    const whit_ndf_log *log = record->log;
    const whit_turn_header *h = (const whit_turn_header *)(const void *)data;
    turn_parts at = {0};
    if (!record->begin.size_bytes) return whit_ndf_log_bad(log, frame, "no beginning of a session precedes it", error);
    if (n_bytes < sizeof *h || !place_parts(h, data_bytes, &at) || at.end > n_bytes)
        return whit_ndf_log_bad(log, frame, "its parts are outside the frame", error);
    const int32_t *ids = (const int32_t *)(const void *)(data + sizeof *h);
    const char *reason = check_turn(record, h, ids);
    if (reason) return whit_ndf_log_bad(log, frame, reason, error);
    if (h->settings_bytes) {
        char place[256];
        snprintf(place, sizeof place, "%.200s: frame %" PRIu32 ": sampler settings", log->path, frame);
        record->settings.size_bytes = 0;
        WHIT_TRY(append_data(&record->settings, data + at.settings, h->settings_bytes, error));
        record->settings_table = (whit_table){0};
        WHIT_TRY(
            whit_table_open(record->settings.data, record->settings.size_bytes, place, &record->settings_table, error));
    }
    if (h->n_ids > h->n_given && !record->settings.size_bytes)
        return whit_ndf_log_bad(log, frame, "the turn does not name the sampler of its tokens", error);
    whit_turn_view turn = {.header = h,
                           .frame = frame,
                           .number = record->n_turns,
                           .ids = ids,
                           .settings = record->settings.size_bytes ? &record->settings_table : NULL,
                           .note = (const char *)data + at.note,
                           .blocks_offset = offset + at.blocks,
                           .tail_offset = offset + at.tail};
    if (on_turn) WHIT_TRY(on_turn(user, record, &turn, error));
    return whit_session_record_add(record, &turn, error);
}

/* Sets *n_bytes to the size of a frame's data without blocks and tail. */
static whit_status head_bytes(const whit_ndf_log *log, uint32_t frame, uint64_t offset, uint64_t data_bytes,
                              size_t *n_bytes, whit_error *error)
{
    whit_turn_header h = {0};
    turn_parts at;
    if (data_bytes < 64) return whit_ndf_log_bad(log, frame, "it is too short", error);
    WHIT_TRY(whit_ndf_log_read(log, offset, &h, data_bytes < sizeof h ? (size_t)data_bytes : sizeof h, error));
    if (h.kind == WHIT_SESSION_BEGIN) {
        *n_bytes = (size_t)data_bytes;
        return WHIT_OK;
    }
    if (h.kind != WHIT_SESSION_TURN) return whit_ndf_log_bad(log, frame, "its kind is not known", error);
    if (data_bytes < sizeof h || !place_parts(&h, data_bytes, &at))
        return whit_ndf_log_bad(log, frame, "its parts are outside the frame", error);
    *n_bytes = (size_t)at.end;
    return WHIT_OK;
}

static whit_status read_frame(whit_session_record *record, uint32_t frame, whit_turn_fn *on_turn, void *user,
                              whit_error *error)
{
    uint64_t offset, data_bytes;
    size_t n_bytes = 0;
    WHIT_TRY(whit_ndf_log_check(record->log, frame, error));
    WHIT_TRY(whit_ndf_log_data(record->log, frame, &offset, &data_bytes, error));
    WHIT_TRY(head_bytes(record->log, frame, offset, data_bytes, &n_bytes, error));
    uint8_t *data = whit_zalloc(record->allocator, n_bytes + 64);
    if (!data) return whit_fail_memory(error, "a session", n_bytes);
    whit_status status = whit_ndf_log_read(record->log, offset, data, n_bytes, error);
    if (status == WHIT_OK)
        status = whit_load_u32(data) == WHIT_SESSION_BEGIN
            ? read_begin(record, frame, data, n_bytes, error)
            : read_turn(record, frame, offset, data, n_bytes, data_bytes, on_turn, user, error);
    whit_free(record->allocator, data, n_bytes + 64);
    return status;
}

whit_status whit_session_record_read(whit_ndf_log *log, const whit_allocator *allocator, whit_turn_fn *on_turn,
                                     void *user, whit_session_record *record, whit_error *error)
{
    *record = (whit_session_record){.log = log,
                                    .allocator = allocator,
                                    .begin = {.allocator = allocator},
                                    .ids = {.allocator = allocator},
                                    .blocks = {.allocator = allocator},
                                    .tails = {.allocator = allocator},
                                    .settings = {.allocator = allocator},
                                    .notes = {.allocator = allocator},
                                    .note_ends = {.allocator = allocator}};
    if (whit_ndf_log_frame(log, 0)->type != WHIT_NDF_SESSION)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not a session", log->path);
    for (uint32_t i = 0; i < log->chain.n_frames; i++)
        if (whit_ndf_log_frame(log, i)->type == WHIT_NDF_SESSION) WHIT_TRY(read_frame(record, i, on_turn, user, error));
    return WHIT_OK;
}

void whit_session_record_free(whit_session_record *record)
{
    whit_buf_free(&record->begin);
    whit_buf_free(&record->ids);
    whit_buf_free(&record->blocks);
    whit_buf_free(&record->tails);
    whit_buf_free(&record->settings);
    whit_buf_free(&record->notes);
    whit_buf_free(&record->note_ends);
}
