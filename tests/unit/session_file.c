/* SPDX-License-Identifier: MIT
 * Tests session files: a loaded session continues with the same bits, other models and settings are refused, and
 * every altered, cut, reordered or exchanged frame is named. */
#include "test_folder.h"

#include "adapter_sample.h"
#include "base/rng.h"
#include "failing_memory.h"
#include "format/ndf_append.h"
#include "format/ndf_sign.h"
#include "format/ndf_verify.h"
#include "ndf_reseal.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "runtime/session_frames.h"
#include "tiny_model.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>

enum { N_CTX = 256 };

static whit_model *model, *other;

static int set_up(void **state)
{
    tiny_model tiny = tiny_model_default();
    if (make_folder(state)) return -1;
    if (!tiny_model_write(&tiny, in_folder("a.gguf"))) return -1;
    tiny.seed = 2;
    if (!tiny_model_write(&tiny, in_folder("b.gguf"))) return -1;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    whit_error error;
    return whit_model_open(in_folder("a.gguf"), &options, &model, &error) != WHIT_OK ||
        whit_model_open(in_folder("b.gguf"), &options, &other, &error) != WHIT_OK;
}

static int tear_down(void **state)
{
    whit_model_close(model);
    whit_model_close(other);
    return remove_folder(state);
}

static whit_session *open_session(const whit_model *of, whit_kv_type kv)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_CTX;
    options.n_sequences = 2;
    options.n_threads = 1;
    options.kv = kv;
    assert_ok(whit_session_open(of, &options, &session, &error), error);
    return session;
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* A user of the library: all ids of a sequence, and a sampler whose state continues from turn to turn. */
struct talk {
    whit_session *session;
    uint32_t sequence;
    whit_session_file *file; /* NULL: nothing is saved */
    whit_sampler_state state;
    bool goes_on;
    int32_t ids[N_CTX + 1];
    size_t n;
    uint64_t seed;
};

static bool take_id(void *user, int32_t id)
{
    struct talk *talk = user;
    talk->ids[talk->n++] = id;
    return true;
}

/* Adds the given ids, then picks n_picked more, and saves them as a turn. */
static void turn(struct talk *talk, const int32_t *given, size_t n_given, uint32_t n_picked, bool tokens_only)
{
    whit_error error;
    whit_sampler *sampler;
    whit_sampler_options options = whit_sampler_options_default();
    options.seed = talk->seed;
    options.repeat_penalty = 1.1f;
    options.mirostat = 2;
    assert_ok(whit_sampler_open(model, &options, &sampler, &error), error);
    if (talk->goes_on) whit_sampler_restore(sampler, &talk->state);
    if (n_given) memcpy(talk->ids + talk->n, given, n_given * sizeof *given);
    talk->n += n_given;
    uint32_t position = whit_session_position(talk->session, talk->sequence);
    if (position == talk->n) assert_ok(whit_session_truncate(talk->session, talk->sequence, --position, &error), error);
    whit_session_turn kept = {.struct_bytes = sizeof kept,
                              .ids = talk->ids,
                              .n_given = talk->n,
                              .sampler = sampler,
                              .tokens_only = tokens_only};
    whit_sampler_save(sampler, &kept.before);
    whit_generate_options generate = whit_generate_options_default();
    whit_generate_result result = whit_generate_result_default();
    int32_t fed[N_CTX];
    memcpy(fed, talk->ids, talk->n * sizeof *fed);
    generate.sequence = talk->sequence;
    generate.n_present = position;
    generate.n_tokens = n_picked;
    generate.ignore_end = true;
    generate.on_token = take_id;
    generate.user = talk;
    assert_ok(whit_generate(talk->session, sampler, fed, talk->n, &generate, &result, &error), error);
    whit_sampler_save(sampler, &talk->state);
    talk->goes_on = true;
    kept.n_ids = talk->n;
    kept.finish = result.finish;
    if (talk->file) assert_ok(whit_session_save(talk->file, &kept, &error), error);
    whit_sampler_close(sampler);
}

static struct talk *load(const whit_model *of, whit_kv_type kv, uint32_t sequence, const char *path)
{
    whit_error error;
    whit_sampler_options options = whit_sampler_options_default();
    struct talk *talk = calloc(1, sizeof *talk);
    *talk = (struct talk){.session = open_session(of, kv), .sequence = sequence, .seed = 5};
    if (!path) return talk;
    assert_ok(whit_session_load(talk->session, sequence, path, "text", &talk->file, &error), error);
    const int32_t *ids = whit_session_file_ids(talk->file, &talk->n);
    if (talk->n) memcpy(talk->ids, ids, talk->n * sizeof *ids);
    talk->goes_on = whit_session_file_sampler(talk->file, &options, &talk->state);
    return talk;
}

