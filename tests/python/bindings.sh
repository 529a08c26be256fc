# SPDX-License-Identifier: MIT
# The package for Python in place, and as a wheel: made twice with the same bytes, installed in a bare environment.
set -u
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || {
    echo "[ SKIPPED ] Python 3.9 or later is wanted"
    exit 0
}
rm -rf place one two bare talk.json verse.ndf
mkdir one two
for _ in $(seq 60); do echo "Once upon a time there was a fox. It ran through the wood."; done >verse.txt
$WHIT tune --text verse.txt --steps 3 --rank 2 -c 32 --sequences 2 -t 1 -o verse.ndf 2>/dev/null || {
    echo "FAILED: no adapter is made"
    exit 1
}
make="python3 $SOURCE/bindings/python/make_wheel.py $1"
$make --package place || exit 1
python3 "$SOURCE/tests/python/bindings.py" "$PWD/place" || exit 1
first=$($make -o one) && sleep 1 && second=$($make -o two) || exit 1
cmp -s "$first" "$second" || {
    echo "FAILED: two wheels differ"
    exit 1
}
# Where there is no pip, the wheel is unpacked, which is what pip does with it.
python3 -m venv --without-pip bare || exit 1
site=$(bare/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
pip="python3 -m pip --disable-pip-version-check -q --python bare/bin/python"
$pip --version >/dev/null 2>&1 || pip=
if [ -n "$pip" ]; then
    $pip install --no-index "$first" || exit 1
else
    python3 -m zipfile -e "$first" "$site" || exit 1
fi
said=$(cd / && env -u WHIT_LIBRARY -u PYTHONPATH "$OLDPWD/bare/bin/python" -I - "$SOURCE/tools/tales/tales.ndf" <<'END'
import sys, whit
with whit.Model(sys.argv[1]) as model, model.session() as session:
    print(len("".join(session.generate("Once upon a time", max_tokens=8))) > 4, whit.version())
END
)
case $said in "True "*) ;; *) echo "FAILED: the installed wheel says: $said"; exit 1 ;; esac
if [ -n "$pip" ]; then
    $pip uninstall -y whit || exit 1
    [ -z "$(find bare -name '*whit*' -not -name '*.pyc')" ] || {
        echo "FAILED: left after pip uninstall: $(find bare -name '*whit*')"
        exit 1
    }
fi
# The examples of the page are run.
python3 - "$SOURCE/docs/use/python.md" <<'END' >examples.py || exit 1
import re, sys
print("\n".join(re.findall(r"```python\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), re.S)))
END
cp "$SOURCE/tools/tales/tales.ndf" model.ndf
PYTHONPATH=$PWD/place python3 examples.py >/dev/null || {
    echo "FAILED: an example of docs/use/python.md"
    exit 1
}
