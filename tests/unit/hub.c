/* SPDX-License-Identifier: MIT
 * Tests names of pulled models, file lists, the choice of files and git's digests, all without a network. */
#include "test.h"

#include <sodium.h>

#include "hub/choose.h"
#include "hub/settings.h"
#include "hub/sha1.h"

static void names_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *text, *repo, *revision, *file, *printed, *folder;
    } good[] = {
        {"owner/name", "owner/name", "main", "", "owner/name", "owner--name"},
        {"gpt2", "gpt2", "main", "", "gpt2", "gpt2"},
        {"a/b.c_d-1:Q4_K_M", "a/b.c_d-1", "main", "Q4_K_M", "a/b.c_d-1", "a--b.c_d-1"},
        {"a/b@v1.0:x/y*.gguf", "a/b", "v1.0", "x/y*.gguf", "a/b@v1.0", "a--b@v1.0"},
        {"a/b@refs/pr/1", "a/b", "refs/pr/1", "", "a/b@refs/pr/1", "a--b@refs--pr--1"},
        {"a/b@main", "a/b", "main", "", "a/b", "a--b"},
        {"https://huggingface.co/a/b", "a/b", "main", "", "a/b", "a--b"},
        {"http://huggingface.co/a/b/?x=y#z", "a/b", "main", "", "a/b", "a--b"},
        {"hf.co/a/b:Q4_K_M", "a/b", "main", "Q4_K_M", "a/b", "a--b"},
        {"huggingface.co/a/b/tree/main", "a/b", "main", "", "a/b", "a--b"},
        {"https://huggingface.co/a/b/tree/v1/folder", "a/b", "v1", "", "a/b@v1", "a--b@v1"},
        {"https://hf.co/a/b/blob/main/x/y%20z.gguf", "a/b", "main", "x/y z.gguf", "a/b", "a--b"},
        {"https://hf.co/a/b/tree/refs%2Fpr%2F1", "a/b", "refs/pr/1", "", "a/b@refs/pr/1", "a--b@refs--pr--1"},
        {"https://hf.co/a/b/tree/refs%2Fpr%2F1/x/", "a/b", "refs/pr/1", "", "a/b@refs/pr/1", "a--b@refs--pr--1"},
        {"https://hf.co/a/b/blob/refs%2fpr%2F1/x/y%20z.gguf", "a/b", "refs/pr/1", "x/y z.gguf", "a/b@refs/pr/1",
         "a--b@refs--pr--1"},
        {"https://hf.co/a/b/resolve/main/y.gguf?download=true", "a/b", "main", "y.gguf", "a/b", "a--b"},
    };
    whit_hub_name name, back;
    whit_error error;
    char text[WHIT_HUB_FOLDER_BYTES];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(whit_hub_name_parse(good[i].text, &name, &error), error);
        assert_string_equal(name.repo, good[i].repo);
        assert_string_equal(name.revision, good[i].revision);
        assert_string_equal(name.file, good[i].file);
        whit_hub_name_print(&name, text);
        assert_string_equal(text, good[i].printed);
        whit_hub_name_folder(&name, text);
        assert_string_equal(text, good[i].folder);
        assert_true(whit_hub_name_from_folder(text, &back));
        assert_string_equal(back.repo, good[i].repo);
        assert_string_equal(back.revision, good[i].revision);
    }
    static const char *const bad[] = {"",
                                      "/",
                                      "a/",
                                      "/b",
                                      "a//b",
                                      "a/b/c",
                                      "../b",
                                      "a/..",
                                      "a/.b",
                                      "a/b.",
                                      "-a/b",
                                      "a--b/c",
                                      "a..b/c",
                                      "a b/c",
                                      "a/b:",
                                      "a/b@",
                                      "a/b@/x",
                                      "a/b@..",
                                      "a/b@x y",
                                      "a/b:../c",
                                      "a/b:/c",
                                      "a/\xC3\xA9",
                                      "a/b\n",
                                      "https://",
                                      "https://hf.co",
                                      "https://example.com/a/b",
                                      "https://hf.co/a/b/wiki",
                                      "https://hf.co/datasets/a/b",
                                      "https://hf.co/a/b/blob/main/../../c",
                                      "https://hf.co/a/b/blob/main/%2e%2e/c",
                                      "https://hf.co/a/b/blob/main/c%00d%0A",
                                      "https://hf.co.example.com/a/b",
                                      "hf.co/hf.co/hf.co"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(whit_hub_name_parse(bad[i], &name, &error), WHIT_ERROR_ARGUMENT);
    static const char *const strangers[] = {".", "..", "a--b--c", "a--b@main", ".lock", "a b", "--"};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        assert_false(whit_hub_name_from_folder(strangers[i], &name));
}

