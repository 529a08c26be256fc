/* SPDX-License-Identifier: MIT
 * Tests checkpoints of hybrid models: conversations that continue a long shared prefix compute only their new
 * tokens, stay within the memory limit, and have the bits of a session that computes everything. */
#include "test_folder.h"

#include <sys/stat.h>

#include "base/file.h"
#include "ndf_reseal.h"
#include "random_model.h"
#include "runtime/model.h"
#include "runtime/session.h"

enum {
    N_CLIENTS = 4,
    N_TURNS = 20,
    PREFIX = 1500,
    PREFIX_MAX = 24576,
    USER = 21,
    ANSWER = 23,
    AGAIN_MAX = 64, /* maximum number of tokens that a turn may compute again */
    N_IDS_MAX = PREFIX_MAX + 2560,
};

/* All tokens of a client's conversation, and the tokens that its sequence has. */
typedef struct client {
    int32_t ids[N_IDS_MAX];
    uint32_t n;
    int32_t held[N_IDS_MAX];
    uint32_t n_held;
} client;

static whit_ndf_writer *writer;
static whit_model *model;
static whit_config config;

/* Opens the first random model that has recurrent layers and no windows. */
static int set_up(void **state)
{
    whit_error error;
    char path[64];
    if (make_folder(state)) return -1;
    for (uint32_t i = 0; i < random_model_count() && !model; i++) {
        whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        bool has_windows = false;
        if (random_model_make(i, &writer, &config, &error) != WHIT_OK) return -1;
        for (uint32_t k = 0; k < config.n_kinds; k++) has_windows |= config.kinds[k].window != 0;
        snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
        if (config.conv_taps && !has_windows)
            return whit_model_open(path, &options, &model, &error) == WHIT_OK ? 0 : -1;
        whit_ndf_writer_close(writer);
    }
    return -1;
}

static int tear_down(void **state)
{
    whit_model_close(model);
    whit_ndf_writer_close(writer);
    return remove_folder(state);
}

/* Returns the length of the long conversation's prefix: WHIT_PREFIX, or PREFIX. */
static uint32_t prefix_tokens(void)
{
    const char *text = getenv("WHIT_PREFIX");
    const unsigned long n = text ? strtoul(text, NULL, 10) : PREFIX;
    assert_in_range(n, 1, PREFIX_MAX);
    return (uint32_t)n;
}

static whit_session *open_session(const whit_model *of, uint32_t n_sequences, uint64_t state_bytes)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = prefix_tokens() + 2560;
    options.n_sequences = n_sequences;
    options.n_threads = 1;
    options.state_bytes = state_bytes;
    assert_ok(whit_session_open(of, &options, &session, &error), error);
    return session;
}

static uint64_t mark_bytes(void)
{
    whit_error error;
    whit_mark_counts counts = {.struct_bytes = sizeof counts};
    assert_ok(whit_session_predict_marks(model, NULL, &counts, &error), error);
    assert_true(counts.mark_bytes > 0);
    return counts.mark_bytes;
}

static void add_ids(client *c, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n; i++) c->ids[c->n++] = (int32_t)((seed * 7919u + i * 31u + i / 5 % 3) % config.n_vocab);
}

static const float *feed(whit_session *session, uint32_t sequence, const int32_t *ids, uint32_t from, uint32_t to)
{
    static whit_step_token tokens[N_IDS_MAX];
    whit_error error;
    for (uint32_t i = from; i < to; i++)
        tokens[i - from] = (whit_step_token){.sequence = sequence, .id = ids[i], .want_logits = i + 1 == to};
    assert_ok(whit_session_step(session, tokens, to - from, &error), error);
    return whit_session_logits(session, 0);
}

static void expect_same(const float *logits, whit_session *plain, const client *c)
{
    whit_error error;
    assert_ok(whit_session_truncate(plain, 0, 0, &error), error);
    assert_memory_equal(logits, feed(plain, 0, c->ids, 0, c->n), config.n_vocab * sizeof *logits);
}

/* Makes one turn, with the checkpoints that a generation makes. Returns how many of the prompt's tokens were computed
 * although the sequence had them. */
