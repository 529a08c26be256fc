/* SPDX-License-Identifier: MIT
 * Tests pulling from a hub on this machine (hub_server.h) that cuts connections, redirects, refuses, and sends wrong
 * data. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/rng.h"
#include "hub/http.h"
#include "hub/pull.h"
#include "whit/names.h"
#include "hub_server.h"

#define LARGE_BYTES 300000u

struct fixture {
    char cache[64];
    char *large; /* LARGE_BYTES of noise */
    struct hub_file files[8];
    struct hub_repository repository;
    hub_server *server;
    whit_hub_pull_options options;
    whit_hub_pulled pulled;
    whit_error error;
    uint64_t cancel_at; /* bytes; 0: never */
};

static bool on_progress(void *user, const whit_hub_progress *progress)
{
    const struct fixture *f = user;
    return !f->cancel_at || progress->done_bytes < f->cancel_at;
}

static int begin(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    whit_rng rng = {1};
    if (!f || !(f->large = malloc(LARGE_BYTES))) return -1;
    *state = f;
    for (size_t i = 0; i < LARGE_BYTES; i++) f->large[i] = (char)whit_rng_next(&rng);
    snprintf(f->cache, sizeof f->cache, "/tmp/whit-hub-XXXXXX");
    if (!mkdtemp(f->cache)) return -1;
    f->files[0] = (struct hub_file){.path = "config.json", .data = "{\"a\": 1}", .size_bytes = 8};
    f->files[1] =
        (struct hub_file){.path = "model.safetensors", .data = f->large, .size_bytes = LARGE_BYTES, .is_large = true};
    f->files[2] = (struct hub_file){.path = "README.md", .data = "# read me", .size_bytes = 9};
    f->files[3] = (struct hub_file){.path = "tokenizer.json", .data = "{}", .size_bytes = 2};
    f->repository = (struct hub_repository){.name = "owner/name", .files = f->files, .n_files = 4};
    f->server = hub_server_start(&f->repository, false);
    f->options = (whit_hub_pull_options){.endpoint = f->server ? hub_server_address(f->server) : "",
                                         .token = "",
                                         .cache_dir = f->cache,
                                         .n_tries = 3,
                                         .wait_ms = 1,
                                         .connect_s = 5,
                                         .stall_s = 5,
                                         .progress = on_progress,
                                         .user = f};
    return f->server ? 0 : -1;
}

static int end(void **state)
{
    struct fixture *f = *state;
    char command[100];
    hub_server_stop(f->server);
    snprintf(command, sizeof command, "rm -rf '%s'", f->cache);
    int failed = system(command);
    free(f->large);
    free(f);
    return failed;
}

static whit_status pull(struct fixture *f, const char *words)
{
    whit_hub_name name;
    assert_ok(whit_hub_name_parse(words, &name, &f->error), f->error);
    hub_server_rest(f->server); /* the server thread has seen the test's changes when this returns */
    whit_status status = whit_hub_pull(&name, &f->options, &f->pulled, &f->error);
    hub_server_rest(f->server);
    return status;
}

/* Checks that a pull of `words` fails with `status` and a message that contains `line`. */
static void refuses(struct fixture *f, const char *words, whit_status status, const char *line)
{
    assert_int_equal(pull(f, words), status);
    if (!strstr(f->error.message, line)) fail_msg("'%s' lacks '%s'", f->error.message, line);
}

static const char *in_store(const struct fixture *f, const char *file)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/hub/owner--name/%s", f->cache, file);
    return path;
}

static void assert_file_is(const struct fixture *f, const char *file, const void *data, size_t size_bytes)
{
    whit_buf text = {0};
    whit_error error;
    assert_ok(whit_read_file(in_store(f, file), LARGE_BYTES, &text, &error), error);
    assert_int_equal(text.size_bytes, size_bytes);
    if (size_bytes) assert_memory_equal(text.data, data, size_bytes);
    whit_buf_free(&text);
}

static bool exists(const struct fixture *f, const char *file)
{
    return access(in_store(f, file), F_OK) == 0;
}

/* ---- successful pulls ----------------------------------------------------------------------- */

static bool append_name(void *user, const char *name)
{
    strcat(strcat(user, name), ";");
    return true;
}

