/* SPDX-License-Identifier: MIT */
#include "format/foreign.h"

#include "format/lfs.h"

#include <strings.h>

enum { LOOK_BYTES = 4096 };

#define PYTORCH "is a file of PyTorch, whose contents are a program; save the model as safetensors and open its folder"

static const struct magic {
    uint32_t at, n_bytes;
    const char *bytes, *reason;
} magics[] = {
    {0, 4, "PK\3\4", "is a zip archive; unpack it and open the model in it"},
    {0, 2, "\x1f\x8b", "is packed by gzip; unpack it first"},
    {0, 4, "\x28\xb5\x2f\xfd", "is packed by zstd; unpack it first"},
    {0, 6,
     "\xfd"
     "7zXZ",
     "is packed by xz; unpack it first"},
    {0, 3, "BZh", "is packed by bzip2; unpack it first"},
    {0, 6, "7z\xbc\xaf\x27\x1c", "is packed by 7-Zip; unpack it first"},
    {0, 4, "Rar!", "is a RAR archive; unpack it first"},
    {257, 5, "ustar", "is a tar archive; unpack it and open the model in it"},
    {0, 2, "\x80\2", PYTORCH},
    {0, 4, "\x89HDF", "is a file of HDF5 (Keras, TensorFlow); download the model as safetensors or GGUF"},
    {4, 4, "TFL3", "is a TensorFlow Lite model; download the model as safetensors or GGUF"},
    {0, 4,
     "\x7f"
     "ELF",
     "is a program, not a model"},
    {0, 2, "MZ", "is a program, not a model"},
    {8, 2, "{\"", "is a safetensors file; rename it to end in .safetensors, next to its config.json"},
};

/* Returns whether all n bytes are printable characters or white space. */
static bool is_text(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] < ' ' ? bytes[i] < '\t' || bytes[i] > '\r' : bytes[i] == 127) return false;
    return true;
}

static const char *text_reason(const uint8_t *bytes, size_t n)
{
    static const uint8_t byte_order_mark[] = {0xEF, 0xBB, 0xBF};
    size_t at = n >= 3 && !memcmp(bytes, byte_order_mark, 3) ? 3 : 0;
    while (at < n && strchr(" \t\r\n", bytes[at])) at++;
    if (at < n && bytes[at] == '<') return "is not a GGUF file but looks like a web page; download the file itself";
    if (at < n && strchr("{[", bytes[at]))
        return "is JSON, such as the answer of a server, and not a model; download the file itself";
    return "is text, such as the message of a server, and not a model; look at it, then download the file itself";
}

const char *whit_foreign_reason(const void *data, uint64_t size_bytes)
{
    const uint8_t *bytes = data;
    const size_t n = size_bytes < LOOK_BYTES ? (size_t)size_bytes : LOOK_BYTES;
    if (!n) return "is empty; download it again";
    if (whit_is_lfs_pointer(data, size_bytes)) return WHIT_LFS_REASON;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const struct magic *magic = &magics[i];
        if (!whit_in_bounds(magic->at, magic->n_bytes, n) || memcmp(bytes + magic->at, magic->bytes, magic->n_bytes))
            continue;
        /* torch.save writes zip archives that contain data.pkl */
        const bool is_saved = bytes[0] == 'P' && memmem(bytes, n, "data.pkl", 8);
        return is_saved ? PYTORCH : magic->reason;
    }
    if (is_text(bytes, n)) return text_reason(bytes, n);
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return NULL;
    return "begins with zero bytes, as after a failed download; download it again";
}