static uint32_t take_turn(whit_session *session, uint32_t sequence, client *c, uint32_t seed, whit_session *plain)
{
    whit_error error;
    uint32_t n_present, n_common = 0;
    add_ids(c, USER, seed);
    while (n_common < c->n_held && n_common < c->n && c->held[n_common] == c->ids[n_common]) n_common++;
    assert_ok(whit_session_reuse(session, sequence, c->ids, c->n, &n_present, &error), error);
    const uint32_t n_again = n_common > n_present ? n_common - n_present : 0;
    const float *logits = feed(session, sequence, c->ids, n_present, c->n);
    if (plain) expect_same(logits, plain, c);
    assert_ok(whit_session_mark(session, sequence, &error), error);
    const uint32_t n_prompt = c->n;
    add_ids(c, ANSWER, seed + 100000);
    for (uint32_t i = n_prompt; i < c->n; i++) feed(session, sequence, c->ids, i, i + 1);
    assert_ok(whit_session_mark(session, sequence, &error), error);
    memcpy(c->held, c->ids, c->n * sizeof *c->ids);
    c->n_held = c->n;
    return n_again;
}

/* Turns are longer than the tokens that may be lost, and the prefix has more positions for checkpoints than there are
 * places: the newest checkpoints of the sequences must not be evicted for those. */
static void newest_marks_outlive_those_within_a_prefix(void **state)
{
    (void)state;
    enum { N_MARKS = 24, N_PREFIX = 5120, INTERVAL = 256, N_LONG_TURNS = 12, MORE = 40 };
    static client clients[N_CLIENTS];
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 8192;
    options.n_sequences = N_CLIENTS;
    options.n_threads = 1;
    options.state_bytes = N_MARKS * mark_bytes();
    options.n_mark_tokens = INTERVAL;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    memset(clients, 0, sizeof clients);
    for (uint32_t i = 0; i < N_CLIENTS; i++) add_ids(&clients[i], N_PREFIX, 1);
    for (uint32_t turn = 0; turn < N_LONG_TURNS; turn++)
        for (uint32_t i = 0; i < N_CLIENTS; i++) {
            client *c = &clients[i];
            add_ids(c, MORE, 37 * i + turn + 5);
            const uint32_t n_again = take_turn(session, i, c, 37 * i + turn, NULL);
            if (turn && n_again > AGAIN_MAX) fail_msg("client %u, turn %u: %u tokens computed again", i, turn, n_again);
            c->n -= ANSWER; /* the next prompt contains another answer */
            add_ids(c, ANSWER, 37 * i + turn + 9);
        }
    whit_session_close(session);
}

/* Four clients take turns. Every third turn loses the beginning of the last answer, as templates drop thinking. */
static void twenty_turns_compute_new_tokens_alone(void **state)
{
    (void)state;
    enum { N_MARKS = 40 };
    static client clients[N_CLIENTS];
    const uint32_t n_prefix = prefix_tokens();
    const uint64_t budget = N_MARKS * mark_bytes();
    whit_session *session = open_session(model, N_CLIENTS, budget), *plain = open_session(model, 1, 0);
    memset(clients, 0, sizeof clients);
    for (uint32_t i = 0; i < N_CLIENTS; i++) {
        add_ids(&clients[i], n_prefix, 1);
        /* the end of the common prefix is known from the second client on */
        if (i > 1) memcpy(clients[i].held, clients[i].ids, (clients[i].n_held = n_prefix) * sizeof *clients[i].ids);
    }
    for (uint32_t turn = 0; turn < N_TURNS; turn++)
        for (uint32_t i = 0; i < N_CLIENTS; i++) {
            client *c = &clients[i];
            if (turn && turn % 3 == 0) {
                const uint32_t at = c->n - ANSWER, n_lost = 8;
                memmove(c->ids + at, c->ids + at + n_lost, (ANSWER - n_lost) * sizeof *c->ids);
                c->n -= n_lost;
            }
            const uint32_t n_again = take_turn(session, i, c, 37 * i + turn, turn % 10 == 9 ? plain : NULL);
            if (n_again > AGAIN_MAX) fail_msg("client %u, turn %u: %u tokens computed again", i, turn, n_again);
        }
    whit_mark_counts counts = {.struct_bytes = sizeof counts};
    whit_session_count_marks(session, &counts);
    assert_int_equal(counts.n_marks_max, N_MARKS);
    assert_true(counts.n_marks * counts.mark_bytes <= budget);
    assert_int_equal(counts.n_made - counts.n_evicted, counts.n_marks);
    assert_true(counts.n_evicted > 0 && counts.n_used > 0);
    whit_session_close(session);
    whit_session_close(plain);
}

