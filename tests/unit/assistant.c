/* SPDX-License-Identifier: MIT
 * Tests which model the editor's assistant uses: the command line's or the settings', never a mixture of both. */
#include "assistant/answering_model.h"
#include "test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_of_the_line_gets_no_key_of_the_settings),
        cmocka_unit_test(a_name_of_the_line_chooses_at_the_address_of_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
