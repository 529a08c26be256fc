/* SPDX-License-Identifier: MIT
 * Loads a sequence from a session file, and appends its turns to the file. */
#include "runtime/session_frames.h"

#include "base/items.h"
#include "base/options.h"
#include "base/path.h"
#include "format/ndf_append.h"
#include "kv/sound.h"
#include "runtime/session.h"
#include "runtime/split.h"

#include <errno.h>
#include <unistd.h>

struct whit_session_file {
    whit_session *session;
    uint32_t sequence;
    const whit_allocator *allocator;
    whit_ndf_log log;
    whit_session_record record;
    bool is_lost;                   /* after a failure: the content of the file is unknown, or differs from `record` */
    whit_buf bias_ids, bias_values; /* arrays of biases in the sampler options that whit_session_file_sampler last
                                     * returned */
};

static whit_status create(const whit_session *s, uint32_t sequence, const char *path, const char *purpose,
                          whit_error *error)
{
    whit_buf begin = {.allocator = s->allocator};
    whit_status status = whit_session_begin_build(s, sequence, purpose, &begin, error);
    if (status == WHIT_OK)
        status =
            whit_ndf_create_loose(path, WHIT_NDF_SESSION, "begin", begin.data, begin.size_bytes, s->allocator, error);
    whit_buf_free(&begin);
    return status;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Returns the file's last tail whose preceding full blocks are all among the first n_blocks blocks and whose position
 * is not after the end of the sequence; NULL if not found. */
static const whit_tail_view *tail_of(const whit_session_file *file, uint32_t n_blocks)
{
    const whit_tail_view *tails = WHIT_ITEMS(const whit_tail_view, &file->record.tails);
    for (uint32_t i = whit_session_record_n_tails(&file->record); i-- > 0;)
        if (tails[i].n_tokens / WHIT_KV_BLOCK_TOKENS <= n_blocks && tails[i].n_tokens <= file->record.n_present)
            return &tails[i];
    return NULL;
}

/* Returns the error for an invalid block. A file with correct hashes may contain any bytes, but kernels must only read
 * blocks that a cache can produce. */
static whit_status not_made(const whit_session_file *file, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: blocks of its KV cache contain invalid values: the session is damaged; begin a new one",
                     file->log.path);
}

/* Reads a tail into a sequence, which is then at the tail's position, but without the contents of its full blocks. */
static whit_status read_tail(const whit_session_file *file, const whit_tail_view *tail, whit_error *error)
{
    whit_kv *kv = &file->session->kv;
    const uint32_t n_tokens = (uint32_t)tail->n_tokens;
    if (tail->n_bytes != whit_kv_tail_bytes(kv, n_tokens))
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: the tail of its KV cache does not fit this model: the session is damaged; begin a new one",
            file->log.path);
    uint8_t *data = whit_alloc(file->allocator, (size_t)tail->n_bytes);
    if (!data) return whit_fail_memory(error, "the end of a session's cache", (size_t)tail->n_bytes);
    whit_status status = whit_ndf_log_read(&file->log, tail->offset, data, (size_t)tail->n_bytes, error);
    if (status == WHIT_OK && !whit_kv_tail_fits(kv, n_tokens, data)) status = not_made(file, error);
    if (status == WHIT_OK) status = whit_kv_begin_at(kv, file->sequence, n_tokens / WHIT_KV_BLOCK_TOKENS, error);
    if (status == WHIT_OK) {
        whit_kv_tail_load(kv, file->sequence, n_tokens, n_tokens, data);
        if (!whit_kv_tail_is_sound(kv, file->sequence, n_tokens)) status = not_made(file, error);
    }
    whit_free(file->allocator, data, (size_t)tail->n_bytes);
    return status;
}

static whit_status read_piece(const whit_session_file *file, uint64_t offset, const whit_kv_piece *piece,
                              whit_error *error)
{
    const whit_kv_class *class = whit_kv_class_of(&file->session->kv, piece->layer);
    WHIT_TRY(whit_ndf_log_read(&file->log, offset, piece->data, piece->size_bytes, error));
    return whit_kv_block_is_sound(class->type, class->head_dim, class->rope_pairs, piece->data) ? WHIT_OK
                                                                                                : not_made(file, error);
}

/* Reads and checks a full block; runs on the session's threads. Several threads are used because the memory is usually
 * new to this process, and clearing its pages takes longer than filling them. */
