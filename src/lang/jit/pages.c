/* SPDX-License-Identifier: MIT */
#include "lang/jit/pages.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct jit_page jit_page;
struct jit_page {
    jit_page *next;
    void *code;
    const char *what;
    size_t n_bytes, n_code_bytes;
    uint32_t line, column;
};

static void *seal(const jit_code *code, size_t *n_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *n_bytes = (code->n + page - 1) / page * page;
    void *memory = mmap(NULL, *n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    memcpy(memory, code->bytes, code->n);
    if (mprotect(memory, *n_bytes, PROT_READ | PROT_EXEC) == 0) return memory;
    munmap(memory, *n_bytes); /* the system does not allow executable pages */
    return NULL;
}

void *jit_seal(whit_lang *vm, const lang_node *node, const char *what, const jit_code *code)
{
    jit_page *page = vm->n_jit_pages < JIT_PAGES_MAX ? lang_arena_take(&vm->arena, sizeof *page) : NULL;
    if (!page || !(page->code = seal(code, &page->n_bytes))) return NULL;
    page->next = vm->jit_pages;
    page->what = what;
    page->n_code_bytes = code->n;
    page->line = node->line;
    page->column = node->column;
    vm->jit_pages = page;
    vm->n_jit_pages++;
    return page->code;
}

void jit_close_pages(whit_lang *vm)
{
    for (jit_page *page = vm->jit_pages; page; page = page->next) munmap(page->code, page->n_bytes);
    vm->jit_pages = NULL;
}

void jit_list_pages(const whit_lang *vm, uint32_t n_before, whit_buf *out)
{
    uint32_t n = vm->n_jit_pages;
    for (const jit_page *page = vm->jit_pages; page && n > n_before; page = page->next, n--) {
        const uint8_t *code = page->code;
        whit_buf_printf(out, "%s at %u:%u, %zu bytes of x86-64\n", page->what, page->line, page->column,
                        page->n_code_bytes);
        for (size_t i = 0; i < page->n_code_bytes; i++)
            whit_buf_printf(out, i % 16 == 15 || i + 1 == page->n_code_bytes ? "%02x\n" : "%02x ", code[i]);
    }
}