static void leave(struct talk *talk)
{
    whit_session_file_close(talk->file);
    whit_session_close(talk->session);
    free(talk);
}

static const int32_t given[] = {1, 260, 270, 262, 290, 299, 261, 275, 280, 285};

static void goes_on_with_the_same_bits(void **state)
{
    (void)state;
    whit_error error;
    const whit_kv_type types[] = {WHIT_KV_F16, WHIT_KV_F32, WHIT_KV_I8, WHIT_KV_K4V2, WHIT_KV_K2V2, WHIT_KV_BITMAP};
    for (int t = 0; t < 6; t++)
        for (int only = 0; only < 2; only++) {
            const char *path = in_folder("same.ndf");
            struct talk *whole = load(model, types[t], 0, NULL);
            turn(whole, given, 10, 90, false);
            turn(whole, given + 3, 4, 40, false);
            turn(whole, NULL, 0, 30, false);
            for (int i = 0; i < 3; i++) { /* a new program each time, in either sequence */
                struct talk *part = load(model, types[t], (uint32_t)i % 2, path);
                if (i == 0) turn(part, given, 10, 90, only);
                if (i == 1) turn(part, given + 3, 4, 40, only);
                if (i == 2) turn(part, NULL, 0, 30, only);
                if (i == 2) assert_int_equal(part->n, whole->n);
                assert_memory_equal(part->ids, whole->ids, part->n * sizeof *part->ids);
                leave(part);
            }
            struct stat info;
            assert_int_equal(stat(path, &info), 0);
            assert_int_equal(info.st_mode & 0777, 0600);
            if (only) assert_true(info.st_size < 16384);
            whit_session_replay replay = whit_session_replay_default();
            assert_ok(whit_session_replay_file(model, NULL, NULL, 0, path, &replay, &error), error);
            assert_true(replay.is_same);
            assert_int_equal(replay.n_picked, 160);
            leave(whole);
            unlink(path);
        }
}

static void undoes(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("undo.ndf");
    struct talk *talk = load(model, WHIT_KV_F16, 0, path);
    turn(talk, given, 10, 120, false);
    /* Goes back into the picked tokens and continues differently. */
    assert_ok(whit_session_truncate(talk->session, 0, 70, &error), error);
    talk->n = 70;
    turn(talk, given, 5, 80, false);
    int32_t ids[N_CTX];
    size_t n = talk->n, n_there, n_note;
    memcpy(ids, talk->ids, n * sizeof *ids);
    /* A turn that is only a note, then one that removes all tokens. */
    whit_session_turn note = {
        .struct_bytes = sizeof note, .ids = ids, .n_ids = n - 1, .n_given = n - 1, .note = "abc", .note_bytes = 3};
    assert_ok(whit_session_save(talk->file, &note, &error), error);
    leave(talk);
    talk = load(model, WHIT_KV_F16, 0, path);
    assert_int_equal(whit_session_file_n_turns(talk->file), 3);
    assert_memory_equal(whit_session_file_note(talk->file, 2, &n_note), "abc", 3);
    assert_int_equal(n_note, 3);
    assert_int_equal(talk->n, n - 1);
    assert_memory_equal(talk->ids, ids, talk->n * sizeof *ids);
    assert_int_equal(whit_session_position(talk->session, 0), talk->n);
    turn(talk, NULL, 0, 20, false);
    leave(talk);
    whit_session_replay replay = whit_session_replay_default();
    assert_ok(whit_session_replay_file(model, NULL, NULL, 0, path, &replay, &error), error);
    assert_true(replay.is_same);
    assert_int_equal(replay.n_turns, 4);
    talk = load(model, WHIT_KV_F16, 0, path);
    assert_ok(whit_session_truncate(talk->session, 0, 0, &error), error);
    assert_ok(whit_session_save(talk->file, &(whit_session_turn){.struct_bytes = sizeof(whit_session_turn), .ids = ids},
                                &error),
              error);
    (void)whit_session_file_ids(talk->file, &n_there);
    assert_int_equal(n_there, 0);
    leave(talk);
    talk = load(model, WHIT_KV_F16, 0, path);
    assert_int_equal(talk->n, 0);
    leave(talk);
    unlink(path);
}

static whit_adapter *make_adapter(const char *name, uint64_t seed)
{
    whit_error error;
    whit_adapter *adapter;
    whit_buf image = {0};
    adapter_sample sample = {.seed = seed, .rank = 3, .size = 0.1f};
    assert_true(adapter_sample_build(&sample, model->file, &image, &error));
    const char *path = in_folder(name);
    assert_ok(whit_ndf_write_loose(path, WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error), error);
    whit_buf_free(&image);
    assert_ok(whit_adapter_open(model, path, &adapter, &error), error);
    return adapter;
}