static whit_status read_block(void *context, uint32_t worker, uint32_t block, whit_error *error)
{
    (void)worker;
    const whit_session_file *file = context;
    uint64_t offset = (WHIT_ITEMS(const uint64_t, &file->record.blocks))[block];
    whit_kv_piece at = {0};
    for (; whit_kv_next_piece(&file->session->kv, file->sequence, block, &at); offset += at.size_bytes)
        if (at.data) WHIT_TRY(read_piece(file, offset, &at, error));
    return WHIT_OK;
}

/* Makes marks from the file's newest tails before `last`, at most half of all marks and at most TAILS_MAX. The blocks
 * before a tail are not needed yet, because they are looked up when a sequence resumes at the mark. */
static whit_status read_marks(const whit_session_file *file, const whit_tail_view *last, whit_error *error)
{
    enum { TAILS_MAX = 4 };
    whit_session *s = file->session;
    const whit_tail_view *tails = WHIT_ITEMS(const whit_tail_view, &file->record.tails), *tail = last;
    const uint32_t most = s->marks.n / 2 < TAILS_MAX ? s->marks.n / 2 : TAILS_MAX;
    while (tail > tails && last - tail < most) tail--;
    for (; tail < last; tail++) {
        WHIT_TRY(read_tail(file, tail, error));
        whit_session_keep_mark(s, file->sequence, (uint32_t)tail->n_tokens);
    }
    return WHIT_OK;
}

/* Reads the first n_blocks blocks. If the cache needs tails, reads the last tail that these blocks permit and only the
 * blocks before it; reads nothing if there is no such tail. */
static whit_status read_blocks(whit_session_file *file, uint32_t n_blocks, whit_error *error)
{
    whit_session *s = file->session;
    whit_kv *kv = &s->kv;
    const bool needs_tail = whit_kv_needs_tails(kv);
    const whit_tail_view *tail = needs_tail ? tail_of(file, n_blocks) : NULL;
    if (needs_tail && !tail) return WHIT_OK;
    uint32_t n = tail ? (uint32_t)tail->n_tokens : n_blocks * WHIT_KV_BLOCK_TOKENS;
    n_blocks = n / WHIT_KV_BLOCK_TOKENS;
    if (n) memcpy(whit_session_tokens_of(s, file->sequence), file->record.ids.data, n * sizeof(int32_t));
    if (tail) WHIT_TRY(read_marks(file, tail, error));
    WHIT_TRY(tail ? read_tail(file, tail, error) : whit_kv_begin_at(kv, file->sequence, n_blocks, error));
    /* Each task reads a group of blocks, because these are contiguous in memory. */
    WHIT_TRY(whit_pool_try(s->pool, read_block, file, n_blocks, WHIT_KV_GROUP_BLOCKS, error));
    s->positions[file->sequence] = n;
    whit_session_forget_drafts(s, file->sequence, 0);
    whit_session_name_blocks(s, file->sequence, 0, n);
    whit_session_keep_mark(s, file->sequence, n);
    return WHIT_OK;
}

/* Computes positions [from, to), which are not in blocks of the file, again; the results have the same bits. */
static whit_status feed(const whit_session_file *file, uint32_t from, uint32_t to, whit_error *error)
{
    const int32_t *ids = WHIT_ITEMS(const int32_t, &file->record.ids);
    whit_step_token tokens[512];
    while (from < to) {
        size_t n = 0;
        for (; n < sizeof tokens / sizeof *tokens && from < to; n++, from++)
            tokens[n] = (whit_step_token){.sequence = file->sequence, .id = ids[from]};
        WHIT_TRY(whit_session_step(file->session, tokens, n, error));
    }
    return WHIT_OK;
}

static whit_status restore(whit_session_file *file, whit_error *error)
{
    whit_session *s = file->session;
    uint64_t n = file->record.n_present;
    if (n > s->options.n_ctx_tokens)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the session has %llu tokens, but the context is %u: choose a larger one", file->log.path,
                         (unsigned long long)n, s->options.n_ctx_tokens);
    WHIT_TRY(whit_session_truncate(s, file->sequence, 0, error));
    uint32_t n_blocks = whit_session_record_n_blocks(&file->record);
    if (n_blocks > n / WHIT_KV_BLOCK_TOKENS) n_blocks = (uint32_t)(n / WHIT_KV_BLOCK_TOKENS);
    whit_status status = read_blocks(file, n_blocks, error);
    if (status == WHIT_OK) status = feed(file, s->positions[file->sequence], (uint32_t)n, error);
    if (status != WHIT_OK) whit_kv_truncate(&s->kv, file->sequence, s->positions[file->sequence] = 0);
    return status;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* Opens or creates a file for a sequence, reads its record, and checks that it matches the sequence. The sequence is
 * unchanged. */