static void a_folder_comes_whole_and_once(void **state)
{
    struct fixture *f = *state;
    char path[WHIT_CACHE_PATH_BYTES];
    assert_int_equal(whit_hub_store_path(f->cache, "owner/name", path, &f->error), WHIT_ERROR_IO);
    assert_non_null(strstr(f->error.message, "whit pull owner/name"));
    assert_ok(pull(f, "owner/name"), f->error);
    assert_int_equal(f->pulled.n_files, 3);
    assert_int_equal(f->pulled.fetched_bytes, LARGE_BYTES + 10);
    assert_string_equal(f->pulled.commit, HUB_COMMIT);
    assert_file_is(f, "config.json", "{\"a\": 1}", 8);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
    assert_false(exists(f, "README.md") || exists(f, "model.safetensors.part") ||
                 exists(f, "model.safetensors.part.etag"));
    static const char *const words[] = {"owner/name", "name", "owner/name@main"};
    for (size_t i = 0; i < 3; i++) {
        assert_ok(whit_hub_store_path(f->cache, words[i], path, &f->error), f->error);
        assert_string_equal(path, f->pulled.path);
        char found[WHIT_CACHE_PATH_BYTES];
        assert_ok(whit_pulled_path(f->cache, words[i], found, sizeof found, &f->error), f->error);
        assert_string_equal(found, path);
        assert_int_equal(whit_pulled_path(f->cache, words[i], found, strlen(path), &f->error), WHIT_ERROR_LIMIT);
    }
    char names[64] = "";
    assert_ok(whit_pulled_list(f->cache, append_name, names, &f->error), f->error);
    assert_string_equal(names, "owner/name;");
    assert_int_equal(whit_pulled_path(f->cache, "other", path, sizeof path, &f->error), WHIT_ERROR_IO);
    struct stat before, after;
    assert_int_equal(stat(in_store(f, ".pulled"), &before), 0);
    hub_server_log(f->server);
    assert_ok(pull(f, "owner/name"), f->error);
    assert_int_equal(f->pulled.fetched_bytes, 0);
    assert_null(strstr(hub_server_log(f->server), "/resolve/"));
    assert_int_equal(stat(in_store(f, ".pulled"), &after), 0);
    assert_true(before.st_ino == after.st_ino);
    /* One more file is pulled by its name; the folder is otherwise unchanged. */
    assert_ok(pull(f, "owner/name:README.md"), f->error);
    assert_file_is(f, "README.md", "# read me", 9);
    assert_ok(whit_hub_store_path(f->cache, "name", path, &f->error), f->error);
}

static void shards_come_by_their_index(void **state)
{
    struct fixture *f = *state;
    static const char index[] = "{\"weight_map\":{\"a\":\"part-a.safetensors\",\"b\":\"part-b.safetensors\"}}";
    f->files[1].path = "part-a.safetensors";
    f->files[2] = (struct hub_file){.path = "part-b.safetensors", .data = "bb", .size_bytes = 2, .is_large = true};
    f->files[3] =
        (struct hub_file){.path = "model.safetensors.index.json", .data = index, .size_bytes = sizeof index - 1};
    f->files[4] = (struct hub_file){.path = "unrelated.safetensors", .data = "u", .size_bytes = 1, .is_large = true};
    f->repository.n_files = 5;
    f->repository.page_files = 2;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "part-a.safetensors", f->large, LARGE_BYTES);
    assert_file_is(f, "part-b.safetensors", "bb", 2);
    assert_false(exists(f, "unrelated.safetensors"));
    /* Removing by the name of a file removes the folder of its model. */
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = {"owner/name", "name:part-b.safetensors"};
        assert_true(whit_hub_store_would_remove(f->cache, names[i], in_store(f, "")));
        assert_false(whit_hub_store_would_remove(f->cache, names[i], f->cache));
    }
}

