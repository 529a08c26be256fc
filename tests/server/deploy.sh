# SPDX-License-Identifier: MIT
# The files of deploy/ are well-formed, and the metrics that they name exist.
. "$SOURCE/tests/server/lib.sh"
python=''
for one in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! $one -c 'import yaml' 2>/dev/null || python=$one
done
if [ -n "$python" ]; then
    $python - "$SOURCE"/deploy/*.yaml "$SOURCE"/deploy/*/*.yaml <<'END' || failed=1
import sys
import yaml
for path in sys.argv[1:]:
    for document in yaml.safe_load_all(open(path, encoding="utf-8")):
        assert isinstance(document, dict), path
        assert "apiVersion" not in document or document["kind"] and document["metadata"]["name"], path
END
else
    echo "not tested: no module yaml"
fi
python3 "$SOURCE/tests/server/deploy.py" || failed=1
exit $failed
