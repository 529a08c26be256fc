/* SPDX-License-Identifier: MIT
 * Makes the JSON files of a sentence-transformers folder of any bytes, separated by zero bytes: modules.json, the
 * configurations of its modules 1_Pooling and 2_Dense, and the prompts. The model in the folder has no weights. */
#include "model/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char model[] = "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"hidden_size\": 32, "
                            "\"intermediate_size\": 64, \"num_attention_heads\": 2, \"num_hidden_layers\": 1, "
                            "\"vocab_size\": 16, \"max_position_embeddings\": 8}";
static const char *const names[] = {"modules.json", "1_Pooling/config.json", "2_Dense/config.json",
                                    "config_sentence_transformers.json"};
enum { N_NAMES = sizeof names / sizeof *names };
static char folder[64];

static void path_of(const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", folder, name);
}

static void remove_folder(void)
{
    static const char *const folders[] = {"1_Pooling", "2_Dense", "."};
    char path[160];
    for (int i = 0; i < N_NAMES; i++) {
        path_of(names[i], path);
        unlink(path);
    }
    path_of("config.json", path);
    unlink(path);
    for (int i = 0; i < 3; i++) {
        path_of(folders[i], path);
        rmdir(i < 2 ? path : folder);
    }
}

static bool write_bytes(const char *name, const void *data, size_t size)
{
    char path[160];
    path_of(name, path);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool ok = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && ok;
}

static bool make_folder(void)
{
    char path[160];
    if (*folder) return true;
    snprintf(folder, sizeof folder, "/tmp/whit-fuzz-XXXXXX");
    if (!mkdtemp(folder)) return false;
    path_of("1_Pooling", path);
    if (mkdir(path, 0700) != 0) return false;
    path_of("2_Dense", path);
    return mkdir(path, 0700) == 0 && atexit(remove_folder) == 0 && write_bytes("config.json", model, sizeof model - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_source source;
    whit_error error;
    if (!make_folder()) return 0;
    for (int i = 0; i < N_NAMES; i++) {
        const uint8_t *end = size ? memchr(data, 0, size) : NULL;
        const size_t n = end ? (size_t)(end - data) : size;
        if (!write_bytes(names[i], data, n)) return 0;
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    if (whit_source_open(folder, NULL, &source, &error) == WHIT_OK) whit_source_close(&source);
    return 0;
}
