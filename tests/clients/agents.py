# SPDX-License-Identifier: MIT
"""Coding agents from npm, ten turns with tools each, against whit serve: agents.py AGENT... [--model NAME]...

PACKAGES is the folder that has node_modules, MODELS has model folders llama, qwen and plain. Runs where only the
loopback device is there (agents.sh)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/server"))
sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/clients"))
from client import Server  # noqa: E402
from steer import Steer  # noqa: E402

TURNS = int(os.environ.get("TURNS", "10"))
PROMPT = "Run the command, again and again, and say what it prints."
BIN = os.path.join(os.environ["PACKAGES"], "node_modules/.bin")


def claude(base, home):
    return [f"{BIN}/claude", "-p", PROMPT, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash",
            "--max-turns", "40"], {
        "ANTHROPIC_BASE_URL": base, "ANTHROPIC_AUTH_TOKEN": "none", "ANTHROPIC_MODEL": "x",
        "ANTHROPIC_SMALL_FAST_MODEL": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1"}


def codex(base, home):
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(f"""model = "x"
model_provider = "whit"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.whit]
name = "whit"
base_url = "{base}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
""")
    return [f"{BIN}/codex", "exec", "--skip-git-repo-check", "--json", PROMPT], {"CODEX_HOME": str(folder)}


def opencode(base, home):
    (home / "opencode.json").write_text(json.dumps({
        "$schema": "https://opencode.ai/config.json", "model": "whit/x", "small_model": "whit/x", "autoupdate": False,
        "share": "disabled", "permission": "allow",
        "provider": {"whit": {"npm": "@ai-sdk/openai-compatible", "name": "whit", "options": {
            "baseURL": f"{base}/v1", "apiKey": "none"}, "models": {"x": {"name": "x", "limit": {
                "context": 100000, "output": 4000}}}}}}))
    return [f"{BIN}/opencode", "run", PROMPT], {"OPENCODE_CONFIG": str(home / "opencode.json"),
                                                "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def qwen(base, home):
    return [f"{BIN}/qwen", "-p", PROMPT, "--yolo", "--auth-type", "openai"], {
        "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "x", "QWEN_TELEMETRY_ENABLED": "0"}


def cn(base, home):
    (home / "config.yaml").write_text(f"""name: whit
version: 1.0.0
schema: v1
models:
  - name: whit
    provider: openai
    model: x
    apiKey: none
    apiBase: {base}/v1
    roles: [chat]
    capabilities: [tool_use]
""")
    return [f"{BIN}/cn", "-p", PROMPT, "--config", str(home / "config.yaml"), "--auto"], {
        "CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_GLOBAL_DIR": str(home / ".continue")}


def gemini(base, home):
    folder = home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False}, "model": {"disableLoopDetection": True}, "general": {"disableAutoUpdate": True, "enableAutoUpdate": False}}))
    return [f"{BIN}/gemini", "-p", PROMPT, "--yolo", "-m", "gemini-2.5-flash", "--output-format", "json",
            "--skip-trust"], {
        "GOOGLE_GEMINI_BASE_URL": base, "GEMINI_API_KEY": "none"}


AGENTS = {"claude": claude, "codex": codex, "opencode": opencode, "qwen": qwen, "cn": cn, "gemini": gemini}


def drive(name, port, model, record):
    home = pathlib.Path(tempfile.mkdtemp(prefix="whit-agent-"))
    steer = Steer(port, model, TURNS)
    steer.record = []
    command, extra = AGENTS[name](f"http://127.0.0.1:{steer.port}", home)
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TERM")}
    begun = time.time()
    try:
        ended = subprocess.run(command, cwd=home, env={**keep, "HOME": str(home), **extra}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=float(os.environ.get("PATIENCE", "900")), check=False)
        status, said = ended.returncode, ended.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        status, said = "timeout", (late.stdout or b"").decode(errors="replace")
    asked = [s for s in steer.seen if "tool" in s[3]]
    turns = [s for s in asked if s[3]["tool"]]
    errors = [s for s in steer.seen if s[2] >= 400 and not (s[2] == 404 and s[0] == "HEAD")]
    most = max([s[3]["results"] for s in turns], default=0)
    cached = [(s[3].get("cached"), s[3].get("prompt")) for s in turns]
    ran = said.count("steered")
    ok = status == 0 and most >= TURNS and not errors and all(c for c, _ in cached[1:])
    print(f"{'ok' if ok else 'FAILED'}: {name} with {model}: exit {status}, {len(steer.seen)} requests, {most} results, "
          f"cached of prompt {cached[1:3]}..., 'steered' {ran} times, {time.time() - begun:.0f} s", flush=True)
    if not ok:
        for one in errors[:6]:
            print("   ", one)
        print("   ", sorted({(s[0], s[1], s[2]) for s in steer.seen}))
        print("    it said:", said[-1500:])
    if record:
        pathlib.Path(record).mkdir(exist_ok=True)
        with open(f"{record}/{name}-{model}.json", "w", encoding="utf-8") as out:
            json.dump(steer.record, out, indent=1)
    shutil.rmtree(home, ignore_errors=True)
    return ok


def main():
    names = [a for a in sys.argv[1:] if a in AGENTS] or list(AGENTS)
    models = [a for a in sys.argv[1:] if a not in AGENTS] or ["llama", "qwen3", "plain"]
    arguments = [x for m in models for x in ("-m", f"{m}={os.environ['MODELS']}/{m}")]
    server = Server("-c", "131072", "-np", "2", "-t", "1", *arguments)
    ok = True
    for model in models:
        for name in names:
            if not os.path.exists(f"{BIN}/{name}"):
                print(f"skipped: {name} is not installed")
                continue
            ok = drive(name, server.port, model, os.environ.get("RECORD")) and ok
    server.end()
    sys.exit(not ok)


if __name__ == "__main__":
    main()