/* A prompt gets checkpoints at regular intervals, so that a truncation loses at most one interval of tokens. */
static void long_prompts_are_marked_on_the_way(void **state)
{
    (void)state;
    enum { INTERVAL = 200, N = 3000 };
    whit_error error;
    whit_session *session, *plain = open_session(model, 1, 0);
    static client c;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 4096;
    options.n_threads = 1;
    options.state_bytes = 20 * mark_bytes();
    options.n_mark_tokens = INTERVAL;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    c.n = 0;
    add_ids(&c, N, 3);
    feed(session, 0, c.ids, 0, N);
    for (uint32_t at = N - 150; at > INTERVAL; at -= 350) {
        assert_ok(whit_session_truncate(session, 0, at, &error), error);
        assert_in_range(whit_session_position(session, 0), at - INTERVAL + 1, at);
        client cut = c;
        cut.n = at + 5;
        expect_same(feed(session, 0, c.ids, whit_session_position(session, 0), at + 5), plain, &cut);
    }
    whit_session_close(session);
    whit_session_close(plain);
}

/* Positions that are not multiples of 4, with a cache type that stores 4 positions together. */
static void blocks_of_i8_are_saved_whole(void **state)
{
    (void)state;
    enum { N = 19 };
    whit_error error;
    whit_session *session[2];
    static client c;
    uint32_t n_saved;
    whit_session_file *file;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 256;
    options.n_threads = 1;
    options.kv = WHIT_KV_I8;
    for (int i = 0; i < 2; i++) assert_ok(whit_session_open(model, &options, &session[i], &error), error);
    c.n = 0;
    add_ids(&c, N + 1, 7);
    feed(session[0], 0, c.ids, 0, N);
    assert_ok(whit_session_snapshot(session[0], 0, in_folder("c"), "test", &n_saved, &error), error);
    assert_ok(whit_session_load(session[1], 0, in_folder("c"), "test", &file, &error), error);
    whit_session_file_close(file);
    assert_int_equal(whit_session_position(session[1], 0), N);
    const float *expected = feed(session[0], 0, c.ids, N, N + 1);
    assert_memory_equal(feed(session[1], 0, c.ids, N, N + 1), expected, config.n_vocab * sizeof *expected);
    for (int i = 0; i < 2; i++) whit_session_close(session[i]);
}

/* With fewer places than prefixes, the prefix that all share must stay. */
static void the_shared_prefix_outlives_others(void **state)
{
    (void)state;
    enum { N_MARKS = 3, N_ROUNDS = 12 };
    static client c;
    whit_error error;
    whit_session *session = open_session(model, 1, N_MARKS * mark_bytes()), *plain = open_session(model, 1, 0);
    uint32_t n_present;
    for (uint32_t i = 0; i < N_ROUNDS; i++) {
        c.n = 0;
        add_ids(&c, PREFIX / 2, 5);
        add_ids(&c, 2 * USER, 700 + i);
        assert_ok(whit_session_reuse(session, 0, c.ids, c.n, &n_present, &error), error);
        if (i > 1) assert_in_range(n_present, PREFIX / 2 - AGAIN_MAX, PREFIX / 2);
        expect_same(feed(session, 0, c.ids, n_present, c.n), plain, &c);
        assert_ok(whit_session_mark(session, 0, &error), error);
    }
    whit_session_close(session);
    whit_session_close(plain);
}

static size_t file_bytes(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return (size_t)about.st_size;
}

/* A snapshot contains the end of the sequence and earlier checkpoints, so that a later session can resume where this
 * one could. */