static void paths_stay_below_a_folder(void **state)
{
    (void)state;
    char long_path[700];
    memset(long_path, 'a', sizeof long_path);
    assert_false(whit_hub_path_is_safe(long_path, 201));
    for (size_t i = 100; i < sizeof long_path; i += 101) long_path[i] = '/';
    assert_true(whit_hub_path_is_safe(long_path, 500));
    assert_false(whit_hub_path_is_safe(long_path, 600));
    static const char *const safe[] = {"a",         "a/b.c", ".gitattributes", "a..b", "...", "\xC3\xA9t\xC3\xA9",
                                       "with space"};
    static const char *const unsafe[] = {"",       "/",    "/a",  "a/",   "a//b", ".",    "..",  "../a",
                                         "a/../b", "a/..", "./a", "a\\b", "a\nb", "\x7F", "\xFF"};
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        assert_true(whit_hub_path_is_safe(safe[i], strlen(safe[i])));
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        assert_false(whit_hub_path_is_safe(unsafe[i], strlen(unsafe[i])));
    assert_false(whit_hub_path_is_safe("a\0b", 3));
}

/* Expected digests come from RFC 3174 and from git hash-object of "hello\n". */
static void sha1_is_that_of_the_standard(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
    };
    uint8_t digest[WHIT_SHA1_BYTES];
    char text[2 * WHIT_SHA1_BYTES + 1];
    whit_sha1 sha1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_sha1_begin(&sha1);
        for (const char *c = cases[i].text; *c; c++) whit_sha1_add(&sha1, c, 1);
        whit_sha1_end(&sha1, digest);
        assert_string_equal(sodium_bin2hex(text, sizeof text, digest, sizeof digest), cases[i].digest);
    }
    whit_sha1_begin(&sha1);
    whit_sha1_add(&sha1, "blob 6\0hello\n", 13);
    whit_sha1_end(&sha1, digest);
    assert_string_equal(sodium_bin2hex(text, sizeof text, digest, sizeof digest),
                        "ce013625030ba8dba906f756967f9e9ca394464a");
    char many[1000];
    memset(many, 'a', sizeof many);
    whit_sha1_begin(&sha1);
    for (int i = 0; i < 1000; i++) whit_sha1_add(&sha1, many, sizeof many);
    whit_sha1_end(&sha1, digest);
    assert_string_equal(sodium_bin2hex(text, sizeof text, digest, sizeof digest),
                        "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* ---- listings ------------------------------------------------------------------------------- */

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA1   "0123456789abcdef0123456789abcdef01234567"

static void listings_are_read(void **state)
{
    (void)state;
    static const char tree[] = "[{\"type\":\"directory\",\"path\":\"d\"},"
                               "{\"type\":\"file\",\"path\":\"d/w.gguf\",\"size\":134,\"oid\":\"" SHA1
                               "\",\"lfs\":{\"oid\":\"" SHA256 "\",\"size\":5000000000}},"
                               "{\"type\":\"file\",\"path\":\"config.json\",\"size\":12,\"oid\":\"" SHA1 "\"},"
                               "{\"type\":\"file\",\"path\":\"odd\",\"oid\":\"xyz\"}]";
    whit_hub_listing listing = {0}, again = {0};
    whit_error error;
    whit_buf written = {0};
    assert_ok(whit_hub_listing_add_tree(&listing, "tree", tree, sizeof tree - 1, &error), error);
    assert_ok(whit_hub_listing_sort(&listing, "tree", &error), error);
    assert_int_equal(listing.n_files, 3);
    const whit_hub_file *file = whit_hub_listing_find(&listing, "d/w.gguf");
    assert_non_null(file);
    assert_int_equal(file->size_bytes, 5000000000);
    assert_int_equal(file->digest_kind, WHIT_HUB_SHA256);
    file = whit_hub_listing_find(&listing, "config.json");
    assert_int_equal(file->digest_kind, WHIT_HUB_GIT_SHA1);
    assert_string_equal(file->digest, SHA1);
    file = whit_hub_listing_find(&listing, "odd");
    assert_true(file->size_bytes == WHIT_HUB_SIZE_UNKNOWN && file->digest_kind == WHIT_HUB_NO_DIGEST);
    assert_null(whit_hub_listing_find(&listing, "d"));
    assert_true(whit_hub_listing_write(&listing, &written));
    assert_ok(whit_hub_listing_add_tree(&again, "again", (const char *)written.data, written.size_bytes, &error),
              error);
    assert_int_equal(again.n_files, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(again.files[i].path, listing.files[i].path);
        assert_int_equal(again.files[i].size_bytes, listing.files[i].size_bytes);
        assert_string_equal(again.files[i].digest, listing.files[i].digest);
    }
    whit_buf_free(&written);
    whit_hub_listing_free(&again);
    whit_hub_listing_free(&listing);

    static const char info[] =
        "{\"sha\":\"" SHA1 "\",\"siblings\":[{\"rfilename\":\"a\"},{\"rfilename\":\"b\",\"size\":7,\"blobId\":\"" SHA1
        "\"},"
        "{\"rfilename\":\"c\",\"size\":8,\"lfs\":{\"sha256\":\"" SHA256 "\",\"size\":9}}]}";
    assert_ok(whit_hub_listing_add_info(&listing, "info", info, sizeof info - 1, true, &error), error);
    assert_string_equal(listing.commit, SHA1);
    assert_int_equal(listing.n_files, 3);
    assert_int_equal(listing.files[1].digest_kind, WHIT_HUB_GIT_SHA1);
    assert_int_equal(listing.files[2].size_bytes, 9);
    assert_int_equal(listing.files[2].digest_kind, WHIT_HUB_SHA256);
    assert_string_equal(listing.licence, "");
    whit_hub_listing_free(&listing);

    static const struct {
        const char *card, *licence;
    } cards[] = {{"{\"license\":\"apache-2.0\"}", "apache-2.0"},
                 {"{\"license\":[\"mit\",\"bsd\"]}", "mit"},
                 {"{\"license\":\"other\",\"license_name\":\"own-1\"}", "own-1"},
                 {"{\"license\":\"other\"}", "other"},
                 {"{\"license\":\"a\\u001b[2Jb\"}", ""},
                 {"{\"license\":\"a\\u0000b\"}", ""},
                 {"{\"license\":\"\"}", ""},
                 {"{\"license\":7}", ""},
                 {"\"mit\"", ""}};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        char text[128];
        int n = snprintf(text, sizeof text, "{\"cardData\":%s}", cards[i].card);
        assert_ok(whit_hub_listing_add_info(&listing, "info", text, (size_t)n, true, &error), error);
        assert_string_equal(listing.licence, cards[i].licence);
        whit_hub_listing_free(&listing);
    }
}

