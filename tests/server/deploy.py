# SPDX-License-Identifier: MIT
"""Grafana's board and Prometheus' rules name metrics that a server has; a reader of the format, and promtool
where it is there, find nothing in its page."""
import json
import os
import re
import shutil
import subprocess
import sys

import client
import exposition
from client import Server, check

FLEET = os.environ["SOURCE"] + "/deploy/fleet/"
# Remarks of promtool that are about names which others have chosen, or that whit has had from the beginning.
KNOWN = re.compile(r"^whit:\w+ metric names should not contain ':'$|^vllm:\w+ metric names should not contain ':'$")

server = Server("-c", "256", "-np", "1")
server.text("the land", 2)
page = server.ask("GET", "/metrics")[1].decode()
server.end()
exposition.check_reader()
check(not exposition.faults(page), "the page of metrics:", exposition.faults(page))
have = set(re.findall(r"^# TYPE (\S+) ", page, re.M))
rules = open(FLEET + "prometheus-rules.yaml", encoding="utf-8").read()
recorded = set(re.findall(r"record: (\S+)", rules))
board = json.load(open(FLEET + "grafana.json", encoding="utf-8"))
check(len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 8, "panels")
texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]] + [rules]
for name in {found for text in texts for found in re.findall(r"\b(?:whit|vllm):[a-z0-9_:]+", text)} - recorded:
    check(re.sub(r"_bucket$", "", name) in have, "no server has the metric", name)
promtool = shutil.which("promtool")
if promtool:
    said = subprocess.run([promtool, "check", "metrics"], input=page, text=True, capture_output=True, check=False)
    left = [line for line in (said.stdout + said.stderr).splitlines() if line and not KNOWN.match(line)]
    check(not left, "promtool check metrics:", left)
    said = subprocess.run([promtool, "check", "rules", FLEET + "prometheus-rules.yaml"], text=True, capture_output=True,
                          check=False)
    check(said.returncode == 0, "promtool check rules:", said.stdout, said.stderr)
else:
    print("not tested: no promtool")
sys.exit(1 if client.failures else 0)