static void snapshots_keep_marks(void **state)
{
    (void)state;
    whit_error error;
    whit_session_file *file;
    static client c;
    uint32_t n_saved, n_present;
    whit_session *session = open_session(model, 2, 8 * mark_bytes()), *plain = open_session(model, 1, 0);
    c.n = c.n_held = 0;
    add_ids(&c, PREFIX, 17);
    feed(session, 0, c.ids, 0, c.n);
    assert_ok(whit_session_mark(session, 0, &error), error);
    for (uint32_t turn = 0; turn < 3; turn++) take_turn(session, 0, &c, 30 + turn, NULL);
    assert_ok(whit_session_share(session, 0, 1, PREFIX, &error), error); /* a second client with the same prefix */
    assert_int_equal(whit_session_position(session, 1), PREFIX);
    assert_ok(whit_write_file(in_folder("a.new"), "own", 3, &error), error); /* a snapshot keeps files of other names */
    assert_ok(whit_session_snapshot(session, 0, in_folder("a"), "test", &n_saved, &error), error);
    assert_int_equal(access(in_folder("a.new"), F_OK), 0);
    assert_int_equal(n_saved, c.n);
    assert_int_equal(whit_session_position(session, 0), c.n);
    whit_session_close(session);
    /* the answer is dropped and a new question follows: the end of the prompt must be found */
    session = open_session(model, 2, 8 * mark_bytes());
    assert_ok(whit_session_load(session, 0, in_folder("a"), "test", &file, &error), error);
    whit_session_file_close(file);
    assert_int_equal(whit_session_position(session, 0), c.n);
    c.n -= ANSWER;
    const uint32_t n_before = c.n;
    add_ids(&c, USER, 99);
    assert_ok(whit_session_reuse(session, 0, c.ids, c.n, &n_present, &error), error);
    assert_in_range(n_present, n_before, c.n);
    expect_same(feed(session, 0, c.ids, n_present, c.n), plain, &c);
    /* another conversation with the same prefix */
    c.n = PREFIX;
    add_ids(&c, USER, 98);
    assert_ok(whit_session_reuse(session, 1, c.ids, c.n, &n_present, &error), error);
    assert_in_range(n_present, PREFIX - AGAIN_MAX, c.n);
    expect_same(feed(session, 1, c.ids, n_present, c.n), plain, &c);
    whit_session_close(session);
    whit_session_close(plain);
}

/* Turns soon after a stored state must not store another one. */
static void short_turns_store_no_state(void **state)
{
    (void)state;
    enum { N_SHORT = 5, SHORT = 12 };
    whit_error error;
    whit_session_file *file;
    static client c;
    whit_session *session = open_session(model, 1, 4 * mark_bytes()), *plain = open_session(model, 1, 0);
    const size_t state_bytes = (size_t)mark_bytes();
    c.n = 0;
    assert_ok(whit_session_load(session, 0, in_folder("b"), "test", &file, &error), error);
    for (uint32_t turn = 0; turn <= N_SHORT; turn++) {
        const uint32_t from = c.n;
        const size_t before = file_bytes(in_folder("b"));
        add_ids(&c, turn ? SHORT : 2 * AGAIN_MAX, 60 + turn);
        feed(session, 0, c.ids, from, c.n);
        whit_session_turn entry = whit_session_turn_default();
        entry.ids = c.ids;
        entry.n_ids = entry.n_given = c.n;
        assert_ok(whit_session_save(file, &entry, &error), error);
        const size_t added = file_bytes(in_folder("b")) - before;
        if (turn)
            assert_true(added < state_bytes / 2);
        else
            assert_true(added > state_bytes / 2);
    }
    whit_session_file_close(file);
    whit_session_close(session);
    session = open_session(model, 1, 4 * mark_bytes());
    assert_ok(whit_session_load(session, 0, in_folder("b"), "test", &file, &error), error);
    whit_session_file_close(file);
    assert_int_equal(whit_session_position(session, 0), c.n);
    const uint32_t from = c.n;
    add_ids(&c, 3, 90);
    expect_same(feed(session, 0, c.ids, from, c.n), plain, &c);
    whit_session_close(session);
    whit_session_close(plain);
}

/* A tail has one partly filled block. Positions of blocks before it cannot be continued with it, though the recurrent
 * layers could be. */
static void tails_serve_their_last_block(void **state)
{
    (void)state;
    enum { N = 130, LAST_BLOCK = 128 };
    static client c;
    whit_session *session = open_session(model, 1, 4 * mark_bytes());
    const whit_kv *kv = &session->kv;
    c.n = 0;
    add_ids(&c, N, 1);
    feed(session, 0, c.ids, 0, N);
    assert_false(whit_kv_is_packed(kv->shape.type));
    assert_true(whit_kv_has_tail(kv, 0, N));
    uint8_t *tail = malloc((size_t)whit_kv_tail_bytes(kv, N));
    assert_non_null(tail);
    whit_kv_tail_save(kv, 0, N, tail);
    assert_true(whit_kv_tail_commit(kv, N, tail) < LAST_BLOCK - 1);
    for (uint32_t at = 0; at < 2 * N; at++) {
        const bool serves = at >= LAST_BLOCK && at <= N;
        if (whit_kv_tail_serves(kv, N, at, tail) != serves) fail_msg("position %u", at);
    }
    free(tail);
    whit_session_close(session);
}

