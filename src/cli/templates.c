/* SPDX-License-Identifier: MIT */
#include "cli/templates.h"
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* EACH writes `text` for each message m; ANSWER writes `text` if the model's answer is to follow. A line feed directly
 * after "%}" is dropped (trim_blocks), so where the prompt needs one there, the template has it as an expression. */
#define EACH(text)   "{% for m in messages %}" text "{% endfor %}"
#define ANSWER(text) "{% if add_generation_prompt %}" text "{% endif %}"
/* Collects the text of all system messages, each followed by the separator, in ns.system. USER writes it before the
 * text of the first user message. For templates that have no place for a system message. */
#define MERGED(separator)                                                                                              \
    "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = "         \
    "m.content + '" separator "' %}{% endif %}{% endfor %}"
#define USER "{{ ns.system }}{{ m.content }}{% set ns.system = '' %}"

/* The versions of Mistral's template differ in blanks. inside: opening mark of a user message, with its blanks; after:
 * blank before the model's text; end: closing mark of a user message. */
#define MISTRAL(inside, after, end)                                                                                    \
    MERGED("\\n\\n")                                                                                                   \
    "{{ bos_token }}" EACH("{% if m.role == 'user' %}" inside                                                          \
                           "{{ ns.system }}{{ m.content }}{% set ns.system = '' %}" end                                \
                           "{% elif m.role == 'assistant' %}" after "{{ m.content }}{{ eos_token }}{% endif %}")
#define MISTRAL_7(blank)                                                                                               \
    "{{ bos_token }}" EACH("{% if m.role == 'system' %}[SYSTEM_PROMPT]" blank                                          \
                           "{{ m.content }}[/SYSTEM_PROMPT]{% elif m.role == 'user' %}[INST]" blank                    \
                           "{{ m.content }}[/INST]{% else %}" blank "{{ m.content }}{{ eos_token }}{% endif %}")