static void hostile_listings_are_refused(void **state)
{
    (void)state;
    static const char *const trees[] = {
        "{}",
        "[",
        "[1]",
        "[{}]",
        "[{\"path\":7}]",
        "[{\"path\":\"../x\"}]",
        "[{\"path\":\"/etc/passwd\"}]",
        "[{\"path\":\"a/../../b\"}]",
        "[{\"path\":\"a\\u0000b\"}]",
        "[{\"path\":\"a\\nb\"}]",
        "[{\"path\":\"a\\\\b\"}]",
        "[{\"path\":\"\"}]",
        "[{\"path\":\"a\",\"size\":-1}]",
        "[{\"path\":\"a\",\"size\":1e30}]",
        "[{\"path\":\"a\",\"size\":99999999999999999999}]",
        "[{\"path\":\"a\"},{\"path\":\"a\"}]",
    };
    whit_error error;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        whit_hub_listing listing = {0};
        whit_status status = whit_hub_listing_add_tree(&listing, "tree", trees[i], strlen(trees[i]), &error);
        if (status == WHIT_OK) status = whit_hub_listing_sort(&listing, "tree", &error);
        assert_int_equal(status, WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "tree"));
        whit_hub_listing_free(&listing);
    }
    whit_buf many = {0};
    whit_buf_append_str(&many, "[");
    for (unsigned i = 0; i <= WHIT_HUB_FILES_MAX; i++) whit_buf_printf(&many, "%s{\"path\":\"%u\"}", i ? "," : "", i);
    whit_buf_append_str(&many, "]");
    whit_hub_listing listing = {0};
    assert_int_equal(whit_hub_listing_add_tree(&listing, "tree", (const char *)many.data, many.size_bytes, &error),
                     WHIT_ERROR_LIMIT);
    whit_hub_listing_free(&listing);
    whit_buf_free(&many);
}

