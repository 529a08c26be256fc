/* SPDX-License-Identifier: MIT
 * Replays a session file: feeds the same tokens, and checks that the same tokens are picked. */
#include "base/phrase.h"
#include "runtime/session.h"
#include "runtime/session_frames.h"

#include "base/items.h"
#include "base/options.h"

/* Maximum number of rows with logits per step when picked tokens are fed again; logits do not depend on it. */
enum { ROWS = 64 };

struct replaying {
    const whit_model *model;
    whit_session *session;
    whit_sampler *sampler;
    whit_buf ids; /* int32_t[]: ids of the sequence after the present turn */
    whit_buf bias_ids, bias_values;
    uint8_t *piece; /* (piece_bytes): buffer for a piece of a block of the cache */
    size_t piece_bytes;
    whit_session_replay *replay;
    const char *path;
};

static int32_t *ids_of(struct replaying *r)
{
    return WHIT_ITEMS(int32_t, &r->ids);
}

static whit_status differs(struct replaying *r, const whit_turn_view *turn, uint64_t position, int32_t id,
                           int32_t id_here)
{
    r->replay->is_same = false;
    r->replay->turn = turn->number;
    r->replay->position = position;
    r->replay->id = id;
    r->replay->id_here = id_here;
    return WHIT_OK;
}

/* Feeds the tokens from the sequence's position up to `end`, with logits for tokens [wanted, end), at most ROWS. */
static whit_status feed(struct replaying *r, uint64_t end, uint64_t wanted, whit_error *error)
{
    whit_step_token tokens[512];
    uint32_t n_top = r->sampler ? whit_sampler_n_top(r->sampler) : 0;
    for (uint64_t at = whit_session_position(r->session, 0); at < end;) {
        size_t n = 0;
        for (; n < sizeof tokens / sizeof *tokens && at < end && (n == 0 || at != wanted); n++, at++)
            tokens[n] = (whit_step_token){.id = ids_of(r)[at], .want_logits = at >= wanted, .n_top = n_top};
        WHIT_TRY(whit_session_step(r->session, tokens, n, error));
    }
    return WHIT_OK;
}

static whit_status open_sampler(struct replaying *r, const whit_turn_view *turn, uint64_t n_given, whit_error *error)
{
    whit_sampler_options options;
    uint64_t n_stages = 0;
    if (whit_table_get_u64(turn->settings, "sampler.n_stages", &n_stages) && n_stages)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: turn %u was picked under a grammar or a program, which the file does not contain, so it "
                         "cannot be replayed",
                         r->path, turn->number);
    WHIT_TRY(whit_session_settings_read(turn->settings, &options, &r->bias_ids, &r->bias_values, error));
    whit_sampler_close(r->sampler);
    WHIT_TRY(whit_sampler_open(r->model, &options, &r->sampler, error));
    for (uint64_t i = 0; i < n_given; i++) whit_sampler_accept(r->sampler, ids_of(r)[i]);
    whit_sampler_restore(r->sampler, &turn->header->before);
    return WHIT_OK;
}

/* Picks tokens [n_given, n_ids) again, and the end token if one ended the turn; compares the tokens and the sampler's
 * state with the file. */
static whit_status pick(struct replaying *r, const whit_turn_view *turn, uint64_t n_given, uint64_t n_ids,
                        whit_error *error)
{
    uint64_t n_picks = n_ids - n_given + (turn->header->finish == WHIT_FINISH_END);
    WHIT_TRY(open_sampler(r, turn, n_given, error));
    for (uint64_t done = 0; done < n_picks;) {
        uint64_t n = n_picks - done < ROWS ? n_picks - done : ROWS;
        WHIT_TRY(feed(r, n_given + done + n - 1, n_given + done - 1, error));
        for (uint64_t i = 0; i < n; i++, done++) {
            int32_t id;
            WHIT_TRY(whit_sampler_pick(r->sampler, whit_session_logits(r->session, i), &id, error));
            if (n_given + done == n_ids) continue;
            if (id != ids_of(r)[n_given + done]) return differs(r, turn, n_given + done, ids_of(r)[n_given + done], id);
            r->replay->n_picked++;
        }
    }
    whit_sampler_state after;
    whit_sampler_save(r->sampler, &after);
    if (memcmp(&after, &turn->header->after, sizeof after) != 0) return differs(r, turn, n_ids, -1, -1);
    return WHIT_OK;
}

