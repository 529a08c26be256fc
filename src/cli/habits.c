/* SPDX-License-Identifier: MIT */
#include "cli/habits.h"

#include <string.h>

#include "cli/cli.h"

#define CPU    "whit runs on the CPU"
#define MAPPED "model files are mapped into memory, and read once"
#define EVERY  ""
#define DRAFT  "--draft mtp or FILE chooses the model that guesses ahead, --spec N how many tokens"
#define TEXT   "whit reads text models only"
#define ROPE   "positions are as the model file says, and are not stretched here"

static const cli_habit options[] = {
    /* Options that select the model. */
    {"-hff, --hf-file, -mu, --model-url, -dr, --docker-repo", CLI_HABIT_VALUE, NULL,
     "'whit pull OWNER/NAME[:FILE]' downloads a model, then 'whit run OWNER/NAME[:FILE]' runs it"},
    {"-hft, --hf-token", CLI_HABIT_VALUE, NULL, "set HF_TOKEN, or give it to 'whit pull --token'"},
    {"--offline, --insecure", CLI_HABIT_FLAG, EVERY, "only 'whit pull' uses the network"},
    /* Options of chats. */
    {"-cnv, --conversation, -i, --interactive, -if, --interactive-first", CLI_HABIT_FLAG, "chat",
     "'whit chat MODEL' is a conversation"},
    {"-st, --single-turn", CLI_HABIT_FLAG, "run", "'whit run MODEL \"TEXT\"' answers once"},
    {"-no-cnv, --no-conversation, --raw", CLI_HABIT_FLAG, NULL, "'whit run MODEL \"TEXT\" --raw' continues a text"},
    {"-sysf, --system-prompt-file", CLI_HABIT_VALUE, NULL, "-sys takes the text itself: -sys \"$(cat FILE)\""},
    {"--system", CLI_HABIT_VALUE, NULL, "-sys TEXT sets the system message"},
    {"--chat-template-kwargs, -rea, --reasoning, --reasoning-budget, --reasoning-format", CLI_HABIT_VALUE, NULL,
     "'whit chat --think on|off' asks a reasoning model to think first, or not"},
    {"--think, --hidethinking, --nothink", CLI_HABIT_MAYBE, NULL,
     "'whit chat --think on|off' asks a reasoning model to think first, or not"},
    {"--in-prefix, --in-suffix, --chat-template-prefix", CLI_HABIT_VALUE, NULL,
     "the chat template defines the text around a message; --template FILE gives another template"},
    {"--in-prefix-bos", CLI_HABIT_FLAG, EVERY, "the chat template defines where that token goes"},
    {"-mli, --multiline-input", CLI_HABIT_FLAG, NULL, "\"\"\" begins and ends a message of several lines"},
    {"--prompt-cache, --slot-save-path, --session", CLI_HABIT_VALUE, NULL,
     "'whit run' and 'whit chat' keep the tokens and their cache with --session FILE; in a chat /save FILE keeps the "
     "messages"},
    {"--prompt-cache-all, --prompt-cache-ro", CLI_HABIT_FLAG, NULL,
     "'whit run' and 'whit chat' keep the tokens and their cache with --session FILE; in a chat /save FILE keeps the "
     "messages"},
    {"--keep", CLI_HABIT_VALUE, EVERY, "a chat keeps its system message and drops the oldest turns"},
    {"--verbose", CLI_HABIT_FLAG, "run", "'whit chat --stats' shows tokens per second"},
    {"--keepalive", CLI_HABIT_VALUE, EVERY, "whit opens a model in a moment and keeps nothing in the background"},
    {"--format", CLI_HABIT_VALUE, NULL,
     "the model answers in JSON by --json-schema FILE, or -j '{\"type\": \"object\"}' for any object"},
    {"--text", CLI_HABIT_VALUE, NULL,
     "for this command, -f FILE names the text; train, distill and tune learn from --text"},
    /* Options of coding agents. */
    {"--auto, --auto-approve, --yes-always, --yolo, --full-auto, --dangerously-skip-permissions", CLI_HABIT_FLAG, NULL,
     "'whit agent TASK --allow write' writes inside the project without a question, and 'whit agent undo' takes it "
     "back"},
    {"--continue, --restore-chat-history", CLI_HABIT_FLAG, NULL,
     "'whit agent --resume' continues the project's last conversation"},
    /* Options that select devices. */
    {"-ngl, --gpu-layers, --n-gpu-layers, -ngld, --gpu-layers-draft, -mg, --main-gpu, -sm, --split-mode, -ts, "
     "--tensor-split, -dev, --device, -ot, --override-tensor, -ncmoe, --n-cpu-moe, -fit, --fit",
     CLI_HABIT_VALUE, EVERY, CPU},
    {"--cpu-moe, -cmoe, -nkvo, --no-kv-offload, -nopo, --no-op-offload, --list-devices", CLI_HABIT_FLAG, EVERY, CPU},
    {"-tb, --threads-batch", CLI_HABIT_VALUE, EVERY, "-t sets the threads for all of the work"},
    {"-td, --threads-draft, -tbd, --threads-batch-draft", CLI_HABIT_VALUE, EVERY,
     "-t sets the threads for all of the work"},
    {"-C, --cpu-mask, -Cr, --cpu-range, --cpu-strict, --numa, --prio, --poll", CLI_HABIT_VALUE, EVERY,
     "whit places each thread on its own core; taskset and numactl limit the cores"},
    {"--mlock", CLI_HABIT_FLAG, EVERY, MAPPED},
    {"--mmap, --no-mmap, -dio, --direct-io, --no-repack, --no-host", CLI_HABIT_FLAG, EVERY, MAPPED},
    /* Options that control the computation. */
    {"-fa, --flash-attn, --flash-attention", CLI_HABIT_MAYBE, EVERY, "whit chooses itself how attention is computed"},
    {"-b, --batch-size", CLI_HABIT_VALUE, EVERY, "-ub sets how many tokens of a prompt are computed at once"},
    {"-ctk, --cache-type-k, -ctv, --cache-type-v", CLI_HABIT_VALUE, NULL,
     "--kv sets the type of the KV cache, of keys and values together: f16, f32, i8 (in place of q8_0), k4v2, k2v2 or "
     "bitmap"},
    {"-ctkd, --cache-type-k-draft, -ctvd, --cache-type-v-draft, -md, --model-draft, --draft-max, --draft-min, "
     "--draft-p-min, -hfd, --hf-repo-draft, -cd, --ctx-size-draft",
     CLI_HABIT_VALUE, NULL, DRAFT},
    {"-np, --parallel, -ns, --sequences", CLI_HABIT_VALUE, NULL, "this command processes one text at a time"},
    {"-cb, --cont-batching, -nocb, --no-cont-batching", CLI_HABIT_FLAG, EVERY,
     "this command processes one text at a time"},
    {"-dt, --defrag-thold", CLI_HABIT_VALUE, EVERY, "the KV cache consists of blocks and needs no defragmentation"},
    {"-kvu, --kv-unified, --swa-full", CLI_HABIT_FLAG, EVERY,
     "the KV cache consists of blocks and needs no defragmentation"},
    {"--no-context-shift", CLI_HABIT_FLAG, EVERY, "without --endless whit never shifts the context"},
    {"--no-warmup, --warmup", CLI_HABIT_FLAG, EVERY, "a model needs no warm-up"},
    {"--context-shift", CLI_HABIT_FLAG, "chat", "a text ends when the context is full; -c sets a larger one"},
    {"--rope-scaling, --rope-scale, --rope-freq-base, --rope-freq-scale, --yarn-orig-ctx, --yarn-ext-factor, "
     "--yarn-attn-factor, --yarn-beta-slow, --yarn-beta-fast, -gan, --grp-attn-n, -gaw, --grp-attn-w",
     CLI_HABIT_VALUE, NULL, ROPE},
    {"--override-kv", CLI_HABIT_VALUE, NULL,
     "'whit convert FILE --override-kv KEY=TYPE:VALUE -o OUT.ndf' makes a model file with other metadata"},
    {"--check-tensors", CLI_HABIT_FLAG, NULL, "'whit verify FILE' checks every byte"},
    {"--lora", CLI_HABIT_VALUE, NULL, "--adapter FILE[:SCALE] mounts an adapter; 'whit convert' makes one from a LoRA"},
    {"--lora-scaled, --lora-base, --control-vector", CLI_HABIT_VALUE, NULL, "--adapter FILE[:SCALE] mounts an adapter"},
    {"-mm, --mmproj, --mmproj-url, --image, --audio, --video", CLI_HABIT_VALUE, NULL, TEXT},
    {"--embedding, --embeddings, --rerank, --reranking", CLI_HABIT_FLAG, NULL,
     "'whit embed' and 'whit rerank' do this; 'whit serve' answers /v1/embeddings and /v1/rerank"},
    {"--pooling, --embd-normalize, --embd-output-format", CLI_HABIT_VALUE, NULL,
     "'whit embed' and 'whit rerank' do this; 'whit serve' answers /v1/embeddings and /v1/rerank"},
    /* Options that control sampling. */
    {"--samplers, --sampling-seq, --sampler-seq", CLI_HABIT_VALUE, NULL,
     "the samplers' order is fixed; each has an option that turns it on or off"},
    {"--dry-sequence-breaker", CLI_HABIT_VALUE, NULL, "DRY breaks sequences at line feeds, colons, quotes and stars"},
    {"--adaptive-target, --adaptive-decay", CLI_HABIT_VALUE, NULL,
     "whit does not have this sampler; 'whit run --help' lists the samplers"},
    {"--grammar, --grammar-file, -j, --json-schema, -jf, --json-schema-file", CLI_HABIT_VALUE, NULL,
     "'whit run', 'whit chat' and requests to 'whit serve' constrain an answer by a grammar or a schema"},
    /* Options that control the output. */
    {"--jinja, --no-jinja", CLI_HABIT_FLAG, EVERY, "whit always runs chat templates, as Jinja"},
    {"-e, --escape", CLI_HABIT_FLAG, NULL, "a prompt is used unchanged: write the line feed itself, or use -f FILE"},
    {"--no-escape", CLI_HABIT_FLAG, EVERY, "a prompt is used unchanged"},
    {"-co, --color, --colors", CLI_HABIT_MAYBE, EVERY, "only thinking is coloured, and only on a terminal"},
    {"--simple-io, --no-perf, --perf, --show-timings, --no-show-timings, --log-disable, --log-timestamps, "
     "--log-prefix, --log-colors, -v, --log-verbose, --verbose-prompt, -sp, --special, --display-prompt",
     CLI_HABIT_FLAG, EVERY, "text goes to stdout, and statistics to stderr"},
    {"-lv, --verbosity, --log-verbosity, --log-file", CLI_HABIT_VALUE, EVERY,
     "text goes to stdout, and statistics to stderr"},
    {"--nowordwrap", CLI_HABIT_FLAG, "run", "'whit chat --no-wrap' leaves long lines to the terminal"},
    /* Options of servers. */
    {"--host, --port, --api-key, --api-key-file, -a, --alias, --path", CLI_HABIT_VALUE, NULL,
     "this is an option of 'whit serve'"},
    {"--metrics", CLI_HABIT_FLAG, "serve", "/metrics is always served"},
    {"--slots, --no-slots, --props", CLI_HABIT_FLAG, "serve", "/slots and /props are always served"},
    {"--no-webui, --webui", CLI_HABIT_FLAG, "serve",
     "the chat page at / is part of the program, and asks for a key like any client"},
    {"--ssl-key-file, --ssl-cert-file", CLI_HABIT_VALUE, NULL,
     "TLS is a reverse proxy's work: docs/use/server.md has a recipe"},
    {"--usage", CLI_HABIT_FLAG, NULL, "--help shows the options"},
    {0},
};

