"""Test harness: servers in their own processes, a scripted provider, and a faulty proxy."""

import json
import os
import select
import socket
import sqlite3
import subprocess
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VACATION = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno"
# Seconds for a server to start and to stop.
PATIENCE = 20


class Server:
    """`proscenium serve` on a free port, with its own data directory."""

    def __init__(self, **settings):
        self.dir = tempfile.TemporaryDirectory(prefix="proscenium-")
        self.data = Path(self.dir.name) / "data"
        self.env = {
            "PROSCENIUM__EXECUTION__FIXED_NOW": "2026-05-04T09:00:00+02:00",
            "PROSCENIUM__EXECUTION__TIME_ZONE": "Europe/Rome",
            "PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE": "bundled",
            "PROSCENIUM__SERVER__DRAIN_TIMEOUT_MS": "3000",
            **settings,
        }
        self.errors = open(Path(self.dir.name) / "errors", "w+", encoding="utf-8")
        self.start()

    def start(self):
        """Starts it in its directory, on a new port."""
        command = [os.environ["PROSCENIUM"], "serve", "--addr", "127.0.0.1:0", "--data-dir", str(self.data)]
        self.process = subprocess.Popen(
            command,
            env=self.env,
            cwd=self.dir.name,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline().decode() if ready else ""
        if "http://" not in line:
            self.stop()
            raise RuntimeError(f"the server did not start: {line}{self.stderr()}")
        self.url = "http://" + line.split("http://")[1].strip()
        self.address = (self.url.split("/")[2].split(":")[0], int(self.url.rsplit(":", 1)[1]))

    def stderr(self):
        """Its standard error so far."""
        self.errors.flush()
        return (Path(self.dir.name) / "errors").read_text(encoding="utf-8")

    def vacations(self):
        """The number of stored vacation requests."""
        with sqlite3.connect(f"file:{self.data / 'proscenium.db'}?mode=ro", uri=True) as database:
            return database.execute("SELECT count(*) FROM vacation_requests").fetchone()[0]

    def runs(self):
        """All runs, the newest first."""
        with urllib.request.urlopen(f"{self.url}/api/runs", timeout=PATIENCE) as reply:
            return json.load(reply)["runs"]

    def finished(self, run):
        """A run's answer document, once it has ended."""
        # The event stream ends with the run.
        with urllib.request.urlopen(f"{self.url}/api/runs/{run}/events", timeout=PATIENCE) as reply:
            reply.read()
        with urllib.request.urlopen(f"{self.url}/api/runs/{run}", timeout=PATIENCE) as reply:
            return json.load(reply)

    def kill(self):
        """Kills it as a power failure would."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.errors.close()
        self.dir.cleanup()


class Provider:
    """A model server that plans nothing and replies `Good day.`; a request with `please fail` gets status 500.

    It does not reply until `go` is set.
    """

    def __init__(self):
        self.requests = 0
        self.go = threading.Event()
        self.go.set()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                provider.requests += 1
                provider.go.wait(PATIENCE)
                text = json.dumps(body["messages"])
                forced = (body.get("tool_choice") or {}) if isinstance(body.get("tool_choice"), dict) else {}
                name = forced.get("function", {}).get("name")
                if "please fail" in text.lower():
                    return self.reply(500, {"error": {"message": "scripted"}})
                plan = {"needs_execution": False, "reasoning": "small talk", "steps": []}
                message = {"role": "assistant", "content": "Good day."}
                if name:
                    call = {"name": name, "arguments": json.dumps(plan)}
                    message = {"role": "assistant", "content": None}
                    message["tool_calls"] = [{"id": "call_0", "type": "function", "function": call}]
                choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if name else "stop"}
                usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
                self.reply(200, {"object": "chat.completion", "choices": [choice], "usage": usage})

            def reply(self, status, body):
                body = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def settings(self):
        """Settings of a server whose only model is this one."""
        return {
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_KEY": "sk-test",
            "PROSCENIUM__LLM__MAX_ATTEMPTS": "1",
            "PROSCENIUM__PLANNING__FALLBACK_ENABLED": "false",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Proxy:
    """A proxy whose connections break as scripted, one word per connection:

    - `sent`: right after the request was forwarded
    - `answered`: when the first byte of the reply arrives, which the client does not get
    - `half`: after the client got a part of the reply
    - `ok`, and all beyond the script: never
    """

    def __init__(self, target, script, on_connection=lambda nth: None):
        self.target, self.script, self.on_connection = target, list(script), on_connection
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = []
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            how = self.script[self.connections] if self.connections < len(self.script) else "ok"
            self.connections += 1
            self.on_connection(self.connections)
            thread = threading.Thread(target=self.serve, args=(client, how), daemon=True)
            self.threads.append(thread)
            thread.start()

    def serve(self, client, how):
        with client, socket.create_connection(self.target, timeout=PATIENCE) as server:
            client.settimeout(PATIENCE)
            try:
                server.sendall(request(client))
                if how == "sent":
                    return
                got = server.recv(65536)
                if how == "answered":
                    return
                if how == "half":
                    client.sendall(got[: len(got) // 2])
                    return
                client.sendall(got)
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join(PATIENCE)
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Closing alone does not wake the accepting thread.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.acceptor.join(PATIENCE)


def pump(source, sink):
    """Copies bytes until one side closes."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def request(client):
    """Reads a whole request: its head, and as many bytes as its Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            raise OSError("the client disconnected")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        more = client.recv(65536)
        if not more:
            raise OSError("the client disconnected")
        body += more
    return head + b"\r\n\r\n" + body
