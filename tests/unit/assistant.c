/* SPDX-License-Identifier: MIT
 * Tests which model the editor's assistant uses: the command line's or the settings', never a mixture of both; and
 * which texts it does not send. */
#include "assistant/answering_model.h"
#include "test_folder.h"

#include <sys/stat.h>
#include <unistd.h>

static const whit_panel_wish of_settings = {.url = "https://models.example/v1", .name = "large", .key_file = "key"};

static void an_address_of_the_line_gets_no_key_of_the_settings(void **state)
{
    (void)state;
    const whit_panel_wish line = {.url = "http://127.0.0.1:9000/v1"};
    const whit_panel_wish wish = whit_assistant_wish_of(&line, &of_settings);
    assert_string_equal(wish.url, line.url);
    assert_null(wish.model);
    assert_null(wish.name);
    assert_null(wish.key_file);
    const whit_panel_wish local = {.model = "model.ndf"};
    const whit_panel_wish here = whit_assistant_wish_of(&local, &of_settings);
    assert_string_equal(here.model, local.model);
    assert_null(here.url);
    assert_null(here.key_file);
}

static void a_name_of_the_line_chooses_at_the_address_of_the_settings(void **state)
{
    (void)state;
    const whit_panel_wish line = {.name = "small"};
    const whit_panel_wish wish = whit_assistant_wish_of(&line, &of_settings);
    assert_string_equal(wish.url, of_settings.url);
    assert_string_equal(wish.name, "small");
    assert_string_equal(wish.key_file, of_settings.key_file);
    const whit_panel_wish both = {.model = "model.ndf", .url = of_settings.url};
    const whit_panel_wish here = whit_assistant_wish_of(&(whit_panel_wish){0}, &both);
    assert_string_equal(here.model, both.model);
    assert_null(here.url);
}

static bool is_sent(const char *name)
{
    static const char text[] = "PASSWORD=hunter2\n";
    return !whit_assistant_is_secret(in_folder(name), name, text, sizeof text - 1);
}

/* A project's .env file is often a link to the file of a machine or of a stage. */
static void a_file_to_which_env_is_a_link_is_not_sent(void **state)
{
    (void)state;
    static const char *const folders[] = {"p", "p/conf", "p/src"};
    static const char *const files[] = {"p/conf/dev", "p/dev", "p/src/a.c"};
    for (size_t i = 0; i < 3; i++) assert_int_equal(mkdir(in_folder(folders[i]), 0700), 0);
    for (size_t i = 0; i < 3; i++) {
        FILE *file = fopen(in_folder(files[i]), "w");
        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
    }
    assert_true(is_sent("p/conf/dev"));
    assert_int_equal(symlink("conf/dev", in_folder("p/.env")), 0);
    assert_false(is_sent("p/conf/dev"));
    assert_true(is_sent("p/dev"));
    assert_int_equal(symlink("dev", in_folder("p/.env.local")), 0);
    assert_false(is_sent("p/dev"));
    assert_true(is_sent("p/src/a.c"));
    assert_int_equal(symlink("p/dev", in_folder("other")), 0);
    assert_false(is_sent("other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_of_the_line_gets_no_key_of_the_settings),
        cmocka_unit_test(a_name_of_the_line_chooses_at_the_address_of_the_settings),
        cmocka_unit_test(a_file_to_which_env_is_a_link_is_not_sent),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