static const struct {
    const char *words, *line;
} verbs[] = {
    {"cli, llama-cli, generate, complete, completion, continue", "'whit run MODEL \"TEXT\"' continues a text"},
    {"interactive, talk, conversation", "'whit chat MODEL' is a conversation"},
    {"ask, prompt, query, question, answer",
     "'whit run MODEL \"QUESTION\"' answers once, 'whit chat MODEL' is a conversation"},
    {"gui, web, webui, ui, page, browser", "'whit serve -m MODEL' has a chat page: open the address that it prints"},
    {"code, coder, aider, task", "'whit agent \"TASK\"' lets a model change a project, 'whit edit FILE' is the editor"},
    {"vi, vim, nano, ide, editor, open", "'whit edit FILE' is the editor"},
    {"config, settings, set, env",
     "options are given to each command ('whit help COMMAND'); the editor and the agent read "
     "whit/edit.conf and whit/agent.json below ~/.config"},
    {"stats, metrics, speed, perf",
     "'whit bench' measures speed, 'whit inspect MODEL' shows a model's contents, and a server has /metrics"},
    {"diff, undo, log", "'whit agent log' lists an agent's turns, 'whit agent undo' takes one back"},
    {"show, info, describe, gguf, gguf-dump", "'whit inspect MODEL' shows a model's contents"},
    {"ls, models, tags", "'whit list' shows the models that are here"},
    {"ps, stop, start, status, load, unload",
     "nothing runs in the background: a model is open while a command runs, and closed when it ends"},
    {"remove, delete, del, uninstall", "'whit rm NAME' removes a model"},
    {"download, get, fetch, install, add", "'whit pull OWNER/NAME' downloads a model"},
    {"search, find", "browse models in a web browser; 'whit pull' takes the address that it shows"},
    {"create, import",
     "'whit convert FILE -o OUT.ndf' makes a model file of a GGUF file or a folder; 'whit chat' has "
     "options for a Modelfile's other settings"},
    {"quantize, quantise, llama-quantize",
     "'whit export FILE --type q4_k -o OUT.gguf' rounds a model to a type of GGUF files; 'whit compress FILE --codec "
     "q2 "
     "--calib TEXT -o OUT.ndf' rounds a float model to 1, 1.58 or 2 bits; 'whit convert FILE -o OUT.ndf' keeps the "
     "codes of a low-bit one"},
    {"cp, copy, mv, rename", "models are plain files: cp copies them, and -m takes a path"},
    {"push, publish, signin, signout, login", "whit publishes nothing; 'whit pull' reads the token in HF_TOKEN"},
    {"finetune, fine-tune, lora", "'whit tune -m MODEL --text FILE -o OUT.ndf' trains an adapter"},
    {"export-lora", "'whit merge' bakes an adapter into a model"},
    {"imatrix, llama-imatrix", "whit makes no importance matrix; 'whit compress --imatrix FILE' uses one"},
    {"embedding, embeddings, vectors", "'whit embed MODEL' turns texts into vectors"},
    {"reranker, score", "'whit rerank MODEL QUERY' orders texts"},
    {"benchmark, llama-bench, batched-bench", "'whit bench' measures how fast a model is"},
    {"ppl, evaluate, llama-perplexity", "'whit perplexity MODEL -f TEXT' measures a model on a text"},
    {"tokenise, encode, detokenize, decode", "'whit tokenize' turns a text into ids; see its --jsonl"},
    {"gguf-split, split, unsplit", "a split GGUF file is read by its first part"},
    {"check, validate, hash", "'whit verify FILE' checks every byte"},
    {"version, about", "'whit --version' prints the version"},
    {"update, upgrade", "update whit where you got it: git pull, then make install"},
    {"man, manual, usage, commands", "'whit help' lists the commands, 'whit help COMMAND' explains one"},
    {"server, llama-server, api, daemon", "'whit serve -m MODEL' answers requests over HTTP"},
    {0},
};