static void gguf_models_live_beside_each_other(void **state)
{
    struct fixture *f = *state;
    char path[WHIT_CACHE_PATH_BYTES];
    f->files[0] =
        (struct hub_file){.path = "q8_0/m-q8_0-00001-of-00002.gguf", .data = "one", .size_bytes = 3, .is_large = true};
    f->files[1] = (struct hub_file){
        .path = "q8_0/m-q8_0-00002-of-00002.gguf", .data = f->large, .size_bytes = LARGE_BYTES, .is_large = true};
    f->files[2] = (struct hub_file){.path = "m-i2_s.gguf", .data = "three", .size_bytes = 5, .is_large = true};
    refuses(f, "owner/name", WHIT_ERROR_ARGUMENT, "m-i2_s.gguf, q8_0/m-q8_0-00001-of-00002.gguf");
    assert_ok(pull(f, "owner/name:q8_0"), f->error);
    assert_int_equal(f->pulled.n_files, 2);
    assert_ok(whit_hub_store_path(f->cache, "name", path, &f->error), f->error);
    assert_string_equal(path, in_store(f, "q8_0/m-q8_0-00001-of-00002.gguf"));
    assert_ok(pull(f, "owner/name:I2_S"), f->error);
    assert_int_equal(whit_hub_store_path(f->cache, "name", path, &f->error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_hub_store_path(f->cache, "name:i2_s", path, &f->error), f->error);
    assert_string_equal(path, in_store(f, "m-i2_s.gguf"));
    /* The name of a file in a repository looks like a path, but is not taken for one. */
    whit_model *model;
    whit_model_options options = whit_model_options_default();
    options.cache_dir = f->cache;
    assert_int_not_equal(whit_model_open_named("owner/name:m-i2_s.gguf", &options, &model, &f->error), WHIT_OK);
    assert_non_null(strstr(f->error.message, path)); /* the file is found, but is no model */
    options.struct_bytes = 0;
    assert_int_equal(whit_model_open_named("tales", &options, &model, &f->error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_hub_store_path(f->cache, "owner/name:Q8_0", path, &f->error), f->error);
    unlink(in_store(f, "q8_0/m-q8_0-00002-of-00002.gguf"));
    assert_int_equal(whit_hub_store_path(f->cache, "name:q8_0", path, &f->error), WHIT_ERROR_IO);
    assert_non_null(strstr(f->error.message, "not finished"));

    assert_true(whit_hub_store_would_remove(f->cache, "name:i2_s", in_store(f, "m-i2_s.gguf")));
    assert_true(whit_hub_store_would_remove(f->cache, "name", in_store(f, "m-i2_s.gguf")));
    assert_false(whit_hub_store_would_remove(f->cache, "name:i2_s", in_store(f, "q8_0/m-q8_0-00001-of-00002.gguf")));
    assert_false(whit_hub_store_would_remove(f->cache, "name:i2_s", in_store(f, "")));
    whit_hub_removed removed;
    assert_ok(whit_hub_store_remove(f->cache, "name:i2_s", &removed, &f->error), f->error);
    assert_int_equal(removed.pulled_bytes, 5);
    assert_false(exists(f, "m-i2_s.gguf"));
    assert_true(exists(f, "q8_0/m-q8_0-00001-of-00002.gguf"));
    assert_ok(whit_hub_store_remove(f->cache, "owner/name", &removed, &f->error), f->error);
    assert_false(exists(f, ""));
    assert_int_equal(whit_hub_store_remove(f->cache, "owner/name", &removed, &f->error), WHIT_ERROR_IO);
}

static void revisions_have_folders_of_their_own(void **state)
{
    struct fixture *f = *state;
    char path[WHIT_CACHE_PATH_BYTES];
    assert_ok(pull(f, "owner/name@refs/pr/1:config.json"), f->error);
    assert_non_null(strstr(f->pulled.path, "/hub/owner--name@refs--pr--1/config.json"));
    assert_non_null(strstr(hub_server_log(f->server), "/revision/refs%2Fpr%2F1 "));
    assert_int_equal(whit_hub_store_path(f->cache, "owner/name", path, &f->error), WHIT_ERROR_IO);
}

static void hubs_without_a_tree_or_a_description_do(void **state)
{
    struct fixture *f = *state;
    f->repository.no_tree = true;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
    f->repository.no_tree = false;
    f->repository.no_info = true;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_int_equal(f->pulled.fetched_bytes, 0); /* the first pull recorded the digests */
    assert_string_equal(f->pulled.commit, "");
}

/* ---- connections ---------------------------------------------------------------------------- */

static void cut_connections_are_taken_up(void **state)
{
    struct fixture *f = *state;
    f->files[1].cut_after_bytes = 100000;
    f->files[1].n_cuts = 2;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
    assert_int_equal(f->pulled.fetched_bytes, LARGE_BYTES + 10);
    const char *log = hub_server_log(f->server);
    assert_non_null(strstr(log, "range=bytes=100000- if-range=\""));
    assert_non_null(strstr(log, "range=bytes=200000- if-range=\""));

    assert_ok(whit_hub_store_remove(f->cache, "name", &(whit_hub_removed){0}, &f->error), f->error);
    f->files[1].no_length = true; /* a cut cannot be told from the file's end */
    f->files[1].n_cuts = 2;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);

    assert_ok(whit_hub_store_remove(f->cache, "name", &(whit_hub_removed){0}, &f->error), f->error);
    f->files[1].no_length = false;
    f->files[1].cut_after_bytes = 0;
    f->files[1].n_cuts = 100;
    assert_int_equal(pull(f, "owner/name"), WHIT_ERROR_IO); /* no progress: the pull gives up */
    assert_int_equal(f->files[1].n_cuts, 97);
}

static void a_later_run_goes_on(void **state)
{
    struct fixture *f = *state;
    f->cancel_at = 120000;
    assert_int_equal(pull(f, "owner/name"), WHIT_ERROR_CANCELLED);
    assert_false(exists(f, "config.json")); /* no file is moved in place before all are whole */
    struct stat part;
    assert_int_equal(stat(in_store(f, "model.safetensors.part"), &part), 0);
    assert_true(part.st_size >= 110000 && part.st_size < LARGE_BYTES);
    char range[64], path[WHIT_CACHE_PATH_BYTES];
    assert_int_equal(whit_hub_store_path(f->cache, "name", path, &f->error), WHIT_ERROR_IO);
    assert_non_null(strstr(f->error.message, "not finished"));
    hub_server_log(f->server);
    f->cancel_at = 0;
    assert_ok(pull(f, "owner/name"), f->error);
    snprintf(range, sizeof range, "range=bytes=%lld- if-range=\"", (long long)part.st_size);
    const char *log = hub_server_log(f->server);
    if (!strstr(log, range)) fail_msg("no %s in\n%s", range, log);
    assert_true(f->pulled.fetched_bytes <= LARGE_BYTES + 10 - (uint64_t)part.st_size);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
}

/* Parts of two versions must never be joined. */
static void a_changed_file_starts_over(void **state)
{
    struct fixture *f = *state;
    char *other = malloc(LARGE_BYTES);
    assert_non_null(other);
    memset(other, 'x', LARGE_BYTES);
    for (int round = 0; round < 3; round++) {
        f->files[1].data = f->large;
        f->files[1].etag = round == 0 ? NULL : round == 1 ? "" : "W/\"weak\"";
        f->files[1].no_ranges = false;
        f->cancel_at = 120000;
        assert_int_equal(pull(f, "owner/name"), WHIT_ERROR_CANCELLED);
        f->cancel_at = 0;
        f->files[1].data = other;
        assert_ok(pull(f, "owner/name"), f->error);
        assert_file_is(f, "model.safetensors", other, LARGE_BYTES);
        assert_ok(whit_hub_store_remove(f->cache, "name", &(whit_hub_removed){0}, &f->error), f->error);
    }
    f->cancel_at = 120000;
    assert_int_equal(pull(f, "owner/name"), WHIT_ERROR_CANCELLED);
    f->cancel_at = 0;
    f->files[1].no_ranges = true;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "model.safetensors", other, LARGE_BYTES);
    free(other);
}