/* Loads bytes as a session file. If it is refused, the message must be one line that names the file. */
static whit_status load_bytes(whit_session *session, const uint8_t *bytes, size_t n)
{
    whit_error error = {.message = ""};
    whit_session_file *file = NULL;
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    assert_ok(whit_write_file(in_folder("d"), bytes, n, &error), error);
    const whit_status status = whit_session_load(session, 0, in_folder("d"), "test", &file, &error);
    whit_session_file_close(file);
    if (status == WHIT_OK) return status;
    if (!strstr(error.message, test_folder) || strchr(error.message, '\n')) fail_msg("not one line: %s", error.message);
    assert_int_equal(whit_session_position(session, 0), 0);
    return status;
}

/* Damaged states: a hash must detect each changed byte; with correct hashes, values that no state can have must be
 * detected. */
static void damaged_states_are_one_line(void **state)
{
    (void)state;
    enum { N = 150, N_DAMAGES = 60 };
    static client c;
    whit_error error;
    uint32_t n_saved;
    whit_buf bytes = {0};
    whit_session *session = open_session(model, 1, 4 * mark_bytes());
    const uint64_t state_bytes = whit_state_saved_bytes(&session->kv.state);
    c.n = 0;
    add_ids(&c, N, 7);
    feed(session, 0, c.ids, 0, N);
    assert_ok(whit_session_snapshot(session, 0, in_folder("c"), "test", &n_saved, &error), error);
    assert_int_equal(n_saved, N);
    assert_ok(whit_read_file(in_folder("c"), 64 << 20, &bytes, &error), error);
    uint8_t *copy = malloc(bytes.size_bytes);
    assert_non_null(copy);
    /* the newest state's header: number of committed tokens, then of all tokens */
    uint8_t *found = NULL;
    for (size_t at = 0; at + state_bytes <= bytes.size_bytes; at += 8) {
        uint32_t header[2];
        memcpy(header, bytes.data + at, sizeof header);
        if (header[1] == N && header[0] <= N && header[0] + WHIT_STATE_RING > N) found = bytes.data + at;
    }
    assert_non_null(found);
    const size_t begin = (size_t)(found - bytes.data);
    for (uint32_t i = 0; i < N_DAMAGES; i++) {
        const size_t at = i * (bytes.size_bytes - 1) / (N_DAMAGES - 1);
        memcpy(copy, bytes.data, bytes.size_bytes);
        copy[at] ^= (uint8_t)(1u << i % 8);
        /* a turn without its end was not committed, so it is ignored */
        if (load_bytes(session, copy, bytes.size_bytes) == WHIT_OK)
            assert_int_equal(whit_session_position(session, 0), 0);
    }
    static const uint32_t no_numbers[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF};
    static const uint32_t no_headers[][2] = {{N, N + 1}, {N - 1, N - 1}, {N + 1, N}, {0, N}, {0, 0}, {N, UINT32_MAX}};
    for (uint32_t i = 0; i < N_DAMAGES; i++) {
        memcpy(copy, bytes.data, bytes.size_bytes);
        if (i < sizeof no_headers / sizeof *no_headers) {
            memcpy(copy + begin, no_headers[i], sizeof *no_headers);
        } else {
            const size_t at = begin + 64 + i * (state_bytes - 68) / N_DAMAGES / 4 * 4;
            memcpy(copy + at, &no_numbers[i % 4], 4);
        }
        ndf_reseal(copy, bytes.size_bytes);
        if (load_bytes(session, copy, bytes.size_bytes) == WHIT_OK) fail_msg("damage %u is loaded", i);
    }
    assert_int_equal(load_bytes(session, bytes.data, bytes.size_bytes), WHIT_OK);
    assert_int_equal(whit_session_position(session, 0), N);
    free(copy);
    whit_buf_free(&bytes);
    whit_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_turns_compute_new_tokens_alone),
        cmocka_unit_test(newest_marks_outlive_those_within_a_prefix),
        cmocka_unit_test(long_prompts_are_marked_on_the_way),
        cmocka_unit_test(blocks_of_i8_are_saved_whole),
        cmocka_unit_test(the_shared_prefix_outlives_others),
        cmocka_unit_test(snapshots_keep_marks),
        cmocka_unit_test(short_turns_store_no_state),
        cmocka_unit_test(tails_serve_their_last_block),
        cmocka_unit_test(damaged_states_are_one_line),
    };
    return cmocka_run_group_tests_name("checkpoints", tests, set_up, tear_down);
}
