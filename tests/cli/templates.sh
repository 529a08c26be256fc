# SPDX-License-Identifier: MIT
# Chat templates by name: each renders a conversation as the models of its name were trained.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
python3 "$SOURCE/tests/cli/templates.py" "$WHIT" "$SOURCE/src/cli/templates.c" || failed=1
printf 'BEGIN {{ messages[0].content }}' >own.jinja
for given in own.jinja 'BEGIN {{ messages[0].content }}'; do
    printf '{"messages": [{"role": "user", "content": "x"}]}\n' | whit template --chat-template "$given" >out 2>err
    grep -q 'BEGIN x' out || complain "--chat-template $given: $(cat out err)"
done
printf '{}\n' | whit template --chat-template nope >out 2>err && complain "an unknown name is taken"
grep -q 'neither a file nor.*chatml, llama2.*rwkv-world' err || complain "the names: $(cat err)"
finish