static void links_lead_on(void **state)
{
    (void)state;
    char url[64];
    assert_true(whit_hub_next_page("<http://h/x?cursor=1>; rel=\"next\"", url, sizeof url));
    assert_string_equal(url, "http://h/x?cursor=1");
    assert_true(whit_hub_next_page("<http://h/0>; rel=\"prev\", <http://h/2>; rel=\"next\"", url, sizeof url));
    assert_string_equal(url, "http://h/2");
    assert_false(whit_hub_next_page("<http://h/0>; rel=\"prev\"", url, sizeof url));
    assert_false(whit_hub_next_page("", url, sizeof url));
    assert_false(whit_hub_next_page("<http://h", url, sizeof url));
    assert_false(whit_hub_next_page("<http://h/x>; rel=\"next\"", url, 5));
    assert_true(whit_hub_page_is_safe("https://h", "https://h/x?cursor=1"));
    assert_true(whit_hub_page_is_safe("https://h", "HTTPS://other/x"));
    assert_true(whit_hub_page_is_safe("http://h", "http://h/x"));
    assert_true(whit_hub_page_is_safe("http://h", "https://h/x"));
    assert_false(whit_hub_page_is_safe("https://h", "http://h/x"));
    assert_false(whit_hub_page_is_safe("https://h", "httpsx://h/x"));
    assert_false(whit_hub_page_is_safe("https://h", "h/x"));
}

/* ---- choices -------------------------------------------------------------------------------- */

/* Returns the chosen paths with spaces between, or "!" and the error message. */
static const char *chosen(const char *paths, const char *wanted)
{
    static char text[600];
    char copy[600];
    whit_hub_listing listing = {0};
    whit_hub_choice choice;
    whit_error error;
    snprintf(copy, sizeof copy, "%s", paths);
    for (char *rest, *path = strtok_r(copy, " ", &rest); path; path = strtok_r(NULL, " ", &rest))
        assert_ok(whit_hub_listing_add(&listing, &(whit_hub_file){.path = path}, &error), error);
    assert_ok(whit_hub_listing_sort(&listing, "test", &error), error);
    size_t at = 0;
    text[0] = 0;
    if (whit_hub_choose(&listing, "test", wanted, &choice, &error) != WHIT_OK)
        snprintf(text, sizeof text, "!%s", error.message);
    else
        for (size_t i = 0; i < choice.n_files; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "",
                                   listing.files[choice.files[i]].path);
    if (*text != '!') whit_hub_choice_free(&choice);
    whit_hub_listing_free(&listing);
    return text;
}

