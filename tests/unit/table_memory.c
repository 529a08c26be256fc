/* SPDX-License-Identifier: MIT
 * Tests that a large embedding which is not also the head is read by row from the mapped file and does not stay in
 * memory. */
#include "test_folder.h"

#include "model_folder.h"
#include "runtime/model.h"

enum { N_VOCAB = 1 << 16, N_TOKENS = 1 << 12 };

/* Returns the resident bytes of all mappings that overlap a range. */
static size_t resident_bytes(const void *begin, size_t size_bytes)
{
    char line[512];
    size_t total = 0;
    bool is_within = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file) skip();
    while (fgets(line, sizeof line, file)) {
        unsigned long from, to, kilobytes;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_within = from < (uintptr_t)begin + size_bytes && to > (uintptr_t)begin;
        else if (is_within && sscanf(line, "Rss: %lu kB", &kilobytes) == 1)
            total += kilobytes * 1024;
    }
    fclose(file);
    return total;
}

static void looked_up_rows_do_not_stay(void **state)
{
    (void)state;
    whit_error error;
    folder_model folder = folder_reduce(folder_find("tinyllama-1.1b"), 1, 16, N_VOCAB);
    assert_true(folder_write(&folder, in_folder("model"), 1, NULL, NULL));
    whit_model *model = open_model("model");
    const whit_tensor *table = NULL;
    for (uint32_t i = 0; i < model->weights.n_tensors; i++)
        if (!strcmp(whit_ndf_tensor_name(model->file, i), "embed")) table = &model->weights.tensors[i];
    assert_non_null(table);
    const uint8_t *codes = table->part[WHIT_PART_CODES];
    const size_t size_bytes = table->part_bytes[WHIT_PART_CODES];
    assert_true(size_bytes >= (size_t)8 << 20);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_TOKENS;
    options.n_threads = 2;
    whit_session *session;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    static whit_step_token tokens[N_TOKENS]; /* one token of each tile, from all parts of the table */
    for (uint32_t i = 0; i < N_TOKENS; i++) tokens[i].id = (int32_t)(i * 16 * 2731u % N_VOCAB);
    assert_ok(whit_session_step(session, tokens, N_TOKENS / 2, &error), error);
    for (uint32_t i = N_TOKENS / 2; i < N_TOKENS / 2 + 256; i++)
        assert_ok(whit_session_step(session, &tokens[i], 1, &error), error);
    size_t resident = resident_bytes(codes, size_bytes);
    print_message("%zu of %zu bytes are resident\n", resident, size_bytes);
    if (resident > size_bytes / 2) fail_msg("%zu of %zu bytes are resident", resident, size_bytes);
    whit_session_close(session);
    whit_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(looked_up_rows_do_not_stay)};
    return cmocka_run_group_tests_name("table memory", tests, make_folder, remove_folder);
}