/* A connection breaks during a pull: without a digest and a tag nothing proves that the rest belongs to the same
 * version. */
static void a_cut_without_a_tag_starts_over(void **state)
{
    struct fixture *f = *state;
    f->files[1].is_large = false; /* a small file's digest is git's, which the list lacks */
    f->files[1].no_linked_etag = true;
    f->files[1].listed_digest = "";
    f->files[1].etag = "";
    f->files[1].cut_after_bytes = 100000;
    f->files[1].n_cuts = 1;
    hub_server_log(f->server);
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
    const char *log = hub_server_log(f->server);
    if (strstr(log, "range=bytes=1")) fail_msg("it went on in the middle:\n%s", log);
    f->files[1].cut_after_bytes = 0;
}

/* A part of the full length is not taken for the file: without a digest the server is asked, with the tag if there is
 * one. */
static void a_whole_part_without_a_digest_is_asked_for(void **state)
{
    struct fixture *f = *state;
    char *other = malloc(LARGE_BYTES);
    assert_non_null(other);
    memset(other, 'x', LARGE_BYTES);
    f->files[1].is_large = false;
    f->files[1].no_linked_etag = true;
    f->files[1].listed_digest = "";
    for (int round = 0; round < 3; round++) { /* no tag; the tag of another version; the tag of this version */
        f->files[1].etag = round ? "\"mine\"" : "";
        f->cancel_at = 120000;
        assert_int_equal(pull(f, "owner/name"), WHIT_ERROR_CANCELLED);
        f->cancel_at = 0;
        if (round == 1) f->files[1].etag = "\"newer\"";
        const void *part = round == 2 ? f->large : other;
        assert_ok(whit_write_file(in_store(f, "model.safetensors.part"), part, LARGE_BYTES, &f->error), f->error);
        hub_server_log(f->server);
        assert_ok(pull(f, "owner/name"), f->error);
        assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
        assert_non_null(strstr(hub_server_log(f->server), "model.safetensors"));
        assert_true(round == 2 ? f->pulled.fetched_bytes < LARGE_BYTES : f->pulled.fetched_bytes >= LARGE_BYTES);
        assert_false(exists(f, "model.safetensors.part") || exists(f, "model.safetensors.part.etag"));
        assert_ok(whit_hub_store_remove(f->cache, "name", &(whit_hub_removed){0}, &f->error), f->error);
    }
    free(other);
}