static whit_status open_file(whit_session *s, uint32_t sequence, const char *path, const char *purpose,
                             whit_session_file **out, whit_error *error)
{
    WHIT_TRY(whit_session_check_sequence(s, sequence, error));
    if (s->options.endless)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: an endless session cannot be saved: leave out the file, or use a bounded context", path);
    if (!whit_path_exists(path) && errno == ENOENT) {
        whit_status created = create(s, sequence, path, purpose, error);
        if (created != WHIT_OK && !whit_path_exists(path)) return created;
        /* If creating failed although the file now exists, another program has created it: it is opened below, or
         * reported as in use. */
    }
    whit_session_file *file = whit_zalloc(s->allocator, sizeof *file);
    if (!file) return whit_fail_memory(error, "a session file", sizeof *file);
    *file = (whit_session_file){.session = s,
                                .sequence = sequence,
                                .allocator = s->allocator,
                                .bias_ids = {.allocator = s->allocator},
                                .bias_values = {.allocator = s->allocator}};
    whit_status status = whit_ndf_log_open(path, WHIT_NDF_LOG_APPEND_NOW, s->allocator, &file->log, error);
    file->log.pool = s->pool;
    if (status == WHIT_OK)
        status = whit_session_record_read(&file->log, s->allocator, NULL, NULL, &file->record, error);
    if (status == WHIT_OK) status = whit_session_begin_check(&file->record, s, sequence, purpose, error);
    if (status != WHIT_OK) {
        whit_session_file_close(file);
        return status;
    }
    *out = file;
    return WHIT_OK;
}

whit_status whit_session_load(whit_session *s, uint32_t sequence, const char *path, const char *purpose,
                              whit_session_file **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(s);
    WHIT_NEED(path);
    WHIT_NEED(purpose);
    whit_session_file *file;
    WHIT_TRY(whit_split_refuse(s, "session files are", error));
    WHIT_TRY(open_file(s, sequence, path, purpose, &file, error));
    whit_status status = restore(file, error);
    if (status == WHIT_OK)
        *out = file;
    else
        whit_session_file_close(file);
    return status;
}

void whit_session_file_close(whit_session_file *file)
{
    if (!file) return;
    whit_session_record_free(&file->record);
    whit_ndf_log_close(&file->log);
    whit_buf_free(&file->bias_ids);
    whit_buf_free(&file->bias_values);
    whit_free(file->allocator, file, sizeof *file);
}

const int32_t *whit_session_file_ids(const whit_session_file *file, size_t *n_ids)
{
    *n_ids = whit_session_record_n_ids(&file->record);
    return WHIT_ITEMS(const int32_t, &file->record.ids);
}

uint32_t whit_session_file_n_turns(const whit_session_file *file)
{
    return file->record.n_turns;
}

const char *whit_session_file_note(const whit_session_file *file, uint32_t i, size_t *n_bytes)
{
    const uint64_t *ends = WHIT_ITEMS(const uint64_t, &file->record.note_ends);
    *n_bytes = 0;
    if (i >= file->record.n_turns) return "";
    uint64_t begin = i ? ends[i - 1] : 0;
    *n_bytes = (size_t)(ends[i] - begin);
    return *n_bytes ? whit_chars(&file->record.notes) + begin : "";
}

bool whit_session_file_sampler(whit_session_file *file, whit_sampler_options *options, whit_sampler_state *state)
{
    const whit_session_record *record = &file->record;
    whit_sampler_options checked = whit_sampler_options_default();
    if (whit_options_read(&checked, sizeof checked, options, "whit_sampler_options", NULL) != WHIT_OK) return false;
    if (!record->has_picks ||
        whit_session_settings_read(&record->settings_table, &checked, &file->bias_ids, &file->bias_values, NULL) !=
            WHIT_OK)
        return false;
    size_t n_bytes = options->struct_bytes < sizeof checked ? options->struct_bytes : sizeof checked;
    checked.struct_bytes = options->struct_bytes;
    memcpy(options, &checked, n_bytes);
    *state = record->after;
    return true;
}