static whit_status compare_blocks(struct replaying *r, const whit_session_record *record, const whit_turn_view *turn,
                                  whit_error *error)
{
    const whit_kv *kv = &r->session->kv;
    uint64_t offset = turn->blocks_offset;
    for (uint32_t b = 0; b < turn->header->n_blocks; b++) {
        uint32_t block = turn->header->first_block + b;
        for (whit_kv_piece at = {0}; whit_kv_next_piece(kv, 0, block, &at); offset += at.size_bytes) {
            if (!at.data) continue; /* freed, because it is before a sliding window */
            WHIT_TRY(whit_ndf_log_read(record->log, offset, r->piece, at.size_bytes, error));
            if (memcmp(r->piece, at.data, at.size_bytes) != 0)
                return differs(r, turn, (uint64_t)block * WHIT_KV_BLOCK_TOKENS, -1, -1);
        }
    }
    return WHIT_OK;
}

/* Makes the replay's recurrent layers commit their state at position `wanted` instead of `own`, and leaves the sequence
 * at n_tokens. The committed position depends on the greatest length that the sequence had. The file does not contain
 * tokens that were removed again, such as guesses, so token 0 is fed in their place. */
static whit_status commit_position(struct replaying *r, uint32_t n_tokens, uint32_t own, uint32_t wanted,
                                   whit_error *error)
{
    WHIT_TRY(whit_session_truncate(r->session, 0, own > wanted ? 0 : n_tokens, error));
    WHIT_TRY(feed(r, n_tokens, UINT64_MAX, error));
    const whit_step_token tokens[WHIT_STATE_BACK_TOKENS] = {{0}};
    if (wanted + WHIT_STATE_BACK_TOKENS <= n_tokens) return WHIT_OK;
    WHIT_TRY(whit_session_step(r->session, tokens, wanted + WHIT_STATE_BACK_TOKENS - n_tokens, error));
    return whit_session_truncate(r->session, 0, n_tokens, error);
}

/* Saves the replay's tail at n_tokens in `tail`, if possible with the same committed position as the tail
 * `expected`. */
static whit_status save_tail(struct replaying *r, uint32_t n_tokens, const uint8_t *expected, uint8_t *tail,
                             whit_error *error)
{
    const whit_kv *kv = &r->session->kv;
    whit_kv_tail_save(kv, 0, n_tokens, tail);
    if (!whit_kv_tail_fits(kv, n_tokens, expected)) return WHIT_OK;
    const uint32_t own = whit_kv_tail_commit(kv, n_tokens, tail), wanted = whit_kv_tail_commit(kv, n_tokens, expected);
    if (own == wanted) return WHIT_OK;
    WHIT_TRY(commit_position(r, n_tokens, own, wanted, error));
    if (whit_kv_has_tail(kv, 0, n_tokens)) whit_kv_tail_save(kv, 0, n_tokens, tail);
    return WHIT_OK;
}