static void refuses(whit_session *session, const char *path, const char *purpose, const char *what)
{
    whit_error error = {0};
    whit_session_file *file;
    whit_status status = whit_session_load(session, 0, path, purpose, &file, &error);
    assert_int_not_equal(status, WHIT_OK);
    assert_null(file);
    if (!strstr(error.message, what)) fail_msg("'%s' lacks '%s'", error.message, what);
}

static void refuses_what_differs(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("refuse.ndf");
    whit_adapter *one = make_adapter("one.ndf", 1), *two = make_adapter("two.ndf", 2);
    whit_mount mounts[] = {{one, 0.5f}};
    whit_session *session = open_session(model, WHIT_KV_F16);
    whit_session_file *file, *again;
    assert_ok(whit_session_mount(session, 0, mounts, 1, &error), error);
    assert_ok(whit_session_load(session, 0, path, "text", &file, &error), error);
    refuses(session, path, "text", "another program is writing the file");
    whit_session_file_close(file);
    assert_ok(whit_session_load(session, 0, path, "text", &again, &error), error);
    whit_session_file_close(again);
    refuses(session, path, "chat", "the purpose text, but this run has chat");
    mounts[0].scale = 0.25f;
    assert_ok(whit_session_mount(session, 0, mounts, 1, &error), error);
    refuses(session, path, "text", "the adapter 'sample' at 0.5, but this run has 'sample' at 0.25");
    mounts[0] = (whit_mount){two, 0.5f};
    assert_ok(whit_session_mount(session, 0, mounts, 1, &error), error);
    refuses(session, path, "text", "the adapter");
    assert_ok(whit_session_mount(session, 0, NULL, 0, &error), error);
    refuses(session, path, "text", "but this run has none");
    whit_session_close(session);
    session = open_session(model, WHIT_KV_I8);
    refuses(session, path, "text", "the KV cache f16, but this run has i8");
    whit_session_close(session);
    session = open_session(other, WHIT_KV_F16);
    refuses(session, path, "text", "the model");
    refuses(session, in_folder("a.gguf"), "text", "not an .ndf");
    refuses(session, in_folder("one.ndf"), "text", "not a session");
    whit_session_close(session);
    whit_adapter_close(one);
    whit_adapter_close(two);
    unlink(path);
}

/* A file that names no adapter may not hold anything computed with one. */
static void saves_nothing_of_other_adapters(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("mounts.ndf");
    whit_adapter *one = make_adapter("one.ndf", 1);
    whit_mount mount = {one, 0.5f};
    struct talk *talk = load(model, WHIT_KV_F16, 0, path);
    turn(talk, given, 10, 20, false);
    whit_session_turn next = {.struct_bytes = sizeof next, .ids = talk->ids, .n_ids = talk->n, .n_given = talk->n};
    assert_ok(whit_session_save(talk->file, &next, &error), error); /* saving the same again is allowed */
    assert_ok(whit_session_mount(talk->session, 0, &mount, 1, &error), error);
    assert_int_equal(whit_session_save(talk->file, &next, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "adapters were changed"));
    /* tokens computed in between may depend on the adapter */
    assert_ok(whit_session_mount(talk->session, 0, NULL, 0, &error), error);
    assert_int_equal(whit_session_save(talk->file, &next, &error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_session_truncate(talk->session, 0, 0, &error), error);
    assert_ok(whit_session_mount(talk->session, 0, &mount, 1, &error), error);
    next.n_ids = next.n_given = 0;
    assert_int_equal(whit_session_save(talk->file, &next, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "but this run has 'sample' at 0.5"));
    leave(talk);
    talk = load(model, WHIT_KV_F16, 0, path);
    assert_int_equal(whit_session_file_n_turns(talk->file), 2);
    leave(talk);
    whit_adapter_close(one);
    unlink(path);
}

/* ---- damage --------------------------------------------------------------------------------- */

static uint8_t *read_all(const char *path, size_t *n)
{
    whit_buf buf = {0};
    whit_error error;
    assert_ok(whit_read_file(path, SIZE_MAX / 2, &buf, &error), error);
    uint8_t *bytes = malloc(buf.size_bytes);
    memcpy(bytes, buf.data, *n = buf.size_bytes);
    whit_buf_free(&buf);
    return bytes;
}

/* Verifies a file of these bytes. Returns the number of the frame that the error names, -1 if all is whole. */
static long first_bad(int fd, const uint8_t *bytes, size_t n, whit_error *error)
{
    char path[64];
    whit_ndf *ndf;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), (ssize_t)n);
    whit_status status = whit_ndf_open_loose(path, NULL, &ndf, error);
    if (status == WHIT_OK) {
        status = whit_ndf_verify(ndf, 1, NULL, NULL, NULL, error);
        whit_ndf_close(ndf);
    }
    /* Reading damaged bytes as turns must not crash either. */
    whit_ndf_log log;
    whit_session_record record = {0};
    whit_error inner;
    if (whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, &inner) == WHIT_OK) {
        (void)whit_session_record_read(&log, NULL, NULL, NULL, &record, &inner);
        whit_session_record_free(&record);
        whit_ndf_log_close(&log);
    }
    if (status == WHIT_OK) return -1;
    const char *at = strstr(error->message, "frame ");
    if (!at) fail_msg("no frame is named: %s", error->message);
    return strtol(at + 6, NULL, 10);
}