/* ---- saving --------------------------------------------------------------------------------- */

/* Checks that a turn can be appended. n_present: number of tokens of the sequence after the turn. */
static whit_status check_turn(const whit_session_file *file, const whit_session_turn *turn, size_t n_present,
                              whit_error *error)
{
    if (file->is_lost)
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s: an earlier turn failed and may or may not be on disk: open the session again",
                         file->log.path);
    if (turn->n_given > turn->n_ids || (turn->n_given < turn->n_ids && !turn->sampler))
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "the turn has %zu tokens and %zu given ones: give at most all, and a sampler if it generated some",
            turn->n_ids, turn->n_given);
    if (n_present > turn->n_ids || n_present + 1 < turn->n_ids)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the sequence has %zu tokens, but a turn that ends with %zu needs as many, or one fewer",
                         n_present, turn->n_ids);
    /* Adapters are recorded once, at the beginning of the file, so they must be the same for all tokens. */
    if (file->session->is_mixed[file->sequence])
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "%s: the sequence's adapters were changed while it contained tokens: these are not a turn of the session",
            file->log.path);
    return whit_session_adapters_check(&file->record, file->session, file->sequence, error);
}

/* Appends the sampler settings to `head`, and sets *n_bytes to their size, unless they equal the settings of the turn
 * before. */
static whit_status add_settings(const whit_session_file *file, const whit_session_turn *turn, whit_buf *head,
                                uint64_t *n_bytes, whit_error *error)
{
    whit_buf table = {.allocator = file->allocator};
    const whit_sampler_options options = whit_sampler_options_of(turn->sampler);
    whit_status status = whit_session_settings_build(&options, turn->n_stages, &table, error);
    bool same = table.size_bytes == file->record.settings.size_bytes && table.size_bytes &&
        memcmp(table.data, file->record.settings.data, table.size_bytes) == 0;
    if (status == WHIT_OK && !same) {
        *n_bytes = table.size_bytes;
        if (!whit_buf_append(head, table.data, table.size_bytes))
            status = whit_fail_memory(error, "a turn", table.size_bytes);
    }
    whit_buf_free(&table);
    return status;
}

/* Builds the data of a turn before its blocks: header, ids, settings (at *settings_at) and note. */
static whit_status build_head(const whit_session_file *file, const whit_session_turn *turn, whit_turn_header *h,
                              whit_buf *head, size_t *settings_at, whit_error *error)
{
    whit_buf_append_zeros(head, sizeof *h);
    whit_buf_append(head, turn->ids + h->n_keep, h->n_ids * sizeof *turn->ids);
    whit_buf_align(head, 8);
    *settings_at = head->size_bytes;
    if (h->n_ids > h->n_given) WHIT_TRY(add_settings(file, turn, head, &h->settings_bytes, error));
    whit_buf_align(head, 8);
    whit_buf_append(head, turn->note, turn->note_bytes);
    if (h->n_blocks || h->tail_bytes) whit_buf_align(head, 64);
    if (head->failed) return whit_fail_memory(error, "a turn", head->size_bytes);
    memcpy(head->data, h, sizeof *h);
    return WHIT_OK;
}

/* Writes the tail of a turn: `saved`, or, if that is NULL, the tail of the sequence at n_present. */
static whit_status write_tail(whit_session_file *file, const whit_turn_header *h, const uint8_t *saved,
                              whit_error *error)
{
    if (saved) return whit_ndf_log_add(&file->log, saved, (size_t)h->tail_bytes, error);
    uint8_t *tail = whit_alloc(file->allocator, (size_t)h->tail_bytes);
    if (!tail) return whit_fail_memory(error, "the end of a session's cache", (size_t)h->tail_bytes);
    whit_kv_tail_save(&file->session->kv, file->sequence, (uint32_t)h->n_present, tail);
    whit_status status = whit_ndf_log_add(&file->log, tail, (size_t)h->tail_bytes, error);
    whit_free(file->allocator, tail, (size_t)h->tail_bytes);
    return status;
}

