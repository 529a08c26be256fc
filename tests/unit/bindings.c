/* SPDX-License-Identifier: MIT
 * Tests that the exported functions for default options equal the headers' defaults, also for programs that were
 * compiled with a larger or smaller struct. */
#include "test.h"

#include <whit.h>
#include <whit/bindings.h>

#define CHECK_INIT(name)                                                                                               \
    {                                                                                                                  \
        unsigned char room[sizeof(whit_##name) + 64], whole[sizeof(whit_##name)];                                      \
        whit_##name wanted = whit_##name##_default(), got;                                                             \
        size_t half = sizeof(size_t) + 8, size;                                                                        \
        assert_int_equal(whit_##name##_init(NULL, 0), sizeof wanted);                                                  \
        assert_int_equal(whit_##name##_init(&got, sizeof got), sizeof wanted);                                         \
        assert_memory_equal(&got, &wanted, sizeof got);                                                                \
        memcpy(whole, &wanted, sizeof whole);                                                                          \
        memset(room, 0xA5, sizeof room);                                                                               \
        whit_##name##_init(room, half);                                                                                \
        memcpy(&size, room, sizeof size);                                                                              \
        assert_int_equal(size, half);                                                                                  \
        assert_memory_equal(room + sizeof size, whole + sizeof size, half - sizeof size);                              \
        for (size_t i = half; i < sizeof room; i++) assert_int_equal(room[i], 0xA5);                                   \
        whit_##name##_init(room, sizeof room);                                                                         \
        memcpy(&size, room, sizeof size);                                                                              \
        assert_int_equal(size, sizeof room);                                                                           \
        assert_memory_equal(room + sizeof size, whole + sizeof size, sizeof whole - sizeof size);                      \
        for (size_t i = sizeof whole; i < sizeof room; i++) assert_int_equal(room[i], 0);                              \
    }

static void test_defaults(void **state)
{
    (void)state;
    CHECK_INIT(answer)
    CHECK_INIT(answer_options)
    CHECK_INIT(call_options)
    CHECK_INIT(chat_request)
    CHECK_INIT(chat_template_options)
    CHECK_INIT(embed_options)
    CHECK_INIT(generate_options)
    CHECK_INIT(generate_result)
    CHECK_INIT(model_options)
    CHECK_INIT(program_options)
    CHECK_INIT(rerank_options)
    CHECK_INIT(rerank_pair)
    CHECK_INIT(sampler_options)
    CHECK_INIT(session_options)
    CHECK_INIT(session_replay)
    CHECK_INIT(session_turn)
    CHECK_INIT(stage)
}

/* A struct filled by a binding must be accepted, so that the library fails only at opening the file. An empty struct is
 * refused. */
static void test_taken(void **state)
{
    (void)state;
    size_t memory[64] = {0};
    whit_error error;
    whit_model *model;
    const whit_model_options *options = (const whit_model_options *)(const void *)memory;
    assert_int_equal(whit_model_open("/nowhere/model.ndf", options, &model, &error), WHIT_ERROR_ARGUMENT);
    assert_true(whit_model_options_init(memory, sizeof memory) <= sizeof memory);
    assert_int_equal(whit_model_open("/nowhere/model.ndf", options, &model, &error), WHIT_ERROR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_defaults), cmocka_unit_test(test_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