/* Damages a file of turns, each of n_tokens tokens, at random; every damage must be found in its frame. */
static void name_every_damage(whit_kv_type kv, uint32_t n_tokens)
{
    whit_error error = {0};
    const char *path = in_folder("damage.ndf"), *path_2 = in_folder("damage2.ndf");
    enum { TURNS = 4, N = 2 * (TURNS + 1) };
    for (int i = 0; i < 2; i++) {
        struct talk *talk = load(model, kv, 0, i ? path_2 : path);
        talk->seed = 5 + (uint64_t)i;
        for (int k = 0; k < TURNS; k++) turn(talk, given, 5, n_tokens - 5, false);
        leave(talk);
    }
    size_t n, n_2;
    uint8_t *bytes = read_all(path, &n), *bytes_2 = read_all(path_2, &n_2), *copy = malloc(n + n_2);
    size_t at[N + 1] = {0}, at_2[N + 1] = {0};
    for (int i = 0; i < N; i++) {
        at[i + 1] = at[i] + whit_ndf_frame_bytes(((whit_ndf_header *)(void *)(bytes + at[i]))->payload_bytes);
        at_2[i + 1] = at_2[i] + whit_ndf_frame_bytes(((whit_ndf_header *)(void *)(bytes_2 + at_2[i]))->payload_bytes);
    }
    assert_int_equal(at[N], n);
    int fd = memfd_create("damage", MFD_CLOEXEC);
    whit_rng rng = {9};
    assert_int_equal(first_bad(fd, bytes, n, &error), -1);
    const int rounds = tests_are_brief() ? 300 : 10000;
    for (int round = 0; round < rounds; round++) {
        size_t place = (size_t)whit_rng_below(&rng, n), n_copy = n;
        long frame = 0;
        while (at[frame + 1] <= place) frame++;
        memcpy(copy, bytes, n);
        if (round % 4 < 2) { /* altered: some bits of a byte */
            copy[place] ^= (uint8_t)(1 + whit_rng_below(&rng, 255));
        } else if (round % 4 == 2) { /* cut, but not at the end of a commit, which gives a valid file */
            if (place == at[frame] && frame % 2 == 0) continue;
            n_copy = place;
        } else {
            long i = (long)whit_rng_below(&rng, N), k = (long)whit_rng_below(&rng, N);
            if (i > k) {
                long swapped = i;
                i = k;
                k = swapped;
            }
            if (i == k) { /* the frame is exchanged for that of another session */
                size_t size = at[i + 1] - at[i], size_2 = at_2[i + 1] - at_2[i];
                if (size == size_2 && !memcmp(bytes + at[i], bytes_2 + at_2[i], size)) continue;
                memcpy(copy + at[i], bytes_2 + at_2[i], size_2);
                memcpy(copy + at[i] + size_2, bytes + at[i + 1], n - at[i + 1]);
                n_copy = n - size + size_2;
                /* The inserted frame itself is valid if everything before it was the same. */
                frame = memcmp(bytes, bytes_2, at[i]) ? i : i + 1;
                if (n_copy == at[i] + size_2 && frame == i + 1) continue;
            } else { /* two frames are exchanged */
                size_t first = at[i + 1] - at[i], last = at[k + 1] - at[k], between = at[k] - at[i + 1];
                memcpy(copy + at[i], bytes + at[k], last);
                memcpy(copy + at[i] + last, bytes + at[i + 1], between);
                memcpy(copy + at[i] + last + between, bytes + at[i], first);
                frame = i;
            }
        }
        long named = first_bad(fd, copy, n_copy, &error);
        if (named != frame) fail_msg("round %d: frame %ld was named, not %ld: %s", round, named, frame, error.message);
    }
    close(fd);
    free(bytes), free(bytes_2), free(copy);
    unlink(path), unlink(path_2);
}