/* Compares the replay's tail at the end of a turn with the file's. */
static whit_status compare_tail(struct replaying *r, const whit_session_record *record, const whit_turn_view *turn,
                                whit_error *error)
{
    const whit_kv *kv = &r->session->kv;
    const uint32_t n_tokens = (uint32_t)turn->header->n_present;
    const size_t n = (size_t)turn->header->tail_bytes;
    if (!n || !whit_kv_has_tail(kv, 0, n_tokens)) return WHIT_OK;
    if (n != whit_kv_tail_bytes(kv, n_tokens)) return differs(r, turn, n_tokens, -1, -1);
    uint8_t *tails = whit_alloc(r->model->allocator, 2 * n);
    if (!tails) return whit_fail_memory(error, "a tail", 2 * n);
    whit_status status = whit_ndf_log_read(record->log, turn->tail_offset, tails + n, n, error);
    if (status == WHIT_OK) status = save_tail(r, n_tokens, tails + n, tails, error);
    if (status == WHIT_OK && memcmp(tails, tails + n, n) != 0) status = differs(r, turn, n_tokens, -1, -1);
    whit_free(r->model->allocator, tails, 2 * n);
    return status;
}

static whit_status on_turn(void *user, const whit_session_record *record, const whit_turn_view *turn, whit_error *error)
{
    struct replaying *r = user;
    const whit_turn_header *h = turn->header;
    uint64_t n_given = h->n_keep + h->n_given, n_ids = h->n_keep + h->n_ids;
    if (!r->replay->is_same) return WHIT_OK;
    r->ids.size_bytes = h->n_keep * sizeof(int32_t);
    if (!whit_buf_append(&r->ids, turn->ids, h->n_ids * sizeof(int32_t)))
        return whit_fail_memory(error, "a session", r->ids.size_bytes);
    /* If tokens were picked, the logits of the last given token are needed, so it must be fed again even if it was
     * kept. */
    uint64_t n_held = n_ids > n_given && h->n_keep == n_given && n_given ? n_given - 1 : h->n_keep;
    if (whit_session_position(r->session, 0) > n_held)
        WHIT_TRY(whit_session_truncate(r->session, 0, (uint32_t)n_held, error));
    if (n_ids > n_given && n_given == 0)
        return whit_ndf_log_bad(record->log, turn->frame, "its tokens were generated with no token before them", error);
    if (n_ids > n_given) {
        WHIT_TRY(feed(r, n_given - 1, UINT64_MAX, error));
        WHIT_TRY(pick(r, turn, n_given, n_ids, error));
    }
    if (!r->replay->is_same) return WHIT_OK;
    WHIT_TRY(feed(r, h->n_present, UINT64_MAX, error));
    WHIT_TRY(compare_blocks(r, record, turn, error));
    if (r->replay->is_same) WHIT_TRY(compare_tail(r, record, turn, error));
    r->replay->n_turns++;
    return WHIT_OK;
}

static whit_status on_turn_count(void *user, const whit_session_record *record, const whit_turn_view *turn,
                                 whit_error *error)
{
    (void)record;
    (void)error;
    uint64_t *most = user, n = turn->header->n_keep + turn->header->n_ids;
    if (n > *most) *most = n;
    return WHIT_OK;
}

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (name && strcmp(names[i], name) == 0) return i;
    return 0; /* whit_session_begin_check reports an unknown name */
}

/* Returns a context size for the file's tokens: as small as possible, or the file's context size if the frequencies of
 * positions (RoPE) depend on it. A file may name any size; a size beyond the model's training context is not used. */
static uint32_t choose_context(const whit_model *model, const whit_session_record *record, uint64_t n_tokens)
{
    enum { CONTEXT_MIN = 64 };
    /* number of tokens that commit_position may append */
    const uint32_t n_back = model->config.conv_taps ? WHIT_STATE_BACK_TOKENS : 0;
    const uint32_t n = (uint32_t)(n_tokens < CONTEXT_MIN ? CONTEXT_MIN : n_tokens) + n_back;
    uint64_t n_made = 0;
    if (!whit_table_get_u64(&record->about, "session.context", &n_made) || n_made < n_tokens ||
        n_made > model->config.n_ctx)
        return n;
    return whit_rope_same_frequencies(&model->config, n, (uint32_t)n_made) ? n : (uint32_t)n_made;
}

