# SPDX-License-Identifier: MIT
# The cache of conversions: what is edited is seen, however the folder is named; what killed
# conversions left goes.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache model
printf '{{ messages[0].content }}' >plain.jinja
${EMULATOR:-} "$BUILD/tests/make_folder" qwen3-0.6b model --layers 1 --divide 8 --vocab 300 --template plain.jinja ||
    complain "no folder"
entries() { find cache -name '*.ndf' | wc -l; }
shard=$(find model -name '*.safetensors' | sort | head -n 1)

for form in model "$shard"; do
    rm -rf cache
    expect 0 whit run -m "$form" -p a -n 8 --temp 0
    cp out before
    [ "$(entries)" = 1 ] || complain "$form: $(entries) entries after a run"
    expect 0 whit run -m "$form" -p a -n 8 --temp 0
    [ "$(entries)" = 1 ] || complain "$form: a second run converts again"
    cp model/config.json config.before
    sed -i 's/"rms_norm_eps": *[^,}]*/"rms_norm_eps": 0.5/' model/config.json
    cmp -s config.before model/config.json && complain "the configuration was not changed"
    expect 0 whit run -m "$form" -p a -n 8 --temp 0
    cmp -s out before && complain "$form: an edited configuration is not seen"
    [ "$(entries)" = 2 ] || complain "$form: $(entries) entries after an edit"
    cp config.before model/config.json
    mkdir model/additional_chat_templates
    echo 'one {{ messages[0].content }}' >model/additional_chat_templates/other.jinja
    expect 0 whit run -m "$form" -p a -n 1
    n=$(entries)
    echo 'another {{ messages[0].content }}' >model/additional_chat_templates/other.jinja
    expect 0 whit run -m "$form" -p a -n 1
    [ "$(entries)" = $((n + 1)) ] || complain "$form: an edited template is not seen"
    rm -r model/additional_chat_templates
done

# ---- a whole GGUF file with the name of one of three is no set: it is converted once
tiny whole-00001-of-00003.gguf 1
rm -rf cache
expect 0 whit run whole-00001-of-00003.gguf a -n 4 --temp 0
grep -q 'could not be written' err && complain "a file with the name of a part: $(cat err)"
[ "$(entries)" = 1 ] || complain "a file with the name of a part: $(entries) entries"
expect 0 whit run whole-00001-of-00003.gguf a -n 4 --temp 0
grep -q 'converted' err && complain "a second run: $(cat err)"
[ "$(entries)" = 1 ] || complain "a file with the name of a part is converted again"

# ---- leftovers of killed conversions, of this source and of others
rm -rf cache
expect 0 whit run -m model -p a -n 1
entry=$(find cache -name '*.ndf')
rm "$entry"
head -c 100000 /dev/zero >"$entry.tmp-abc9kq"
head -c 100000 /dev/zero >"$(dirname "$entry")/0123456789012345678901234567890123456789.ndf.tmp-zzzzb0"
expect 0 whit run -m model -p a -n 1
[ -z "$(find cache -name '*.tmp-*')" ] || complain "leftovers stay: $(find cache -name '*.tmp-*')"

# ---- conversions killed again and again: the next one works and leaves nothing
for i in 1 2 3 4 5 6 7 8 9 10; do
    rm -f cache/whit/*.ndf
    (
        ${EMULATOR:-} "$WHIT" run -m model -p a -n 1 >/dev/null 2>&1 &
        pid=$!
        sleep "0.0$i"
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
    )
    (
        ${EMULATOR:-} "$WHIT" convert model -o beside.ndf >/dev/null 2>&1 &
        pid=$!
        sleep "0.0$i"
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
    )
done
expect 0 whit run -m model -p a -n 1
expect 0 whit convert model -o beside.ndf
[ -z "$(find . -name '*.tmp-*')" ] || complain "killed conversions leave $(find . -name '*.tmp-*')"

# ---- links and devices as output
ln -sf beside.ndf link.ndf
expect 0 whit convert model -o link.ndf
[ -L link.ndf ] || complain "-o replaced a link"
expect 0 whit verify link.ndf
expect 0 whit convert model -o /dev/null
[ -c /dev/null ] || complain "-o replaced /dev/null"
rm -rf model cache beside.ndf link.ndf
finish
