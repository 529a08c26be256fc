# SPDX-License-Identifier: MIT
#   same.sh CONVERSE    the same answers from whit chat, the server and the library
. "$SOURCE/tests/server/lib.sh"
export XDG_STATE_HOME=$PWD/state
tiny plain.gguf 1 chat
# A template with tools that refuses system messages after the first message.
cat >tools.jinja <<'END'
{%- if tools %}{{- '<|im_start|>system\n' }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{{- '\nAnswer with <tool_call><|im_end|>\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{- raise_exception('system messages come first') }}{%- endif %}
{%- if message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + ('<think>' + message.reasoning_content + '</think>' if message.reasoning_content else '') + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{- '<tool_call>\n' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\n' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
END
rm -rf folder
# shellcheck disable=SC2086 # the emulator is a command with arguments
${EMULATOR:-} "$BUILD/tests/make_folder" qwen3-0.6b folder --layers 1 --divide 8 --vocab 300 --template tools.jinja >/dev/null ||
    complain "no model"
python3 "$SOURCE/tests/server/same.py" "$1" plain.gguf folder || failed=1
exit $failed