static whit_status write_turn(whit_session_file *file, const whit_turn_header *h, const whit_buf *head,
                              const uint8_t *saved_tail, whit_error *error)
{
    whit_ndf_log *log = &file->log;
    const whit_kv *kv = &file->session->kv;
    whit_status status = whit_ndf_log_begin(log, WHIT_NDF_SESSION, h->n_ids ? "turn" : "undo",
                                            head->size_bytes + h->n_blocks * h->block_bytes + h->tail_bytes, error);
    if (status == WHIT_OK) status = whit_ndf_log_add(log, head->data, head->size_bytes, error);
    for (uint32_t b = 0; b < h->n_blocks; b++)
        for (whit_kv_piece at = {0};
             status == WHIT_OK && whit_kv_next_piece(kv, file->sequence, h->first_block + b, &at);)
            status = whit_ndf_log_add(log, at.data, at.size_bytes, error);
    if (status == WHIT_OK && h->tail_bytes) status = write_tail(file, h, saved_tail, error);
    if (status == WHIT_OK) {
        status = whit_ndf_log_commit(log, error);
        file->is_lost = status != WHIT_OK && !log->changed;
    }
    if (status != WHIT_OK) whit_ndf_log_cancel(log);
    return status;
}

/* Returns the length of the prefix that a turn shares with the file's ids, at most n_given, because picked tokens must
 * be stored with the turn that picked them. */
static size_t n_common(const whit_session_file *file, const whit_session_turn *turn)
{
    size_t n = whit_session_record_n_ids(&file->record), common = 0;
    const int32_t *ids = WHIT_ITEMS(const int32_t, &file->record.ids);
    if (n > turn->n_given) n = turn->n_given;
    while (common < n && ids[common] == turn->ids[common]) common++;
    return common;
}

/* Returns whether the tail of a turn is to be written; false if the cache does not have it. The turn keeps the first
 * n_keep of the file's ids and ends at n_present tokens. Tails of recurrent layers are large, so a turn that ends at
 * most AGAIN_MAX tokens after a stored tail is written without its tail, and computed again when the file is loaded.
 * n_stored: number of stored blocks that the turn keeps. */
static bool needs_tail(const whit_session_file *file, uint32_t n_stored, size_t n_keep, size_t n_present)
{
    enum { AGAIN_MAX = 64 };
    const whit_tail_view *tail = tail_of(file, n_stored);
    if (!whit_kv_has_tail(&file->session->kv, file->sequence, (uint32_t)n_present)) return false;
    if (!tail || tail->n_tokens > n_keep) return true;
    return n_present - tail->n_tokens > (file->session->kv.state.sequence_elems ? AGAIN_MAX : 0);
}

/* Appends a turn that ends at n_present tokens. saved_tail: the tail of that position in a mark; NULL: the sequence
 * itself is at that position. */
static whit_status append_turn(whit_session_file *file, const whit_session_turn *turn, size_t n_present,
                               const uint8_t *saved_tail, whit_error *error)
{
    whit_session_record *record = &file->record;
    WHIT_TRY(check_turn(file, turn, n_present, error));
    size_t n_keep = n_common(file, turn);
    whit_turn_header h = {.kind = WHIT_SESSION_TURN,
                          .finish = (uint32_t)turn->finish,
                          .n_keep = n_keep,
                          .n_ids = turn->n_ids - n_keep,
                          .n_given = turn->n_given - n_keep,
                          .n_present = n_present,
                          .note_bytes = turn->note_bytes};
    if (h.n_ids > h.n_given) {
        h.before = turn->before;
        whit_sampler_save(turn->sampler, &h.after);
    }
    uint32_t n_stored = whit_session_record_n_blocks(record), n_closed = (uint32_t)(h.n_present / WHIT_KV_BLOCK_TOKENS);
    if (n_stored > n_keep / WHIT_KV_BLOCK_TOKENS) n_stored = (uint32_t)(n_keep / WHIT_KV_BLOCK_TOKENS);
    /* If block n_stored was already freed because it is before a sliding window, neither this block nor later ones are
     * stored. */
    if (!turn->tokens_only && n_closed > n_stored && whit_kv_holds(&file->session->kv, file->sequence, n_stored)) {
        h.first_block = n_stored;
        h.n_blocks = n_closed - n_stored;
        h.block_bytes = whit_kv_whole_block_bytes(&file->session->kv);
    }
    if (!turn->tokens_only && n_stored + h.n_blocks == n_closed &&
        (saved_tail || needs_tail(file, n_stored, n_keep, n_present)))
        h.tail_bytes = whit_kv_tail_bytes(&file->session->kv, (uint32_t)h.n_present);
    whit_buf head = {.allocator = file->allocator};
    size_t settings_at = 0;
    whit_status status = build_head(file, turn, &h, &head, &settings_at, error);
    if (status == WHIT_OK) memcpy(head.data, &h, sizeof h);
    if (status == WHIT_OK) status = write_turn(file, &h, &head, saved_tail, error);
    const bool is_committed = status == WHIT_OK;
    if (status == WHIT_OK && h.settings_bytes) {
        record->settings.size_bytes = 0;
        if (!whit_buf_append(&record->settings, head.data + settings_at, h.settings_bytes))
            status = whit_fail_memory(error, "a turn", h.settings_bytes);
        else
            status = whit_table_open(record->settings.data, record->settings.size_bytes, file->log.path,
                                     &record->settings_table, error);
    }
    whit_turn_view view = {.header = &h,
                           .ids = turn->ids + n_keep,
                           .note = turn->note,
                           /* not the true offset: for a written turn only the number of blocks is used */
                           .blocks_offset = file->log.end_bytes,
                           .tail_offset = file->log.end_bytes};
    if (status == WHIT_OK) status = whit_session_record_add(record, &view, error);
    /* The turn is in the file but not in `record`, so another turn would be written with wrong counts. */
    if (is_committed && status != WHIT_OK) file->is_lost = true;
    whit_buf_free(&head);
    return status;
}