static void busy_and_silent_servers_are_waited_for(void **state)
{
    struct fixture *f = *state;
    f->repository.n_busy = 2;
    assert_ok(pull(f, "owner/name:config.json"), f->error);
    f->repository.n_busy = 5;
    refuses(f, "owner/name", WHIT_ERROR_IO, "503");
    f->repository.n_busy = 0;
    f->options.stall_s = 1;
    f->options.n_tries = 1;
    f->files[1].bytes_per_s = 200000; /* a slow server is not a silent one */
    assert_ok(pull(f, "owner/name:model.safetensors"), f->error);
    f->files[2].pause_s = 3;
    refuses(f, "owner/name:README.md", WHIT_ERROR_IO, "slow");
    f->options.endpoint = "http://127.0.0.1:1"; /* nothing listens at this port */
    refuses(f, "owner/name", WHIT_ERROR_IO, "127.0.0.1");
}

static void the_token_goes_to_the_hub_alone(void **state)
{
    struct fixture *f = *state;
    f->repository.token = "secret";
    f->files[1].is_elsewhere = true;
    refuses(f, "owner/name", WHIT_ERROR_IO, "HF_TOKEN");
    f->options.token = "secret";
    hub_server_log(f->server);
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "model.safetensors", f->large, LARGE_BYTES);
    const char *log = hub_server_log(f->server);
    assert_non_null(strstr(log, "2 GET /owner/name/resolve/" HUB_COMMIT "/model.safetensors"));
    for (const char *line = log; *line; line = strchr(line, '\n') + 1) {
        bool has_token =
            strstr(line, "auth=Bearer secret\n") && strstr(line, "auth=Bearer secret\n") < strchr(line, '\n');
        assert_int_equal(has_token, *line == '1');
    }
    assert_ok(whit_hub_store_remove(f->cache, "name", &(whit_hub_removed){0}, &f->error), f->error);
    f->files[1].redirects_for_ever = true;
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "redirects");
}

/* ---- lies and refusals ---------------------------------------------------------------------- */

static void refusals_say_what_to_do(void **state)
{
    struct fixture *f = *state;
    refuses(f, "owner/other", WHIT_ERROR_IO, "404");
    f->files[1].status = 403;
    refuses(f, "owner/name", WHIT_ERROR_IO, "may not read it");
    f->files[1].error_code = "GatedRepo";
    refuses(f, "owner/name", WHIT_ERROR_IO, "accept the terms");
    f->files[1].status = 404;
    f->files[1].error_code = "EntryNotFound";
    refuses(f, "owner/name", WHIT_ERROR_IO, "does not have this file");
    f->files[1].status = 418;
    refuses(f, "owner/name", WHIT_ERROR_IO, "418");
    assert_false(exists(f, "model.safetensors.part"));
}

