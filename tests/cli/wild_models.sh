# SPDX-License-Identifier: MIT
# Files and folders that people download and that do not run: inspect and run say why, and what to do, in one line.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache wild
python3 "$SOURCE/tests/cli/wild_models.py" wild >rows || complain "no stand-ins"
[ "$(wc -l <rows)" -ge 60 ] || complain "only $(wc -l <rows) rows"
while IFS='|' read -r name words; do
    for verb in inspect run; do
        # shellcheck disable=SC2086 # the emulator is a command with arguments
        ${EMULATOR:-} "$WHIT" $verb "wild/$name" $([ $verb = run ] && echo hello) >out 2>err </dev/null
        status=$?
        case $status in 2 | 3 | 4 | 5 | 6) ;; *) complain "$verb $name ended with $status" ;; esac
        [ -s out ] && complain "$verb $name wrote to stdout"
        [ "$(wc -l <err)" = 1 ] || complain "$verb $name: $(cat err)"
        [ "$(wc -c <err)" -le 520 ] || complain "$verb $name: a long line"
        grep -qF -- "wild/${name%-00001-of-*}" err || complain "$verb $name is not named: $(cat err)"
        (
            IFS=';'
            for word in $words; do grep -qF -- "$word" err || exit 1; done
        ) || complain "$verb $name lacks one of '$words': $(cat err)"
    done
done <rows
[ -z "$(find cache -name '*.ndf' 2>/dev/null)" ] || complain "something was converted"
finish