/* Opens a session with those options of the file that affect the bits of results, and mounts the adapters. */
static whit_status open_session(struct replaying *r, const whit_session_record *record,
                                const whit_session_options *options, const void *mounts, size_t n_mounts,
                                size_t stride_bytes, uint64_t n_tokens, whit_error *error)
{
    whit_session_options own = whit_session_options_default();
    WHIT_TRY(whit_options_read(&own, sizeof own, options, "whit_session_options", error));
    own.n_sequences = 1;
    own.n_logits = ROWS;
    own.n_ctx_tokens = choose_context(r->model, record, n_tokens);
    own.kv = (whit_kv_type)find_name(whit_session_kv_names, WHIT_KV_TYPES,
                                     whit_table_get_string(&record->about, "session.kv"));
    uint64_t n_kv_window;
    if (whit_table_get_u64(&record->about, "session.kv_window", &n_kv_window) && n_kv_window <= UINT32_MAX)
        own.n_kv_window = (uint32_t)n_kv_window;
    own.act = (whit_act_type)find_name(whit_session_act_names, WHIT_ACT_Q2 + 1,
                                       whit_table_get_string(&record->about, "session.act"));
    WHIT_TRY(whit_session_open(r->model, &own, &r->session, error));
    WHIT_TRY(whit_session_mount_strided(r->session, 0, mounts, n_mounts, stride_bytes, error));
    const char *purpose = whit_table_get_string(&record->about, "session.purpose");
    WHIT_TRY(whit_session_begin_check(record, r->session, 0, whit_or_empty(purpose), error));
    for (uint32_t c = 0; c < r->session->kv.n_classes; c++)
        if (r->session->kv.classes[c].pool.head_bytes > r->piece_bytes)
            r->piece_bytes = r->session->kv.classes[c].pool.head_bytes;
    r->piece = whit_alloc(r->model->allocator, r->piece_bytes);
    return r->piece ? WHIT_OK : whit_fail_memory(error, "a KV block", r->piece_bytes);
}

whit_status whit_session_replay_file_strided(const whit_model *model, const whit_session_options *options,
                                             const void *mounts, size_t n_mounts, size_t stride_bytes, const char *path,
                                             whit_session_replay *result, whit_error *error)
{
    WHIT_NEED(model);
    WHIT_NEED(path);
    WHIT_NEED(result);
    WHIT_NEED_ARRAY(mounts, n_mounts);
    const whit_allocator *allocator = model->allocator;
    whit_session_replay replay = whit_session_replay_default();
    WHIT_TRY(whit_options_read(&replay, sizeof replay, result, "whit_session_replay", error));
    struct replaying r = {.model = model,
                          .ids = {.allocator = allocator},
                          .bias_ids = {.allocator = allocator},
                          .bias_values = {.allocator = allocator},
                          .replay = &replay,
                          .path = path};
    whit_session_record record = {0}, again = {0};
    whit_ndf_log log;
    uint64_t n_tokens = 0;
    replay = (whit_session_replay){.struct_bytes = result->struct_bytes, .is_same = true, .id = -1, .id_here = -1};
    WHIT_TRY(whit_ndf_log_open(path, WHIT_NDF_LOG_READ, allocator, &log, error));
    whit_status status = whit_session_record_read(&log, allocator, on_turn_count, &n_tokens, &record, error);
    if (status == WHIT_OK) status = open_session(&r, &record, options, mounts, n_mounts, stride_bytes, n_tokens, error);
    if (status == WHIT_OK) status = whit_session_record_read(&log, allocator, on_turn, &r, &again, error);
    whit_free(allocator, r.piece, r.piece_bytes);
    whit_session_record_free(&record);
    whit_session_record_free(&again);
    whit_sampler_close(r.sampler);
    whit_session_close(r.session);
    whit_buf_free(&r.ids);
    whit_buf_free(&r.bias_ids);
    whit_buf_free(&r.bias_values);
    whit_ndf_log_close(&log);
    memcpy(result, &replay, result->struct_bytes < sizeof replay ? result->struct_bytes : sizeof replay);
    return status;
}