static void names_every_damage(void **state)
{
    (void)state;
    name_every_damage(WHIT_KV_F16, 10);
    name_every_damage(WHIT_KV_K4V2, 40); /* turns with closed blocks and incomplete blocks */
}

/* Changes one picked token and makes every hash right again: only computing it again shows the change. */
static void replay_tells_a_forgery(void **state)
{
    (void)state;
    whit_error error;
    size_t n;
    const char *path = in_folder("forged.ndf");
    struct talk *talk = load(model, WHIT_KV_F16, 0, path);
    turn(talk, given, 10, 20, true);
    leave(talk);
    uint8_t *bytes = read_all(path, &n);
    int32_t *ids = NULL;
    for (size_t i = 0; i + 64 < n; i += 4)
        if (!memcmp(bytes + i, given, sizeof given)) ids = (int32_t *)(void *)(bytes + i);
    assert_non_null(ids);
    ids[17] ^= 1;
    ndf_reseal(bytes, n);
    assert_ok(whit_write_file(path, bytes, n, &error), error);
    whit_session_replay replay = whit_session_replay_default();
    assert_ok(whit_session_replay_file(model, NULL, NULL, 0, path, &replay, &error), error);
    assert_false(replay.is_same);
    assert_int_equal(replay.position, 17);
    assert_int_equal(replay.id, ids[17]);
    assert_int_equal(replay.id_here, ids[17] ^ 1);
    free(bytes);
    unlink(path);
}

/* Changes a byte of the stored incomplete block of a packed cache and makes every hash right again. */
static void replay_tells_another_tail(void **state)
{
    (void)state;
    whit_error error;
    size_t n;
    const char *path = in_folder("tail.ndf");
    struct talk *talk = load(model, WHIT_KV_K2V2, 0, path);
    turn(talk, given, 10, 80, false);
    leave(talk);
    uint8_t *bytes = read_all(path, &n);
    whit_ndf_log log;
    whit_session_record record;
    assert_ok(whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, &error), error);
    assert_ok(whit_session_record_read(&log, NULL, NULL, NULL, &record, &error), error);
    assert_int_equal(whit_session_record_n_tails(&record), 1);
    const whit_tail_view tail = *(const whit_tail_view *)(const void *)record.tails.data;
    whit_session_record_free(&record);
    whit_ndf_log_close(&log);
    assert_int_equal(tail.n_tokens, 89);
    size_t at = (size_t)(tail.offset + tail.n_bytes - 1);
    while (!bytes[at]) at--; /* finds a byte of the sinks, which come last */
    bytes[at] ^= 2;
    ndf_reseal(bytes, n);
    assert_ok(whit_write_file(path, bytes, n, &error), error);
    whit_session_replay replay = whit_session_replay_default();
    assert_ok(whit_session_replay_file(model, NULL, NULL, 0, path, &replay, &error), error);
    assert_false(replay.is_same);
    assert_int_equal(replay.id, -1);
    assert_int_equal(replay.position, 89);
    free(bytes);
    unlink(path);
}