whit_status whit_session_save(whit_session_file *file, const whit_session_turn *given, whit_error *error)
{
    WHIT_NEED(file);
    WHIT_NEED(given);
    whit_session_turn turn = whit_session_turn_default();
    WHIT_TRY(whit_options_read(&turn, sizeof turn, given, "whit_session_turn", error));
    WHIT_NEED_ARRAY(turn.ids, turn.n_ids);
    WHIT_NEED_ARRAY(turn.note, turn.note_bytes);
    return append_turn(file, &turn, whit_session_position(file->session, file->sequence), NULL, error);
}

/* ---- snapshots of a whole sequence ---------------------------------------------------------- */

static whit_status append_prefix(whit_session_file *file, uint32_t n_tokens, const uint8_t *saved_tail,
                                 whit_error *error)
{
    whit_session_turn turn = whit_session_turn_default();
    turn.ids = whit_session_tokens_of(file->session, file->sequence);
    turn.n_ids = turn.n_given = n_tokens;
    turn.finish = WHIT_FINISH_LENGTH;
    return append_turn(file, &turn, n_tokens, saved_tail, error);
}

static whit_status append_sequence(whit_session_file *file, uint32_t n_tokens, whit_error *error)
{
    enum { MARKS_SAVED = 2 };
    uint32_t marks[MARKS_SAVED];
    const uint32_t n = whit_session_find_marks(file->session, file->sequence, marks, MARKS_SAVED);
    for (uint32_t i = 0; i < n; i++)
        WHIT_TRY(append_prefix(file, file->session->marks.items[marks[i]].n_tokens,
                               whit_mark_tail(&file->session->marks, marks[i]), error));
    return append_prefix(file, n_tokens, NULL, error);
}

whit_status whit_session_snapshot(whit_session *s, uint32_t sequence, const char *path, const char *purpose,
                                  uint32_t *n_tokens, whit_error *error)
{
    WHIT_NEED(n_tokens);
    *n_tokens = 0;
    WHIT_NEED(s);
    WHIT_NEED(path);
    WHIT_NEED(purpose);
    whit_session_file *file;
    whit_buf next = {.allocator = s->allocator};
    WHIT_TRY(whit_split_refuse(s, "snapshots are", error));
    if (!whit_buf_printf(&next, "%s.whit-snapshot", path))
        return whit_fail_memory(error, "a session file", strlen(path));
    const char *new_path = whit_chars(&next);
    unlink(new_path);
    whit_status status = open_file(s, sequence, new_path, purpose, &file, error);
    if (status == WHIT_OK) {
        uint32_t n = s->positions[sequence];
        if (!whit_kv_needs_tails(&s->kv)) n = n / WHIT_KV_BLOCK_TOKENS * WHIT_KV_BLOCK_TOKENS;
        status = append_sequence(file, n, error);
        whit_session_file_close(file);
        if (status == WHIT_OK && rename(new_path, path) != 0) status = whit_fail_errno(error, path, "replace");
        if (status == WHIT_OK) *n_tokens = n;
        if (status != WHIT_OK) unlink(new_path);
    }
    whit_buf_free(&next);
    return status;
}
