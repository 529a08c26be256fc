/* SPDX-License-Identifier: MIT
 * Implements a session of the language: loads and runs programs, enforces limits, and gives the host access to
 * variables. */
#include "lang/core/vm.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/flag.h"
#include "lang/core/chunk.h"
#include "lang/core/code.h"

#define ARENA_BYTES ((size_t)32 << 20)
#define FUEL        4096 /* number of steps between checks of the limits */

whit_status whit_lang_open(const whit_lang_options *options, whit_lang **out, whit_error *error)
{
    const whit_allocator *allocator = options->allocator;
    whit_lang *vm = whit_zalloc(allocator, sizeof *vm);
    *out = NULL;
    if (!vm) return whit_fail_memory(error, "a program", sizeof *vm);
    vm->options = *options;
    if (!vm->options.max_steps) vm->options.max_steps = 1000000000000;
    if (!vm->options.max_bytes) vm->options.max_bytes = (size_t)64 << 20;
    vm->arena = (lang_arena){.limit_bytes = ARENA_BYTES, .allocator = allocator};
    vm->kernels = &lang_chunk_generic;
    vm->scope.host = options->host;
    if (options->host) vm->options.tier = WHIT_LANG_WALK;
#if defined(__x86_64__)
    if (whit_isa_allows(options->quat->isa, WHIT_ISA_AVX2)) vm->kernels = &lang_chunk_avx2;
    if (whit_isa_allows(options->quat->isa, WHIT_ISA_AVX512)) vm->kernels = &lang_chunk_avx512;
#endif
    vm->globals = whit_zalloc_array(allocator, LANG_MAX_GLOBALS, sizeof *vm->globals);
    /* These arrays are not zeroed, because the session reads only entries that it has written; pages that are never
     * written are not allocated. */
    vm->scope.globals = whit_alloc(allocator, LANG_MAX_GLOBALS * sizeof *vm->scope.globals);
    vm->stack = whit_alloc(allocator, LANG_STACK_VALUES * sizeof *vm->stack);
    vm->chunks = whit_alloc(allocator, LANG_REGISTERS * LANG_CHUNK * sizeof *vm->chunks);
    if (!vm->globals || !vm->scope.globals || !vm->stack || !vm->chunks) {
        whit_lang_close(vm);
        return whit_fail_memory(error, "a program", LANG_STACK_VALUES * sizeof *vm->stack);
    }
    *out = vm;
    return WHIT_OK;
}

static void free_array(whit_lang *vm, lang_array *array)
{
    vm->n_bytes -= array->size_bytes;
    whit_free(vm->options.allocator, array, array->size_bytes);
}

void whit_lang_close(whit_lang *vm)
{
    if (!vm) return;
    const whit_allocator *allocator = vm->options.allocator;
    for (lang_array *array = vm->arrays, *next; array; array = next) {
        next = array->next;
        free_array(vm, array);
    }
    if (vm->spare) free_array(vm, vm->spare);
    if (vm->options.jit) vm->options.jit->close(vm);
    lang_arena_free(&vm->arena);
    whit_free(allocator, vm->globals, LANG_MAX_GLOBALS * sizeof *vm->globals);
    whit_free(allocator, vm->scope.globals, LANG_MAX_GLOBALS * sizeof *vm->scope.globals);
    whit_free(allocator, vm->stack, LANG_STACK_VALUES * sizeof *vm->stack);
    whit_free(allocator, vm->chunks, LANG_REGISTERS * LANG_CHUNK * sizeof *vm->chunks);
    whit_free(allocator, vm, sizeof *vm);
}

whit_lang_place whit_lang_failed_at(const whit_lang *vm)
{
    return vm->place;
}

/* ---- limits ----------------------------------------------------------------------------------- */

void lang_raise(whit_lang *vm, const lang_node *at, whit_status status, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    vm->place = (whit_lang_place){at->line, at->column};
    vm->status = whit_fail(&vm->error, status, "%s:%u:%u: %s", vm->name, at->line, at->column, text);
    longjmp(*vm->on_failure, 1);
}

/* Moves the steps until the next check of the limits, at most FUEL, from steps_left to fuel. */
static void take_fuel(whit_lang *vm)
{
    vm->fuel = (int64_t)(vm->steps_left < FUEL ? vm->steps_left : FUEL);
    vm->steps_left -= (uint64_t)vm->fuel;
}