static void wrong_content_is_removed(void **state)
{
    struct fixture *f = *state;
    f->files[1].listed_digest = "0000000000000000000000000000000000000000000000000000000000000000";
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "does not match the hub's digest");
    assert_false(exists(f, "model.safetensors") || exists(f, "model.safetensors.part"));
    f->files[1].listed_digest = NULL;
    f->files[0].listed_digest = "0000000000000000000000000000000000000000";
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "config.json");
}

static void sizes_are_only_promises(void **state)
{
    struct fixture *f = *state;
    f->files[1].listed_bytes = LARGE_BYTES + 1;
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "the hub's listing says 300001");
    f->files[1].no_length = true;
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "ends after 300000 bytes");
    assert_ok(whit_hub_store_remove(f->cache, "name", &(whit_hub_removed){0}, &f->error), f->error);
    f->files[1].listed_bytes = 1000;
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "sends more than the 1000 bytes");
    struct stat part;
    assert_true(stat(in_store(f, "model.safetensors.part"), &part) != 0 || part.st_size <= 1000);
    f->files[1].listed_bytes = INT64_MAX;
    hub_server_log(f->server);
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "sizes in its listing are not possible");
    f->files[1].listed_bytes = INT64_MAX / 2;
    refuses(f, "owner/name", WHIT_ERROR_IO, "GB free");
    assert_null(strstr(hub_server_log(f->server), "/resolve/"));
}

static void hostile_listings_end_early(void **state)
{
    struct fixture *f = *state;
    f->repository.tree = "[{\"type\":\"file\",\"path\":\"../../escaped\",\"size\":1}]";
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "../../escaped");
    f->repository.tree = "<html>";
    refuses(f, "owner/name", WHIT_ERROR_FORMAT, "owner/name");
    f->repository.tree = "[]";
    refuses(f, "owner/name", WHIT_ERROR_ARGUMENT, "neither");
    f->repository.tree = NULL;
    f->repository.endless_pages = true;
    refuses(f, "owner/name", WHIT_ERROR_LIMIT, "pages");
    f->repository.endless_pages = false;
    char *huge = malloc((17u << 20) + 1);
    assert_non_null(huge);
    memset(huge, ' ', 17u << 20);
    huge[17u << 20] = 0;
    f->repository.tree = huge;
    refuses(f, "owner/name", WHIT_ERROR_LIMIT, "16 MB");
    free(huge);
    f->repository.tree = NULL;
    assert_false(exists(f, ""));
}

/* A failed pull must leave the previous version whole and usable. */
static void an_update_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    char path[WHIT_CACHE_PATH_BYTES];
    f->files[3].path = "chat_template.jinja";
    assert_ok(pull(f, "owner/name"), f->error);
    f->repository.commit = "1111111111111111111111111111111111111111";
    f->files[0] = (struct hub_file){.path = "config.json", .data = "{\"a\": 2}", .size_bytes = 8};
    f->files[1].data = "new", f->files[1].size_bytes = 3;
    f->files[1].status = 403;
    f->files[3].path = "unused.md";
    refuses(f, "owner/name", WHIT_ERROR_IO, "403");
    assert_file_is(f, "config.json", "{\"a\": 1}", 8);
    assert_ok(whit_hub_store_path(f->cache, "name", path, &f->error), f->error);
    f->files[1].status = 0;
    assert_ok(pull(f, "owner/name"), f->error);
    assert_file_is(f, "config.json", "{\"a\": 2}", 8);
    assert_file_is(f, "model.safetensors", "new", 3);
    assert_false(exists(f, "chat_template.jinja")); /* the removed file would be read as the new version's */
    /* After a crash between two renames there is no record; the files are recognised by their digests. */
    unlink(in_store(f, ".pulled"));
    assert_ok(pull(f, "owner/name"), f->error);
    assert_int_equal(f->pulled.fetched_bytes, 0);
    assert_ok(whit_hub_store_path(f->cache, "name", path, &f->error), f->error);
    /* A damaged record counts as a missing one. */
    assert_ok(whit_write_file(in_store(f, ".pulled"), "[{\"path\":\"../x\"}]", 17, &f->error), f->error);
    assert_int_equal(whit_hub_store_path(f->cache, "name", path, &f->error), WHIT_ERROR_IO);
    assert_ok(pull(f, "owner/name"), f->error);
    assert_int_equal(f->pulled.fetched_bytes, 0);
}