/* Models a full disk by a limit on file sizes. */
static void a_full_disk_keeps_what_was_there(void **state)
{
    (void)state;
    whit_error error = {0};
    size_t n, n_after;
    const char *path = in_folder("full.ndf");
    struct talk *talk = load(model, WHIT_KV_F16, 0, path);
    turn(talk, given, 10, 60, false);
    uint8_t *bytes = read_all(path, &n), *after;
    struct rlimit before, tight = {n + 2000, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &before);
    tight.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    /* Saves all that the sequence has now as a turn of many blocks. */
    whit_session_file *file = talk->file;
    talk->file = NULL;
    turn(talk, given, 10, 100, false);
    whit_session_turn large = {.struct_bytes = sizeof large, .ids = talk->ids, .n_ids = talk->n, .n_given = talk->n};
    assert_int_equal(whit_session_save(file, &large, &error), WHIT_ERROR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    after = read_all(path, &n_after);
    assert_int_equal(n_after, n);
    assert_memory_equal(after, bytes, n);
    /* The limit is removed. */
    assert_ok(whit_session_save(file, &large, &error), error);
    talk->file = file;
    leave(talk);
    talk = load(model, WHIT_KV_F16, 0, path);
    assert_int_equal(talk->n, large.n_ids);
    leave(talk);
    free(bytes), free(after);
    unlink(path);
}

/* Allocation fails at any place in a save, also after the last write of the turn. In that case the file has the turn,
 * and the next save must take it into account. */
static void no_memory_in_a_save_loses_no_turn(void **state)
{
    (void)state;
    enum { N_FIRST = 10, N_SECOND = 90 };
    whit_error error;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .no_cache = true, .allocator = &allocator};
    whit_model *own;
    whit_sampler *sampler;
    const char *path = in_folder("no_memory.ndf");
    assert_ok(whit_model_open(in_folder("a.gguf"), &model_options, &own, &error), error);
    assert_ok(whit_sampler_open(own, NULL, &sampler, &error), error);
    whit_step_token tokens[N_SECOND];
    int32_t ids[N_SECOND];
    for (int i = 0; i < N_SECOND; i++) tokens[i] = (whit_step_token){.id = ids[i] = given[i % 10]};
    whit_session_turn first = {.struct_bytes = sizeof first, .ids = ids, .n_ids = N_FIRST, .n_given = N_FIRST};
    whit_session_turn second = first;
    second.n_ids = N_SECOND;
    second.sampler = sampler; /* the file's first turn with sampler settings */
    second.note = "abc";
    second.note_bytes = 3;
    whit_sampler_save(sampler, &second.before);
    whit_session *session = open_session(own, WHIT_KV_F16), *reader = open_session(own, WHIT_KV_F16);
    whit_status status = WHIT_ERROR_MEMORY;
    size_t n_behind = 0;
    for (long n = 0; status != WHIT_OK; n++) {
        whit_session_file *file;
        struct stat before, after;
        assert_ok(whit_session_load(session, 0, path, "text", &file, &error), error);
        assert_ok(whit_session_step(session, tokens, N_FIRST, &error), error);
        assert_ok(whit_session_save(file, &first, &error), error);
        assert_ok(whit_session_step(session, tokens + N_FIRST, N_SECOND - N_FIRST, &error), error);
        assert_int_equal(stat(path, &before), 0);
        failing.n_left = n;
        status = whit_session_save(file, &second, &error);
        failing.n_left = LONG_MAX;
        assert_int_equal(stat(path, &after), 0);
        const bool has_grown = after.st_size > before.st_size;
        if (status == WHIT_OK) {
            assert_true(has_grown);
        } else {
            assert_int_equal(status, WHIT_ERROR_MEMORY);
            if (has_grown) {
                n_behind++;
                assert_int_equal(whit_session_save(file, &second, &error), WHIT_ERROR_IO);
                assert_non_null(strstr(error.message, "open the session again"));
            }
        }
        whit_session_file_close(file);
        assert_ok(whit_session_load(reader, 0, path, "text", &file, &error), error);
        size_t n_ids;
        const int32_t *there = whit_session_file_ids(file, &n_ids);
        assert_int_equal(n_ids, has_grown ? N_SECOND : N_FIRST);
        assert_memory_equal(there, ids, n_ids * sizeof *ids);
        whit_session_file_close(file);
        unlink(path);
        assert_true(n < 200);
    }
    assert_true(n_behind > 0);
    whit_session_close(reader);
    whit_session_close(session);
    whit_sampler_close(sampler);
    whit_model_close(own);
    assert_int_equal(failing.n_live, 0);
}

/* Changes a number of a block to one that a cache never computes. */
static void spoil(whit_session *session, whit_kv_type kv, bool in_tail)
{
    const whit_kv_class *class = whit_kv_class_of(&session->kv, 0);
    const uint32_t block = in_tail ? session->positions[0] / WHIT_KV_BLOCK_TOKENS : 0;
    if (in_tail) class = whit_kv_open_class(class);
    void *data = whit_kv_class_block(class, session->kv.layers[0].layer, 0, 0, block);
    if (kv == WHIT_KV_BITMAP && !in_tail)
        whit_kv_bitmap_arrays(class->head_dim, data).middles[3] = 30000;
    else if (whit_kv_is_packed(kv) && !in_tail)
        whit_kv_packed_arrays(kv, class->head_dim, data).units[WHIT_KV_UNIT_TO_WORD] *= 1024;
    else if (kv == WHIT_KV_I8)
        whit_kv_block_arrays(kv, class->head_dim, data).value_scales[5] = -1;
    else
        whit_kv_block_arrays(WHIT_KV_F16, class->head_dim, data).key_scales[1] *= 0.25f;
}

