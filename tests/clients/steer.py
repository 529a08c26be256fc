# SPDX-License-Identifier: MIT
"""A proxy between a coding agent and whit serve that makes a random model act: for the first N turns an answer must be a
call of the agent's shell, with one of some harmless commands; afterwards it is a short text. Nothing else is changed."""
import http.client
import http.server
import json
import re
import socketserver
import sys
import threading

SHELLS = ("Bash", "bash", "exec_command", "shell", "local_shell", "run_shell_command", "run_terminal_command")

DONE = {"enum": ["done"]}


class Steer:
    """Listens on a free port of this machine; `seen` lists (method, path, status, facts) of each request."""

    def __init__(self, port, model, n_turns, command="echo steered"):
        self.target, self.model, self.n_turns = port, model, n_turns
        # Agents stop a model that repeats itself; the schema, and with it the prompt, is the same in each turn.
        self.commands = [f"{command} {i}" for i in range(10, 100)]
        self.seen, self.lock = [], threading.Lock()
        steer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self):
                steer.pass_on(self)

            do_GET = do_POST = do_HEAD = do_any

            def log_message(self, *_):
                pass

        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def pass_on(self, handler):
        n = int(handler.headers.get("Content-Length") or 0)
        body, facts = handler.rfile.read(n), {}
        path = handler.path
        if handler.command == "POST" and body:
            try:
                request = json.loads(body)
                path = self.steer(path, request, facts)
                body = json.dumps(request).encode()
            except ValueError:
                pass
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "content-length", "accept-encoding")}
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=600)
        connection.request(handler.command, path, body or None, headers)
        reply = connection.getresponse()
        handler.send_response(reply.status)
        for key, value in reply.getheaders():
            if key.lower() not in ("transfer-encoding", "connection", "content-length"):
                handler.send_header(key, value)
        handler.send_header("Connection", "close")
        handler.end_headers()
        whole = b""
        try:
            while handler.command != "HEAD":
                piece = reply.read1(65536)
                if not piece:
                    break
                whole += piece
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            facts["left"] = True
        handler.close_connection = True
        connection.close()
        if reply.status >= 400:
            facts["error"] = whole[:600].decode(errors="replace")
        for key in ("cached_tokens", "cache_read_input_tokens", "cachedContentTokenCount"):
            found = re.findall(rb'"%s":\s*(\d+)' % key.encode(), whole)
            if found:
                facts["cached"] = max(int(x) for x in found)
        for key in ("input_tokens", "prompt_tokens", "promptTokenCount"):
            found = re.findall(rb'"%s":\s*(\d+)' % key.encode(), whole)
            if found:
                facts["prompt"] = max(int(x) for x in found)
        with self.lock:
            self.seen.append((handler.command, handler.path, reply.status, facts))
            if "record" in self.__dict__:
                self.record.append((handler.command, path, dict(handler.headers), body.decode(errors="replace"),
                                    reply.status, whole.decode(errors="replace")))

    # ---- per API ---------------------------------------------------------------------------------

    def schema(self, own):
        """The shell's schema with its texts fixed; lists become a list of words."""
        kinds = own.get("properties", {}) if isinstance(own, dict) else {}
        properties = {}
        for key in own.get("required", []) if isinstance(own, dict) else []:
            kind = kinds.get(key, {}).get("type")
            if isinstance(kind, str):
                kind = kind.lower()
            if key in ("command", "cmd"):
                properties[key] = {"enum": [["sh", "-c", c] if kind == "array" else c for c in self.commands]}
            elif kind == "boolean":
                properties[key] = {"enum": [False]}
            elif kind in ("number", "integer"):
                properties[key] = {"enum": [1]}
            else:
                properties[key] = {"enum": ["steered"]}
        if not properties:
            properties = {"command": {"enum": self.commands}}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    def steer(self, path, request, facts):
        if isinstance(request, dict) and "model" in request:
            request["model"] = self.model
        if "/messages" in path and "count_tokens" not in path:
            self.steer_messages(request, facts)
        elif path.endswith("/responses"):
            self.steer_responses(request, facts)
        elif path.endswith("/chat/completions"):
            self.steer_chat(request, facts)
        elif "generateContent" in path or "streamGenerateContent" in path:
            self.steer_gemini(request, facts)
            path = re.sub(r"models/[^:]*:", "models/%s:" % self.model, path)
        elif "countTokens" in path:
            path = re.sub(r"models/[^:]*:", "models/%s:" % self.model, path)
        return path

    def forced(self, name, results, facts):
        facts["results"] = results
        facts["tool"] = name
        return name is not None and results < self.n_turns

    def steer_messages(self, request, facts):
        tools, name = request.get("tools") or [], None
        results = sum(b.get("type") == "tool_result" for m in request["messages"] if isinstance(m["content"], list)
                      for b in m["content"])
        for tool in tools:
            if tool.get("name") in SHELLS:
                name, tool["input_schema"] = tool["name"], self.schema(tool.get("input_schema", {}))
                tool["strict"] = True
        facts["failed"] = sum(bool(b.get("is_error")) for m in request["messages"] if isinstance(m["content"], list)
                              for b in m["content"])
        request["max_tokens"] = 400
        if self.forced(name, results, facts):
            request["tool_choice"] = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
        else:
            request["tool_choice"] = {"type": "none"}
            request["output_config"] = {"format": {"type": "json_schema", "schema": DONE}}
        request["thinking"] = {"type": "disabled"}

    def steer_responses(self, request, facts):
        tools, name = request.get("tools") or [], None
        items = request["input"] if isinstance(request["input"], list) else []
        results = sum(i.get("type", "").endswith("_output") for i in items)
        for tool in tools:
            if tool.get("name") in SHELLS and tool.get("type") == "function":
                name, tool["parameters"] = tool["name"], self.schema(tool.get("parameters", {}))
                tool["strict"] = True
        if self.forced(name, results, facts):
            request["tool_choice"] = {"type": "function", "name": name}
            request["parallel_tool_calls"] = False
        else:
            request["tool_choice"] = "none"
            request["text"] = {"format": {"type": "json_schema", "name": "done", "schema": DONE}}
        request["reasoning"] = {"effort": "none"}

    def steer_chat(self, request, facts):
        tools, name = request.get("tools") or [], None
        results = sum(m.get("role") == "tool" for m in request["messages"])
        for tool in tools:
            function = tool.get("function", {})
            if function.get("name") in SHELLS:
                name, function["parameters"] = function["name"], self.schema(function.get("parameters", {}))
                function["strict"] = True
        if self.forced(name, results, facts):
            request["tool_choice"] = {"type": "function", "function": {"name": name}}
            request["parallel_tool_calls"] = False
        else:
            if tools:
                request["tool_choice"] = "none"
            request["response_format"] = {"type": "json_schema", "json_schema": {"name": "done", "schema": DONE}}
        request["reasoning_effort"] = "none"

    def steer_gemini(self, request, facts):
        name = None
        # Turns, not results: a turn may have several calls, which nothing in this API forbids.
        results = sum(any("functionResponse" in p for p in c.get("parts", [])) for c in request.get("contents", []))
        for tool in request.get("tools") or []:
            for function in tool.get("functionDeclarations", []):
                if function.get("name") in SHELLS:
                    name = function["name"]
                    own = function.pop("parametersJsonSchema", None) or function.get("parameters") or {}
                    function.pop("parameters", None)
                    function["parametersJsonSchema"] = self.schema(own)
        config = request.setdefault("generationConfig", {})
        if self.forced(name, results, facts):
            request["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
        else:
            if request.get("tools"):
                request["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
            config["responseMimeType"], config["responseJsonSchema"] = "application/json", DONE
        config["thinkingConfig"] = {"thinkingBudget": 0}


if __name__ == "__main__":
    steer = Steer(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    print("http://127.0.0.1:%d" % steer.port, flush=True)
    threading.Event().wait()