static void one_process_at_a_time(void **state)
{
    struct fixture *f = *state;
    whit_hub_name name;
    whit_hub_entry entry;
    assert_ok(whit_hub_name_parse("owner/name", &name, &f->error), f->error);
    assert_ok(whit_hub_entry_open(f->cache, &name, &entry, &f->error), f->error);
    assert_ok(whit_hub_entry_lock(&entry, &f->error), f->error);
    for (int i = 0; i < 2; i++) { /* a refused pull must not remove the lock */
        refuses(f, "owner/name", WHIT_ERROR_IO, "another whit");
        assert_true(exists(f, ".lock"));
    }
    assert_int_equal(whit_hub_store_remove(f->cache, "owner/name", &(whit_hub_removed){0}, &f->error), WHIT_ERROR_IO);
    assert_non_null(strstr(f->error.message, "another whit"));
    assert_true(exists(f, ".lock"));
    whit_hub_entry_close(&entry);
    assert_ok(pull(f, "owner/name"), f->error);
}

static void removing_follows_no_link(void **state)
{
    struct fixture *f = *state;
    char outside[] = "/tmp/whit-outside-XXXXXX", file[64];
    assert_non_null(mkdtemp(outside));
    snprintf(file, sizeof file, "%s/precious", outside);
    assert_ok(whit_write_file(file, "x", 1, &f->error), f->error);
    assert_ok(pull(f, "owner/name"), f->error);
    assert_int_equal(symlink(outside, in_store(f, "link")), 0);
    whit_hub_removed removed;
    assert_ok(whit_hub_store_remove(f->cache, "name", &removed, &f->error), f->error);
    assert_true(removed.pulled_bytes >= LARGE_BYTES + 10 &&
                removed.pulled_bytes < LARGE_BYTES + 2000); /* the record of the pull is counted, too */
    assert_false(exists(f, ""));
    assert_int_equal(access(file, F_OK), 0);
    unlink(file);
    rmdir(outside);
}

/* The last part of a name suffices only if one model has it. */
static void short_names_must_be_unique(void **state)
{
    struct fixture *f = *state;
    char path[WHIT_CACHE_PATH_BYTES];
    whit_hub_entry *entries;
    size_t n;
    assert_ok(pull(f, "owner/name:config.json"), f->error);
    f->repository.name = "second/name";
    assert_ok(pull(f, "second/name:config.json"), f->error);
    assert_int_equal(whit_hub_store_path(f->cache, "name:config.json", path, &f->error), WHIT_ERROR_IO);
    assert_non_null(strstr(f->error.message, "owner/name and second/name"));
    assert_ok(whit_hub_store_path(f->cache, "second/name:config.json", path, &f->error), f->error);
    assert_ok(whit_hub_store_list(f->cache, &entries, &n, &f->error), f->error);
    assert_int_equal(n, 2);
    assert_string_equal(entries[0].name.repo, "owner/name");
    whit_hub_store_free(entries, n);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_folder_comes_whole_and_once),
        CASE(shards_come_by_their_index),
        CASE(gguf_models_live_beside_each_other),
        CASE(revisions_have_folders_of_their_own),
        CASE(hubs_without_a_tree_or_a_description_do),
        CASE(cut_connections_are_taken_up),
        CASE(a_later_run_goes_on),
        CASE(a_changed_file_starts_over),
        CASE(a_cut_without_a_tag_starts_over),
        CASE(a_whole_part_without_a_digest_is_asked_for),
        CASE(busy_and_silent_servers_are_waited_for),
        CASE(the_token_goes_to_the_hub_alone),
        CASE(refusals_say_what_to_do),
        CASE(wrong_content_is_removed),
        CASE(sizes_are_only_promises),
        CASE(hostile_listings_end_early),
        CASE(an_update_is_all_or_nothing),
        CASE(one_process_at_a_time),
        CASE(removing_follows_no_link),
        CASE(short_names_must_be_unique),
    };
    if (!whit_http_library()) {
        print_message("[ SKIPPED ] this build has no libcurl\n");
        return 77;
    }
    setenv("no_proxy", "127.0.0.1", 1);
    return cmocka_run_group_tests_name("hub_pull", tests, NULL, NULL);
}
