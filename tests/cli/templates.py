# SPDX-License-Identifier: MIT
"""What each named template makes of a system message, a question, an answer and a question."""
import json
import re
import subprocess
import sys

whit, source = sys.argv[1:]
MESSAGES = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q1"}, {"role": "assistant", "content": "A1"},
            {"role": "user", "content": "Q2"}]
EXPECTED = {
    "chatml": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\nA1<|im_end|>\n"
              "<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\n",
    "llama2": "<B>[INST] <<SYS>>\nS\n<</SYS>>\n\nQ1 [/INST] A1 <E><B>[INST] Q2 [/INST]",
    "llama3": "<B><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nQ1<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\nA1<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nQ2<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "llama4": "<B><|header_start|>system<|header_end|>\n\nS<|eot|><|header_start|>user<|header_end|>\n\nQ1<|eot|>"
              "<|header_start|>assistant<|header_end|>\n\nA1<|eot|><|header_start|>user<|header_end|>\n\nQ2<|eot|>"
              "<|header_start|>assistant<|header_end|>\n\n",
    "mistral-v1": "<B> [INST] S\n\nQ1 [/INST] A1<E> [INST] Q2 [/INST]",
    "mistral-v3": "<B>[INST] S\n\nQ1[/INST] A1<E>[INST] Q2[/INST]",
    "mistral-v3-tekken": "<B>[INST]S\n\nQ1[/INST]A1<E>[INST]Q2[/INST]",
    "mistral-v7": "<B>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] Q1[/INST] A1<E>[INST] Q2[/INST]",
    "mistral-v7-tekken": "<B>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]Q1[/INST]A1<E>[INST]Q2[/INST]",
    "phi3": "<|system|>\nS<|end|>\n<|user|>\nQ1<|end|>\n<|assistant|>\nA1<|end|>\n<|user|>\nQ2<|end|>\n<|assistant|>\n",
    "phi4": "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>Q1<|im_end|><|im_start|>assistant<|im_sep|>A1<|im_end|>"
            "<|im_start|>user<|im_sep|>Q2<|im_end|><|im_start|>assistant<|im_sep|>",
    "falcon3": "<|system|>\nS\n<|user|>\nQ1\n<|assistant|>\nA1<E>\n<|user|>\nQ2\n<|assistant|>\n",
    "zephyr": "<|system|>\nS<E>\n<|user|>\nQ1<E>\n<|assistant|>\nA1<E>\n<|user|>\nQ2<E>\n<|assistant|>\n",
    "monarch": "<B>system\nS<E>\n<B>user\nQ1<E>\n<B>assistant\nA1<E>\n<B>user\nQ2<E>\n<B>assistant\n",
    "gemma": "<B><start_of_turn>user\nS\n\nQ1<end_of_turn>\n<start_of_turn>model\nA1<end_of_turn>\n<start_of_turn>user\nQ2<end_of_turn>\n"
             "<start_of_turn>model\n",
    "openchat": "<B>S<|end_of_turn|>GPT4 Correct User: Q1<|end_of_turn|>GPT4 Correct Assistant: A1<|end_of_turn|>"
                "GPT4 Correct User: Q2<|end_of_turn|>GPT4 Correct Assistant:",
    "vicuna": "S\n\nUSER: Q1\nASSISTANT: A1<E>\nUSER: Q2\nASSISTANT:",
    "deepseek": "S### Instruction:\nQ1\n### Response:\nA1\n<|EOT|>\n### Instruction:\nQ2\n### Response:\n",
    "deepseek2": "S\n\nUser: Q1\n\nAssistant: A1<E>User: Q2\n\nAssistant:",
    "deepseek3": "<B>S\n\n<｜User｜>Q1<｜Assistant｜>A1<E><｜User｜>Q2<｜Assistant｜>",
    "command-r": "<B><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Q1<|END_OF_TURN_TOKEN|>"
                 "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A1<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Q2<|END_OF_TURN_TOKEN|>"
                 "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "chatglm4": "[gMASK]<sop><|system|>\nS<|user|>\nQ1<|assistant|>\nA1<|user|>\nQ2<|assistant|>\n",
    "granite": "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Q1<|end_of_text|>\n"
               "<|start_of_role|>assistant<|end_of_role|>A1<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Q2<|end_of_text|>\n"
               "<|start_of_role|>assistant<|end_of_role|>",
    "exaone3": "[|system|]S[|endofturn|]\n[|user|]Q1\n[|assistant|]A1[|endofturn|]\n[|user|]Q2\n[|assistant|]",
    "gpt-oss": "<|start|>system<|message|>S<|end|><|start|>user<|message|>Q1<|end|><|start|>assistant<|message|>A1<|end|>"
               "<|start|>user<|message|>Q2<|end|><|start|>assistant",
    "kimi-k2": "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>Q1<|im_end|>"
               "<|im_assistant|>assistant<|im_middle|>A1<|im_end|><|im_user|>user<|im_middle|>Q2<|im_end|><|im_assistant|>assistant<|im_middle|>",
    "megrez": "<|role_start|>system<|role_end|>S<|turn_end|><|role_start|>user<|role_end|>Q1<|turn_end|>"
              "<|role_start|>assistant<|role_end|>A1<|turn_end|><|role_start|>user<|role_end|>Q2<|turn_end|><|role_start|>assistant<|role_end|>",
    "rwkv-world": "System: S\n\nUser: Q1\n\nAssistant: A1\n\nUser: Q2\n\nAssistant:",
}
failed = 0
names = re.findall(r'^    \{"([a-z0-9-]+)"', open(source, encoding="utf-8").read(), re.M)
if sorted(names) != sorted(EXPECTED):
    print("FAILED: other names:", set(names) ^ set(EXPECTED))
    failed = 1
for name, wanted in EXPECTED.items():
    for messages, expected in ((MESSAGES, wanted), (MESSAGES[1:2], None)):
        line = {"messages": messages, "add_generation_prompt": True, "bos_token": "<B>", "eos_token": "<E>"}
        done = subprocess.run([whit, "template", "--chat-template", name], input=json.dumps(line) + "\n", capture_output=True, text=True)
        text = json.loads(done.stdout).get("text") if done.returncode == 0 else None
        if text is None or (expected is not None and text != expected) or "Q1" not in text or (expected is None and "S\n" in text):
            print(f"FAILED: {name}: {text!r}\n    wanted: {expected!r} {done.stdout} {done.stderr}")
            failed = 1
sys.exit(failed)