static bool has_name(const char *names, const char *given, size_t n_given)
{
    char name[32];
    for (const char *at = names; (at = cli_option_name(at, name, sizeof name));)
        if (strlen(name) == n_given && memcmp(name, given, n_given) == 0) return true;
    return false;
}

const cli_habit *cli_habit_option(const char *given, size_t n_given)
{
    for (const cli_habit *habit = options; habit->names; habit++)
        if (has_name(habit->names, given, n_given)) return habit;
    return NULL;
}

bool cli_habit_is_needless(const cli_habit *habit, const char *verb)
{
    return habit->needless_in && (!habit->needless_in[0] || strcmp(habit->needless_in, verb) == 0);
}

bool cli_habit_takes(const cli_habit *habit, const char *text)
{
    static const char *const words[] = {"on", "off", "auto", "true", "false", "always", "never"};
    if (habit->value != CLI_HABIT_MAYBE) return habit->value == CLI_HABIT_VALUE;
    if (text[0] >= '0' && text[0] <= '9' && !text[1]) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], text) == 0) return true;
    return false;
}

const char *cli_habit_verb(const char *word)
{
    for (size_t i = 0; verbs[i].words; i++)
        if (has_name(verbs[i].words, word, strlen(word))) return verbs[i].line;
    return NULL;
}