void lang_refuel(whit_lang *vm, const lang_node *at)
{
    if (vm->fuel < 0 && 0 - (uint64_t)vm->fuel > vm->steps_left)
        lang_raise(vm, at, WHIT_ERROR_LIMIT, "stopped after %llu steps; that is the limit",
                   (unsigned long long)vm->options.max_steps);
    vm->steps_left += (uint64_t)vm->fuel; /* fuel > 0: returns unused steps; fuel < 0: charges overdrawn steps */
    take_fuel(vm);
    if (vm->options.max_ms && whit_thread_cpu_ns() - vm->started_ns > vm->options.max_ms * 1000000)
        lang_raise(vm, at, WHIT_ERROR_LIMIT, "stopped after %llu ms of processor time; that is the limit",
                   (unsigned long long)vm->options.max_ms);
    if (whit_flag_is_set(vm->options.cancel)) lang_raise(vm, at, WHIT_ERROR_CANCELLED, "interrupted");
}

lang_value *lang_enter(whit_lang *vm, const lang_node *at, const lang_function *function)
{
    uint32_t n = function->n_slots;
    lang_step(vm, at, 1);
    if (vm->depth == LANG_MAX_CALLS || n > LANG_STACK_VALUES - vm->stack_used)
        lang_raise(vm, at, WHIT_ERROR_LIMIT, "calls are nested more than %d deep", LANG_MAX_CALLS);
    if (function->levels > LANG_MAX_DEPTH - vm->levels)
        lang_raise(vm, at, WHIT_ERROR_LIMIT, "calls are nested more than %d levels of expressions deep",
                   LANG_MAX_DEPTH);
    lang_value *frame = vm->stack + vm->stack_used;
    memset(frame, 0, n * sizeof *frame);
    vm->stack_used += n;
    vm->levels += function->levels;
    vm->depth++;
    return frame;
}

void lang_leave(whit_lang *vm, lang_value *frame, const lang_function *function)
{
    for (uint32_t i = 0; i < function->n_slots; i++)
        if (function->slot_types[i] >= WHIT_LANG_VEC) lang_release(vm, frame[i].a);
    vm->stack_used -= function->n_slots;
    vm->levels -= function->levels;
    vm->depth--;
}

/* Frees the arrays that no variable refers to. It is called after a failure, when all other references are void. */
static void sweep(whit_lang *vm)
{
    for (lang_array *array = vm->arrays; array; array = array->next) array->refs = 0;
    for (uint32_t i = 0; i < vm->scope.n_globals; i++)
        if (vm->scope.globals[i].type >= WHIT_LANG_VEC && vm->globals[i].a) vm->globals[i].a->refs++;
    for (lang_array *array = vm->arrays, *next; array; array = next) {
        next = array->next;
        if (!array->refs) lang_destroy(vm, array);
    }
    vm->stack_used = vm->depth = vm->levels = 0;
}

/* ---- loading and running ---------------------------------------------------------------------- */

/* Removes the definitions of a text that failed. Instances of functions that this text was the first to call are also
 * removed: they are unchecked, or refer to removed variables. */
static void undo(whit_lang *vm)
{
    const lang_scope *before = &vm->before;
    if (vm->lent && vm->lent_slot >= before->n_globals) { /* the variable is removed, so its vector is lent no longer */
        lang_array *lent = vm->lent;
        vm->lent = NULL;
        lang_destroy(vm, lent);
    }
    for (uint32_t i = before->n_globals; i < vm->scope.n_globals; i++) vm->globals[i] = (lang_value){0};
    vm->scope.n_globals = before->n_globals;
    vm->scope.functions = before->functions;
    for (lang_function *f = vm->scope.functions; f; f = f->next)
        for (lang_function **instance = &f->instances; *instance;)
            if ((*instance)->text == vm->scope.text)
                *instance = (*instance)->next;
            else
                instance = &(*instance)->next;
    vm->program = NULL;
}

/* Removes variables of blocks of earlier texts, as far as no named variable follows them; nothing can refer to them. */
static void forget_blocks(whit_lang *vm)
{
    lang_scope *scope = &vm->scope;
    for (; scope->n_globals && !scope->globals[scope->n_globals - 1].name[0]; scope->n_globals--) {
        uint32_t last = scope->n_globals - 1;
        if (scope->globals[last].type >= WHIT_LANG_VEC) lang_release(vm, vm->globals[last].a);
        vm->globals[last] = (lang_value){0};
    }
}

/* Frees the tree of the previous text if nothing refers to it. The tree stays if the text added functions, instances of
 * functions or machine code, which need its memory, or if there is a host, which may still refer to texts in it. */