static const struct {
    const char *name, *source;
} templates[] = {
    {"chatml", EACH("<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n") ANSWER("<|im_start|>assistant\n")},
    {"llama2",
     MERGED("") "{% if ns.system %}{% set ns.system = '<<SYS>>\\n' + ns.system + '\\n<</SYS>>\\n\\n' %}{% endif "
                "%}" EACH("{% if m.role == 'user' %}{{ bos_token }}[INST] " USER
                          " [/INST]{% elif m.role == 'assistant' %} {{ m.content }} {{ eos_token }}{% endif %}")},
    {"llama3",
     "{{ bos_token }}" EACH("<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim "
                            "}}<|eot_id|>") ANSWER("<|start_header_id|>assistant<|end_header_id|>\n\n")},
    {"llama4",
     "{{ bos_token }}" EACH("<|header_start|>{{ m.role }}<|header_end|>\n\n{{ m.content | trim }}<|eot|>")
         ANSWER("<|header_start|>assistant<|header_end|>\n\n")},
    {"mistral-v1", MISTRAL(" [INST] ", " ", " [/INST]")},
    {"mistral-v3", MISTRAL("[INST] ", " ", "[/INST]")},
    {"mistral-v3-tekken", MISTRAL("[INST]", "", "[/INST]")},
    {"mistral-v7", MISTRAL_7(" ")},
    {"mistral-v7-tekken", MISTRAL_7("")},
    {"phi3", EACH("<|{{ m.role }}|>\n{{ m.content }}<|end|>\n") ANSWER("<|assistant|>\n")},
    {"phi4",
     EACH("<|im_start|>{{ m.role }}<|im_sep|>{{ m.content }}<|im_end|>") ANSWER("<|im_start|>assistant<|im_sep|>")},
    {"falcon3",
     EACH("<|{{ m.role }}|>\n{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n' }}")
         ANSWER("<|assistant|>\n")},
    {"zephyr", EACH("<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n") ANSWER("<|assistant|>\n")},
    {"monarch",
     EACH("{{ bos_token }}{{ m.role }}\n{{ m.content }}{{ eos_token }}\n") ANSWER("{{ bos_token }}assistant\n")},
    {"gemma",
     MERGED("\\n\\n") "{{ bos_token }}" EACH(
         "{% if m.role == 'user' %}<start_of_turn>user\n" USER
         "<end_of_turn>\n{% elif m.role == 'assistant' %}<start_of_turn>model\n{{ m.content | trim "
         "}}<end_of_turn>\n{% endif %}") ANSWER("<start_of_turn>model\n")},
    {"openchat",
     "{{ bos_token }}" EACH(
         "{% if m.role == 'system' %}{{ m.content }}{% else %}GPT4 Correct {{ m.role | title }}: {{ m.content "
         "}}{% endif %}<|end_of_turn|>") ANSWER("GPT4 Correct Assistant:")},
    {"vicuna",
     EACH("{% if m.role == 'system' %}{{ m.content }}\n\n{% elif m.role == 'user' %}USER: {{ m.content }}\n{% "
          "else %}ASSISTANT: {{ m.content }}{{ eos_token }}\n{% endif %}") ANSWER("ASSISTANT:")},
    {"deepseek",
     EACH("{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}### Instruction:\n{{ "
          "m.content }}\n{% else %}### Response:\n{{ m.content }}\n<|EOT|>\n{% endif %}") ANSWER("### Response:\n")},
    {"deepseek2",
     EACH("{% if m.role == 'system' %}{{ m.content }}\n\n{% elif m.role == 'user' %}User: {{ m.content "
          "}}\n\n{% else %}Assistant: {{ m.content }}{{ eos_token }}{% endif %}") ANSWER("Assistant:")},
    {"deepseek3",
     "{{ bos_token }}" EACH(
         "{% if m.role == 'system' %}{{ m.content }}\n\n{% elif m.role == 'user' %}<\xef\xbd\x9cUser\xef\xbd\x9c>{{ "
         "m.content }}{% else %}<\xef\xbd\x9c"
         "Assistant\xef\xbd\x9c>{{ m.content }}{{ eos_token }}{% endif %}") ANSWER("<\xef\xbd\x9c"
                                                                                   "Assistant\xef\xbd\x9c>")},
    {"command-r",
     "{{ bos_token }}" EACH("<|START_OF_TURN_TOKEN|>{% if m.role == 'system' %}<|SYSTEM_TOKEN|>{% elif m.role == "
                            "'user' %}<|USER_TOKEN|>{% "
                            "else %}<|CHATBOT_TOKEN|>{% endif %}{{ m.content }}<|END_OF_TURN_TOKEN|>")
         ANSWER("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>")},
    {"chatglm4", "[gMASK]<sop>" EACH("<|{{ m.role }}|>\n{{ m.content }}") ANSWER("<|assistant|>\n")},
    {"granite",
     EACH("<|start_of_role|>{{ m.role }}<|end_of_role|>{{ m.content }}<|end_of_text|>\n")
         ANSWER("<|start_of_role|>assistant<|end_of_role|>")},
    {"exaone3",
     EACH("[|{{ m.role }}|]{{ m.content | trim }}{% if m.role != 'user' %}[|endofturn|]{% endif %}{{ '\\n' }}")
         ANSWER("[|assistant|]")},
    {"gpt-oss", EACH("<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>") ANSWER("<|start|>assistant")},
    {"kimi-k2",
     EACH("<|im_{{ m.role }}|>{{ m.role }}<|im_middle|>{{ m.content }}<|im_end|>")
         ANSWER("<|im_assistant|>assistant<|im_middle|>")},
    {"megrez",
     EACH("<|role_start|>{{ m.role }}<|role_end|>{{ m.content }}<|turn_end|>")
         ANSWER("<|role_start|>assistant<|role_end|>")},
    {"rwkv-world",
     EACH("{% if m.role == 'system' %}System: {% elif m.role == 'user' %}User: {% else %}Assistant: {% "
          "endif %}{{ m.content | trim }}\n\n") ANSWER("Assistant:")},
};
enum { N_TEMPLATES = sizeof templates / sizeof templates[0] };

static int copy_text(cli_call *call, const char *source, cli_text *text)
{
    *text = (cli_text){strdup(source), strlen(source)};
    return text->data ? CLI_OK : cli_fail(call, CLI_LIMIT, "not enough memory for a chat template");
}

int cli_read_template(cli_call *call, const char *given, cli_text *text)
{
    char names[600];
    size_t n = 0;
    if (!strcmp(given, "-") || whit_path_exists(given)) return cli_read_text(call, given, text);
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        if (!strcmp(templates[i].name, given)) return copy_text(call, templates[i].source, text);
        if (n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", templates[i].name);
    }
    if (strstr(given, "{%") || strstr(given, "{{")) return copy_text(call, given, text);
    return cli_fail(call, CLI_USAGE, "--chat-template %.100s: neither a file nor a template's name: %s", given, names);
}
