/* SPDX-License-Identifier: MIT
 * Reads any bytes as a hub's answers: as both kinds of file list, from which files are chosen, and which are written
 * and read again; as an index of shards, a Link header and a name. */
#include "hub/choose.h"

static void choose_all(whit_hub_listing *listing, const char *text, size_t size)
{
    static const char *const wanted[] = {"", "q8_0", "*.gguf", "m-00001-of-00002.gguf"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        whit_hub_choice choice;
        if (whit_hub_choose(listing, "fuzz", wanted[i], &choice, NULL) != WHIT_OK) continue;
        (void)whit_hub_choose_shards(listing, "fuzz", text, size, &choice, NULL);
        for (size_t k = 0; k < choice.n_files; k++)
            if (choice.files[k] >= listing->n_files) __builtin_trap();
        whit_hub_choice_free(&choice);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    whit_hub_listing tree = {0}, info = {0}, again = {0};
    whit_buf copy = {0};
    if (whit_hub_listing_add_tree(&tree, "fuzz", text, size, NULL) == WHIT_OK &&
        whit_hub_listing_sort(&tree, "fuzz", NULL) == WHIT_OK) {
        choose_all(&tree, text, size);
        if (!whit_hub_listing_write(&tree, &copy) ||
            whit_hub_listing_add_tree(&again, "again", (const char *)copy.data, copy.size_bytes, NULL) != WHIT_OK ||
            again.n_files != tree.n_files)
            __builtin_trap();
    }
    if (whit_hub_listing_add_info(&info, "fuzz", text, size, true, NULL) == WHIT_OK &&
        whit_hub_listing_sort(&info, "fuzz", NULL) == WHIT_OK)
        choose_all(&info, text, size);
    copy.size_bytes = 0;
    whit_buf_append(&copy, data, size);
    if (whit_buf_append(&copy, "", 1)) {
        char url[100], folder[WHIT_HUB_FOLDER_BYTES];
        whit_hub_name name;
        (void)whit_hub_next_page((const char *)copy.data, url, sizeof url);
        (void)whit_hub_name_from_folder((const char *)copy.data, &name);
        if (whit_hub_name_parse((const char *)copy.data, &name, NULL) == WHIT_OK) {
            whit_hub_name_folder(&name, folder);
            /* every valid name can be converted to a folder and back */
            if (!whit_hub_name_from_folder(folder, &name)) __builtin_trap();
        }
    }
    whit_buf_free(&copy);
    whit_hub_listing_free(&tree);
    whit_hub_listing_free(&info);
    whit_hub_listing_free(&again);
    return 0;
}