/* Hashes do not show who wrote a file, so numbers on which kernels rely must be checked. */
static void refuses_blocks_that_no_cache_makes(void **state)
{
    (void)state;
    const whit_kv_type types[] = {WHIT_KV_F16, WHIT_KV_I8, WHIT_KV_K4V2, WHIT_KV_K2V2, WHIT_KV_BITMAP};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int in_tail = 0; in_tail <= whit_kv_is_packed(types[t]); in_tail++) {
            whit_error error;
            const char *path = in_folder("spoiled.ndf");
            struct talk *talk = load(model, types[t], 0, path);
            whit_session_file *file = talk->file;
            talk->file = NULL;
            turn(talk, given, 10, 90, false);
            spoil(talk->session, types[t], in_tail);
            whit_session_turn kept = {
                .struct_bytes = sizeof kept, .ids = talk->ids, .n_given = talk->n, .n_ids = talk->n};
            assert_ok(whit_session_save(file, &kept, &error), error);
            talk->file = file;
            leave(talk);
            whit_session *session = open_session(model, types[t]);
            assert_int_equal(whit_session_load(session, 0, path, "text", &file, &error), WHIT_ERROR_FORMAT);
            assert_non_null(strstr(error.message, "contain invalid values"));
            whit_session_close(session);
            unlink(path);
        }
}

/* ---- many blocks ---------------------------------------------------------------------------- */

enum { N_LONG = 1300, N_LONG_CTX = 1536 };

static whit_session *open_long_session(const whit_model *of, uint32_t n_threads)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_LONG_CTX;
    options.n_threads = n_threads;
    assert_ok(whit_session_open(of, &options, &session, &error), error);
    return session;
}

static void assert_same_blocks(const whit_session *a, const whit_session *b)
{
    for (uint32_t block = 0; block < N_LONG / WHIT_KV_BLOCK_TOKENS; block++)
        for (whit_kv_piece one = {0}, two = {0}; whit_kv_next_piece(&a->kv, 0, block, &one);) {
            assert_true(whit_kv_next_piece(&b->kv, 0, block, &two));
            assert_memory_equal(one.data, two.data, one.size_bytes);
        }
}

/* Several threads read and check a file of some megabytes: what is loaded and what is refused must be as with one
 * thread. */
static void is_read_by_several_threads(void **state)
{
    (void)state;
    whit_error error;
    whit_model *large;
    whit_session_file *file;
    tiny_model shape = tiny_model_default();
    shape.n_layers = 8;
    shape.n_kv_heads = 4;
    shape.n_ctx = N_LONG_CTX;
    const char *path = in_folder("long.ndf");
    int32_t ids[N_LONG];
    size_t n;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_true(tiny_model_write(&shape, in_folder("large.gguf")));
    assert_ok(whit_model_open(in_folder("large.gguf"), &options, &large, &error), error);
    whit_session *made = open_long_session(large, 2);
    assert_ok(whit_session_load(made, 0, path, "text", &file, &error), error);
    whit_step_token tokens[N_LONG];
    for (uint32_t i = 0; i < N_LONG; i++) tokens[i] = (whit_step_token){.id = ids[i] = given[i * i % 10]};
    assert_ok(whit_session_step(made, tokens, N_LONG, &error), error);
    whit_session_turn turn = {.struct_bytes = sizeof turn, .ids = ids, .n_ids = N_LONG, .n_given = N_LONG};
    assert_ok(whit_session_save(file, &turn, &error), error);
    whit_session_file_close(file);
    uint8_t *bytes = read_all(path, &n);
    assert_true(n > 2 * WHIT_NDF_CHUNK_BYTES);
    for (uint32_t n_threads = 1; n_threads <= 4; n_threads++) {
        whit_session *session = open_long_session(large, n_threads);
        assert_ok(whit_session_load(session, 0, path, "text", &file, &error), error);
        assert_int_equal(whit_session_position(session, 0), N_LONG);
        assert_same_blocks(session, made);
        whit_session_file_close(file);
        for (size_t at = n / 8; at < n - 4096; at += n / 4) { /* once in each chunk */
            bytes[at] ^= 1;
            assert_ok(whit_write_file(path, bytes, n, &error), error);
            assert_int_equal(whit_session_load(session, 0, path, "text", &file, &error), WHIT_ERROR_FORMAT);
            assert_non_null(strstr(error.message, "damaged"));
            bytes[at] ^= 1;
        }
        assert_ok(whit_write_file(path, bytes, n, &error), error);
        whit_session_close(session);
    }
    unlink(path);
    /* One number of a middle block is wrong, and the hashes are right. */
    assert_ok(whit_session_load(made, 0, path, "text", &file, &error), error);
    assert_ok(whit_session_step(made, tokens, N_LONG, &error), error);
    const whit_kv_class *class = whit_kv_class_of(&made->kv, 5);
    void *block = whit_kv_class_block(class, made->kv.layers[5].layer, 2, 0, 13);
    whit_kv_block_arrays(WHIT_KV_F16, class->head_dim, block).value_scales[63] *= 2;
    assert_ok(whit_session_save(file, &turn, &error), error);
    whit_session_file_close(file);
    for (uint32_t n_threads = 1; n_threads <= 4; n_threads++) {
        whit_session *session = open_long_session(large, n_threads);
        assert_int_equal(whit_session_load(session, 0, path, "text", &file, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "contain invalid values"));
        assert_int_equal(whit_session_position(session, 0), 0);
        whit_session_close(session);
    }
    free(bytes);
    whit_session_close(made);
    whit_model_close(large);
    unlink(path);
}