static void forget_tree(whit_lang *vm)
{
    bool stays = vm->scope.functions != vm->before.functions || vm->n_jit_pages != vm->n_jit_before || vm->scope.host;
    for (const lang_function *f = vm->scope.functions; f && !stays; f = f->next)
        stays = f->instances && f->instances->text == vm->scope.text; /* the newest instance is the first in the list */
    if (!stays) lang_arena_rewind(&vm->arena, vm->begin);
    vm->begin = lang_arena_now(&vm->arena);
}

static whit_status load_program(whit_lang *vm, const char *name, const char *text, size_t n_bytes, whit_error *error)
{
    lang_source source = {.name = vm->name, .text = text, .n = n_bytes, .line = 1, .error = error, .place = &vm->place};
    if (vm->first_line) source.line = vm->first_line;
    vm->first_line = 0;
    forget_blocks(vm);
    forget_tree(vm);
    vm->scope.text++;
    vm->before = vm->scope;
    lang_node *program;
    lang_function *functions = NULL;
    snprintf(vm->name, sizeof vm->name, "%s", name);
    vm->place = (whit_lang_place){0, 0};
    vm->program = NULL;
    vm->n_jit_before = vm->n_jit_pages;
    if (n_bytes > WHIT_LANG_MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the program is larger than %zu bytes, the limit", vm->name,
                         WHIT_LANG_MAX_TEXT_BYTES);
    WHIT_TRY(lang_parse(&source, &vm->arena, &program, &functions));
    lang_function *last = functions; /* newer functions precede older ones in the list, and so hide them */
    while (last && last->next) last = last->next;
    if (last) {
        last->next = vm->scope.functions;
        vm->scope.functions = functions;
    }
    whit_status status = lang_check(&source, &vm->arena, &vm->scope, program);
    for (lang_node *s = program->a; s && vm->options.echo; s = s->next)
        if (status == WHIT_OK && s->kind == NODE_EXPRESSION && s->a->type != WHIT_LANG_NONE &&
            s->a->type != WHIT_LANG_TEXT && s->a->type != WHIT_LANG_HOST)
            s->kind = NODE_PRINT;
    if (status == WHIT_OK && vm->options.tier >= WHIT_LANG_CLOSURES && !lang_compile(vm, program))
        status = whit_fail(error, WHIT_ERROR_LIMIT,
                           "%s: the compiled program is too large, or memory ran out: shorten it", vm->name);
    if (status != WHIT_OK) {
        undo(vm);
        return status;
    }
    vm->program = program;
    return WHIT_OK;
}

whit_status whit_lang_load(whit_lang *vm, const char *name, const char *text, size_t n_bytes, whit_error *error)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* the UTF-8 byte order mark, which some editors write */
    vm->arena.failed = false;
    if (n_bytes >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0) {
        text += sizeof mark - 1;
        n_bytes -= sizeof mark - 1;
    }
    whit_status status = load_program(vm, name, text, n_bytes, error);
    if (status != WHIT_OK && vm->arena.failed) status = whit_fail_memory(error, "a program", vm->arena.n_bytes);
    return status;
}

void whit_lang_forget(whit_lang *vm)
{
    if (vm->program) undo(vm);
}

void whit_lang_begin_line(whit_lang *vm, uint32_t line)
{
    vm->first_line = line;
}

/* If the variable that the host's vector was lent to has another array after the run, copies its elements to the host's
 * vector. */
static whit_status give_back(whit_lang *vm, whit_error *error)
{
    const lang_array *held = vm->lent ? vm->globals[vm->lent_slot].a : NULL;
    if (held == vm->lent) return WHIT_OK;
    if (held->n != vm->lent->n)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: '%s' has %u elements at the end, but must keep its %u",
                         vm->name, vm->scope.globals[vm->lent_slot].name, held->n, vm->lent->n);
    memcpy(vm->lent->x, held->x, (size_t)held->n * sizeof(float));
    return WHIT_OK;
}

whit_status whit_lang_run(whit_lang *vm, whit_error *error)
{
    jmp_buf on_failure;
    if (!vm->program)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "there is no program to run: none was loaded, or the last one failed to load or was forgotten");
    vm->place = (whit_lang_place){0, 0};
    vm->steps_left = vm->options.max_steps;
    vm->fuel = 0;
    vm->started_ns = vm->options.max_ms ? whit_thread_cpu_ns() : 0;
    vm->on_failure = &on_failure;
    if (setjmp(on_failure)) {
        sweep(vm);
        if (error) *error = vm->error;
        return vm->status;
    }
    take_fuel(vm);
    if (vm->options.tier >= WHIT_LANG_CLOSURES)
        lang_run_compiled(vm);
    else
        lang_walk(vm, vm->program);
    return give_back(vm, error);
}

