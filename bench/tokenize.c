/* SPDX-License-Identifier: MIT
 * Speed of a tokenizer on a text, one thread:
 *
 *     bench_tokenize TOKENIZER TEXT [REPEATS]
 *
 * prints the time to build the image, to open it, and the fastest and median MB/s of encoding the
 * whole text and of decoding its ids, in processor time: other work on the machine counts less. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "tokenizer/from_path.h"
#include "tokenizer/tokenizer.h"

#define MAX_REPEATS 101

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void report(const char *what, uint64_t *times, size_t n, size_t n_bytes)
{
    qsort(times, n, sizeof *times, compare);
    printf("%s: %.1f MB/s (median %.1f)\n", what, 1e3 * (double)n_bytes / (double)times[0],
           1e3 * (double)n_bytes / (double)times[n / 2]);
}

static int fail(const whit_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_tokenize TOKENIZER TEXT [REPEATS]\n");
        return 2;
    }
    size_t n = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
    if (n < 1 || n > MAX_REPEATS) n = 5;
    uint64_t encode_ns[MAX_REPEATS], decode_ns[MAX_REPEATS];
    whit_buf image = {0}, text = {0}, ids = {0}, back = {0};
    whit_tokenizer_view view;
    whit_tokenizer *tokenizer;
    whit_error error;
    const whit_encode_options options = {.parse_special = true};
    uint64_t start = processor_ns();
    if (whit_tokenizer_from_path(argv[1], &image, &error) != WHIT_OK) return fail(&error);
    uint64_t built = processor_ns();
    if (whit_tokenizer_check(image.data, image.size_bytes, &view, &error) != WHIT_OK ||
        whit_tokenizer_open(&view, NULL, &tokenizer, &error) != WHIT_OK)
        return fail(&error);
    uint64_t opened = processor_ns();
    if (whit_read_file(argv[2], 1u << 30, &text, &error) != WHIT_OK) return fail(&error);
    for (size_t i = 0; i < n; i++) {
        ids.size_bytes = back.size_bytes = 0;
        uint64_t from = processor_ns();
        if (whit_tokenizer_encode(tokenizer, (const char *)text.data, text.size_bytes, &options, &ids, &error) !=
            WHIT_OK)
            return fail(&error);
        uint64_t middle = processor_ns();
        if (whit_tokenizer_decode(&view, (const int32_t *)(const void *)ids.data, ids.size_bytes / 4, false, &back,
                                  &error) != WHIT_OK)
            return fail(&error);
        encode_ns[i] = middle - from;
        decode_ns[i] = processor_ns() - middle;
    }
    printf("image: %.1f MB, built in %.1f ms, opened in %.1f us\n", (double)image.size_bytes / 1e6,
           (double)(built - start) / 1e6, (double)(opened - built) / 1e3);
    printf("text: %zu bytes, %zu ids, decodes to itself: %s\n", text.size_bytes, ids.size_bytes / 4,
           back.size_bytes == text.size_bytes && memcmp(back.data, text.data, text.size_bytes) == 0 ? "yes" : "no");
    report("encode", encode_ns, n, text.size_bytes);
    report("decode", decode_ns, n, text.size_bytes);
    whit_tokenizer_close(tokenizer);
    whit_buf_free(&image);
    whit_buf_free(&text);
    whit_buf_free(&ids);
    whit_buf_free(&back);
    return 0;
}
