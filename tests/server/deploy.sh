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
        if document.get("kind") != "EndpointPickerConfig": # the one kind that is no object of a cluster
            assert "apiVersion" not in document or document["kind"] and document["metadata"]["name"], path
# llm-d-router's file discovery ends at a field of another form: literal IPv4 addresses, ports as text, labels as text.
import ipaddress
folder = sys.argv[1].rsplit("/deploy/", 1)[0] + "/deploy/fleet/"
endpoints = yaml.safe_load(open(folder + "endpoints.yaml", encoding="utf-8"))
assert list(endpoints) == ["endpoints"] and endpoints["endpoints"]
for endpoint in endpoints["endpoints"]:
    assert {"name", "address", "port"} <= set(endpoint) <= {"name", "namespace", "address", "port", "labels"}, endpoint
    ipaddress.IPv4Address(endpoint["address"])
    assert isinstance(endpoint["port"], str) and 1 <= int(endpoint["port"]) <= 65535, endpoint
    assert all(isinstance(value, str) for value in endpoint.get("labels", {}).values()), endpoint
# Its configuration refers to plugins by their names, a plugin's name being its type.
router = yaml.safe_load(open(folder + "router.yaml", encoding="utf-8"))
assert set(router) == {"apiVersion", "kind", "plugins", "dataLayer", "schedulingProfiles"}, router
plugins = {plugin.get("name", plugin["type"]): plugin.get("parameters", {}) for plugin in router["plugins"]}
layer = router["dataLayer"]
assert set(layer["discovery"]) == {"pluginRef"} and plugins[layer["discovery"]["pluginRef"]]["path"].startswith("/")
used = {entry["pluginRef"] for profile in router["schedulingProfiles"] for entry in profile["plugins"]}
for source in layer["sources"]:
    used |= {source["pluginRef"]} | {extractor["pluginRef"] for extractor in source["extractors"]}
assert used <= set(plugins), used - set(plugins)
events = plugins["precise-prefix-cache-producer"]["kvEventsConfig"]
assert "replaySocketPort" not in events["podDiscoveryConfig"], "whit's numbers do not begin with 0"
assert plugins["prefix-cache-scorer"]["prefixMatchInfoProducerName"] in plugins
assert len({endpoint["name"] for endpoint in endpoints["endpoints"]}) == len(endpoints["endpoints"])
END
else
    echo "not tested: no module yaml"
fi
python3 "$SOURCE/tests/server/deploy.py" || failed=1
exit $failed