static void signs(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("signed.ndf");
    char key[256], public_path[256], other_key[256];
    snprintf(key, sizeof key, "%s", in_folder("key"));
    snprintf(public_path, sizeof public_path, "%s", in_folder("key.pub"));
    snprintf(other_key, sizeof other_key, "%s", in_folder("key2"));
    uint8_t made[WHIT_SIGN_KEY_BYTES], read[WHIT_SIGN_KEY_BYTES], another[WHIT_SIGN_KEY_BYTES];
    assert_ok(whit_sign_new_key(key, made, &error), error);
    assert_int_equal(whit_sign_new_key(key, made, &error), WHIT_ERROR_IO); /* an existing key is never overwritten */
    assert_ok(whit_sign_read_public(public_path, read, &error), error);
    assert_int_equal(whit_sign_read_public(key, read, &error), WHIT_ERROR_FORMAT);
    assert_ok(whit_sign_new_key(other_key, another, &error), error);
    /* If the file of one half exists, it must not be overwritten, and the other half must not be written. */
    char third[256], third_public[256];
    size_t n_kept;
    snprintf(third, sizeof third, "%s", in_folder("key3"));
    snprintf(third_public, sizeof third_public, "%s", in_folder("key3.pub"));
    assert_ok(whit_write_file(third_public, "mine", 4, &error), error);
    assert_int_equal(whit_sign_new_key(third, made, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "key3.pub"));
    uint8_t *kept = read_all(third_public, &n_kept);
    assert_int_equal(n_kept, 4);
    assert_memory_equal(kept, "mine", 4);
    free(kept);
    assert_int_equal(access(third, F_OK), -1);
    assert_int_equal(rename(third_public, third), 0);
    assert_int_equal(whit_sign_new_key(third, made, &error), WHIT_ERROR_IO);
    assert_int_equal(access(third_public, F_OK), -1);
    unlink(third);
    struct talk *talk = load(model, WHIT_KV_F16, 0, path);
    turn(talk, given, 10, 10, false);
    leave(talk);
    assert_ok(whit_ndf_sign(path, key, NULL, &error), error);
    talk = load(model, WHIT_KV_F16, 0, path);
    turn(talk, given, 3, 10, false);
    leave(talk);
    whit_ndf_log log;
    whit_ndf_signed found;
    assert_ok(whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, &error), error);
    assert_ok(whit_ndf_check_signed(&log, read, &found, &error), error);
    assert_int_equal(found.n_signatures, 1);
    assert_int_equal(found.n_frames, 4);
    assert_int_equal(found.n_unsigned, 1);
    assert_ok(whit_ndf_check_signed(&log, another, &found, &error), error);
    assert_int_equal(found.n_signatures, 0);
    whit_ndf_log_close(&log);
    /* The bytes of a signed file are changed, and every hash is made right again. */
    size_t n;
    uint8_t *bytes = read_all(path, &n);
    for (size_t i = 0; i + 64 < n; i += 4)
        if (!memcmp(bytes + i, given, sizeof given)) bytes[i + 4] ^= 1;
    ndf_reseal(bytes, n);
    assert_ok(whit_write_file(path, bytes, n, &error), error);
    assert_ok(whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, &error), error);
    assert_int_equal(whit_ndf_check_signed(&log, read, &found, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "frame 4 (SIGNATURE)"));
    whit_ndf_log_close(&log);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_with_the_same_bits),
        cmocka_unit_test(undoes),
        cmocka_unit_test(refuses_what_differs),
        cmocka_unit_test(saves_nothing_of_other_adapters),
        cmocka_unit_test(names_every_damage),
        cmocka_unit_test(replay_tells_a_forgery),
        cmocka_unit_test(replay_tells_another_tail),
        cmocka_unit_test(a_full_disk_keeps_what_was_there),
        cmocka_unit_test(no_memory_in_a_save_loses_no_turn),
        cmocka_unit_test(refuses_blocks_that_no_cache_makes),
        cmocka_unit_test(is_read_by_several_threads),
        cmocka_unit_test(signs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