/* ---- the host's variables --------------------------------------------------------------------- */

static bool find_global(const whit_lang *vm, const char *name, whit_lang_type type, uint32_t *slot)
{
    for (uint32_t i = vm->scope.n_globals; i-- > 0;)
        if (strcmp(vm->scope.globals[i].name, name) == 0) {
            *slot = i;
            return vm->scope.globals[i].type == type;
        }
    return false;
}

whit_status whit_lang_declare(whit_lang *vm, const char *name, whit_lang_type type, whit_error *error)
{
    if (vm->scope.n_globals == LANG_MAX_GLOBALS || strlen(name) >= sizeof vm->scope.globals[0].name)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "variable '%s': at most %d can be declared, with names of at most %zu bytes", name,
                         LANG_MAX_GLOBALS, sizeof vm->scope.globals[0].name - 1);
    lang_global *global = &vm->scope.globals[vm->scope.n_globals++];
    snprintf(global->name, sizeof global->name, "%s", name);
    global->type = (uint8_t)type;
    global->inner = false;
    return WHIT_OK;
}

static whit_status unknown(const char *name, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "the program has no variable '%s' of this type", name);
}

whit_status whit_lang_set_int(whit_lang *vm, const char *name, int64_t value, whit_error *error)
{
    uint32_t slot;
    if (!find_global(vm, name, WHIT_LANG_INT, &slot)) return unknown(name, error);
    vm->globals[slot].i = value;
    return WHIT_OK;
}

whit_status whit_lang_set_float(whit_lang *vm, const char *name, double value, whit_error *error)
{
    uint32_t slot;
    if (!find_global(vm, name, WHIT_LANG_FLOAT, &slot)) return unknown(name, error);
    vm->globals[slot].f = value;
    return WHIT_OK;
}

whit_status whit_lang_set_vec(whit_lang *vm, const char *name, const float *x, uint32_t n, whit_error *error)
{
    uint32_t slot;
    jmp_buf on_failure;
    static const lang_node nowhere;
    if (!find_global(vm, name, WHIT_LANG_VEC, &slot)) return unknown(name, error);
    if (vm->lent && slot == vm->lent_slot)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "variable '%s' is the host's own vector: change its elements there, or lend another vector",
                         name);
    vm->on_failure = &on_failure;
    vm->fuel = INT64_MAX;
    if (setjmp(on_failure))
        return whit_fail(error, vm->status, "not enough memory for variable '%s' of %u elements", name, n);
    lang_array *array = vm->globals[slot].a;
    if (!array || array->refs > 1 || array->n != n) {
        lang_release(vm, array);
        vm->globals[slot].a = NULL;
        vm->globals[slot].a = array = lang_new_vec(vm, &nowhere, n);
    }
    memcpy(array->x, x, n * sizeof *x);
    return WHIT_OK;
}

whit_status whit_lang_lend_vec(whit_lang *vm, const char *name, float *x, uint32_t n, whit_error *error)
{
    uint32_t slot;
    jmp_buf on_failure;
    static const lang_node nowhere;
    if (!find_global(vm, name, WHIT_LANG_VEC, &slot)) return unknown(name, error);
    if (vm->lent && slot != vm->lent_slot)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "a vector is lent to variable '%s' already, so none can be lent to '%s'",
                         vm->scope.globals[vm->lent_slot].name, name);
    vm->on_failure = &on_failure;
    vm->fuel = INT64_MAX;
    if (setjmp(on_failure)) return whit_fail(error, vm->status, "not enough memory for variable '%s'", name);
    if (!vm->lent) vm->lent = lang_new_head(vm, &nowhere, x, n);
    if (vm->globals[slot].a != vm->lent) lang_release(vm, vm->globals[slot].a);
    vm->globals[slot].a = vm->lent;
    vm->lent_slot = slot;
    vm->lent->x = x;
    vm->lent->n = n;
    vm->lent->refs = 1;
    return WHIT_OK;
}

bool whit_lang_get_int(const whit_lang *vm, const char *name, int64_t *value)
{
    uint32_t slot;
    if (!find_global(vm, name, WHIT_LANG_INT, &slot)) return false;
    *value = vm->globals[slot].i;
    return true;
}

bool whit_lang_get_vec(const whit_lang *vm, const char *name, float **x, uint32_t *n)
{
    uint32_t slot;
    if (!find_global(vm, name, WHIT_LANG_VEC, &slot) || !vm->globals[slot].a) return false;
    *x = vm->globals[slot].a->x;
    *n = vm->globals[slot].a->n;
    return true;
}
