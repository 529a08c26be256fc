/* SPDX-License-Identifier: MIT
 * Tests the memory of training: it takes as much as it states, and a failing allocation is an error that leaves no
 * memory allocated. */
#include "test.h"

#include "failing_memory.h"
#include "tiny_model.h"
#include "train/trainer.h"

#include <unistd.h>

#define LINE "The cat and the hat in the night, on the land. "

static char folder[] = "/tmp/whit-train-memory-XXXXXX";
static char model_path[64], text_path[64], checkpoint_path[64], out_path[64];

static whit_model *open_teacher(void)
{
    whit_error error;
    whit_model *model;
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    tiny.n_layers = tests_are_brief() ? 1 : 3;
    assert_true(tiny_model_write(&tiny, model_path));
    assert_ok(whit_model_open(model_path, &options, &model, &error), error);
    return model;
}

static whit_trainer_options small_run(const char *const *text)
{
    whit_trainer_options o = whit_trainer_options_default();
    FILE *file = fopen(text[0], "wb");
    assert_non_null(file);
    for (int i = 0; i < 20; i++) fputs(LINE, file);
    assert_int_equal(fclose(file), 0);
    o.text = text;
    o.n_text = 1;
    o.held_out = text[0];
    o.n_sequences = 4;
    o.n_tokens = 64;
    o.n_steps = 2;
    o.n_threads = 1;
    o.checkpoint = checkpoint_path;
    return o;
}

/* ---- the most that was held at once ----------------------------------------------------------- */

struct counted {
    size_t now_bytes, peak_bytes;
};

static void *counted_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    struct counted *counted = user;
    counted->now_bytes += size_bytes;
    if (counted->now_bytes > counted->peak_bytes) counted->peak_bytes = counted->now_bytes;
    return aligned_alloc(align_bytes, (size_bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void counted_free(void *user, void *memory, size_t size_bytes)
{
    ((struct counted *)user)->now_bytes -= size_bytes;
    free(memory);
}

static void check_stated(const whit_model *teacher, bool recompute, size_t *stated)
{
    whit_error error;
    struct counted counted = {0};
    whit_allocator allocator = {counted_alloc, counted_free, &counted};
    const char *text[] = {text_path};
    whit_trainer *trainer;
    whit_trainer_options o = small_run(text);
    o.recompute = recompute;
    assert_ok(whit_trainer_open(teacher, teacher, &o, &allocator, &trainer, &error), error);
    *stated = whit_trainer_bytes(trainer);
    assert_ok(whit_trainer_run(trainer, &error), error);
    print_message("%zu bytes stated, %zu at most held\n", *stated, counted.peak_bytes);
    /* Names, the graph and a file's buffer are not counted, because they do not grow with the batch. */
    assert_true(counted.peak_bytes <= *stated + 131072 && *stated <= counted.peak_bytes);
    whit_trainer_close(trainer);
    assert_int_equal(counted.now_bytes, 0);
}

static void stated_memory_is_kept(void **state)
{
    (void)state;
    whit_model *teacher = open_teacher();
    size_t whole, less;
    check_stated(teacher, false, &whole);
    check_stated(teacher, true, &less);
    assert_true(less < whole);
    whit_model_close(teacher);
}

/* ---- memory that fails ------------------------------------------------------------------------ */

static void failing_memory_is_an_error(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_teacher();
    const char *text[] = {text_path};
    whit_trainer_options o = small_run(text);
    o.n_steps = o.n_sequences = 1;
    o.n_tokens = 16;
    whit_status status = WHIT_ERROR_MEMORY;
    long n = 0;
    for (; status != WHIT_OK; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_trainer *trainer = NULL;
        status = whit_trainer_open(teacher, teacher, &o, &allocator, &trainer, &error);
        if (status == WHIT_OK) status = whit_trainer_run(trainer, &error);
        if (status == WHIT_OK) status = whit_trainer_write(trainer, out_path, &error);
        whit_trainer_close(trainer);
        if (status != WHIT_OK && status != WHIT_ERROR_MEMORY) fail_msg("allocation %ld: %s", n, error.message);
        assert_int_equal(failing.n_live, 0);
    }
    print_message("%ld allocations could fail\n", n - 1);
    assert_true(n > 50);
    whit_model_close(teacher);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(model_path, sizeof model_path, "%s/tiny.gguf", folder);
    snprintf(text_path, sizeof text_path, "%s/line.txt", folder);
    snprintf(checkpoint_path, sizeof checkpoint_path, "%s/run.checkpoint", folder);
    snprintf(out_path, sizeof out_path, "%s/out.ndf", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(model_path);
    unlink(text_path);
    unlink(checkpoint_path);
    unlink(out_path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stated_memory_is_kept),
        cmocka_unit_test(failing_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("memory of training", tests, make_folder, remove_folder);
}