static void gguf_files_are_chosen(void **state)
{
    (void)state;
    static const char two[] = "README.md config.json m-Q4_K.gguf m-Q4_K_M.gguf";
    assert_string_equal(chosen("README.md ggml-model-i2_s.gguf", ""), "ggml-model-i2_s.gguf");
    assert_string_equal(chosen("a-I2_S.gguf b-q8_0.gguf", "i2_s"), "a-I2_S.gguf");
    assert_string_equal(chosen(two, "Q4_K"), "m-Q4_K.gguf");
    assert_string_equal(chosen(two, "q4_k_m"), "m-Q4_K_M.gguf");
    assert_string_equal(chosen(two, "*K_M.gguf"), "m-Q4_K_M.gguf");
    assert_string_equal(chosen(two, "m-Q4_K.gguf"), "m-Q4_K.gguf");
    assert_string_equal(chosen(two, "README.md"), "README.md");
    assert_non_null(strstr(chosen(two, ""), "choose one, as REPO:FILE: m-Q4_K.gguf, m-Q4_K_M.gguf"));
    assert_non_null(strstr(chosen(two, "*.gguf"), "choose one"));
    assert_non_null(strstr(chosen(two, "Q5_0"), "no file is called 'Q5_0'; its GGUF files: m-Q4_K.gguf"));
    assert_non_null(strstr(chosen("pytorch_model.bin config.json", ""), "other weights are not read"));
    /* models in several parts */
    static const char split[] =
        "q8_0/m-q8_0-00002-of-00003.gguf q8_0/m-q8_0-00001-of-00003.gguf q8_0/m-q8_0-00003-of-00003.gguf x-q4_0.gguf";
    static const char parts[] =
        "q8_0/m-q8_0-00001-of-00003.gguf q8_0/m-q8_0-00002-of-00003.gguf q8_0/m-q8_0-00003-of-00003.gguf";
    assert_string_equal(chosen(split, "Q8_0"), parts);
    assert_string_equal(chosen(split, "q8_0/m-q8_0-00002-of-00003.gguf"), parts);
    assert_string_equal(chosen(parts, ""), parts);
    assert_non_null(strstr(chosen("m-00001-of-00002.gguf", ""), "part 2 of 2"));
    assert_string_equal(chosen("m-00003-of-00002.gguf", ""), "m-00003-of-00002.gguf");
}

static void folders_are_chosen(void **state)
{
    (void)state;
    assert_string_equal(chosen("README.md chat_template.jinja config.json model.safetensors consolidated.safetensors "
                               "onnx/model.onnx pytorch_model.bin tokenizer.json",
                               ""),
                        "config.json tokenizer.json chat_template.jinja model.safetensors");
    assert_string_equal(
        chosen("1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors 2_Dense/other.bin "
               "config.json config_sentence_transformers.json model.safetensors modules.json onnx/config.json",
               ""),
        "config.json modules.json config_sentence_transformers.json 1_Pooling/config.json "
        "2_Dense/config.json 2_Dense/model.safetensors model.safetensors");
    assert_string_equal(chosen("config.json only.safetensors m.gguf", ""), "config.json only.safetensors");
    assert_string_equal(chosen("config.json only.safetensors m-q8_0.gguf", "q8_0"), "m-q8_0.gguf");
    assert_string_equal(chosen("config.json model.safetensors.index.json model-00001-of-00002.safetensors "
                               "model-00002-of-00002.safetensors",
                               ""),
                        "config.json model.safetensors.index.json");
    assert_non_null(strstr(chosen("config.json a.safetensors b.safetensors", ""), "!test"));

    whit_hub_listing listing = {0};
    whit_hub_choice choice;
    whit_error error;
    static const char *const paths[] = {"config.json", "model.safetensors.index.json", "x-1.safetensors",
                                        "x-2.safetensors", "y.safetensors"};
    for (size_t i = 0; i < 5; i++)
        assert_ok(whit_hub_listing_add(&listing, &(whit_hub_file){.path = (char *)(uintptr_t)paths[i]}, &error), error);
    assert_ok(whit_hub_listing_sort(&listing, "test", &error), error);
    static const char index[] =
        "{\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-2.safetensors\",\"c\":\"x-1.safetensors\"}}";
    assert_ok(whit_hub_choose(&listing, "test", "", &choice, &error), error);
    assert_ok(whit_hub_choose_shards(&listing, "test", index, sizeof index - 1, &choice, &error), error);
    assert_int_equal(choice.n_files, 4);
    assert_ok(whit_hub_choose_shards(&listing, "test", index, sizeof index - 1, &choice, &error), error);
    assert_int_equal(choice.n_files, 4); /* the same shards again */
    static const char *const bad[] = {"{}",
                                      "{\"weight_map\":{}}",
                                      "{\"weight_map\":{\"a\":\"../x\"}}",
                                      "{\"weight_map\":{\"a\":3}}",
                                      "nonsense",
                                      "{\"weight_map\":{\"a\":\"y.safetensors\",\"b\":\"absent\"}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(whit_hub_choose_shards(&listing, "test", bad[i], strlen(bad[i]), &choice, &error),
                         WHIT_ERROR_FORMAT);
        assert_int_equal(choice.n_files, 4); /* nothing was added */
    }
    whit_hub_choice_free(&choice);
    whit_hub_listing_free(&listing);
}

/* ---- settings ------------------------------------------------------------------------------- */

static void settings_come_from_the_environment(void **state)
{
    (void)state;
    char endpoint[WHIT_HUB_ENDPOINT_BYTES], token[WHIT_HUB_TOKEN_BYTES], path[] = "/tmp/whit-token-XXXXXX";
    const char *from;
    whit_error error;
    setenv("HF_ENDPOINT", "http://h:1//", 1);
    assert_ok(whit_hub_endpoint(endpoint, &error), error);
    assert_string_equal(endpoint, "http://h:1");
    setenv("HF_ENDPOINT", "ftp://h", 1);
    assert_int_equal(whit_hub_endpoint(endpoint, &error), WHIT_ERROR_ARGUMENT);
    unsetenv("HF_ENDPOINT");
    assert_ok(whit_hub_endpoint(endpoint, &error), error);
    assert_int_equal(strncmp(endpoint, "https://", 8), 0);

    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "from_file\n", 10) == 10);
    close(fd);
    setenv("HF_TOKEN_PATH", path, 1);
    unsetenv("HF_TOKEN");
    assert_ok(whit_hub_token(NULL, token, &from, &error), error);
    assert_string_equal(token, "from_file");
    setenv("HF_TOKEN", " from_variable ", 1);
    assert_ok(whit_hub_token(NULL, token, &from, &error), error);
    assert_string_equal(token, "from_variable");
    assert_ok(whit_hub_token("given", token, &from, &error), error);
    assert_string_equal(token, "given");
    assert_int_equal(whit_hub_token("a\r\nX-Evil: 1", token, &from, &error), WHIT_ERROR_ARGUMENT);
    unsetenv("HF_TOKEN");
    unlink(path);
    assert_ok(whit_hub_token(NULL, token, &from, &error), error);
    assert_string_equal(token, "");
    unsetenv("HF_TOKEN_PATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(paths_stay_below_a_folder),
        cmocka_unit_test(sha1_is_that_of_the_standard),
        cmocka_unit_test(listings_are_read),
        cmocka_unit_test(hostile_listings_are_refused),
        cmocka_unit_test(links_lead_on),
        cmocka_unit_test(gguf_files_are_chosen),
        cmocka_unit_test(folders_are_chosen),
        cmocka_unit_test(settings_come_from_the_environment),
    };
    return cmocka_run_group_tests_name("hub", tests, NULL, NULL);
}
