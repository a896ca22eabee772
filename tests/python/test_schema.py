"""Fuzzes the OpenAPI document: no request gets a 5xx, and no reply violates its schema."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from harness import VACATION, Server

# Random requests per operation; those of the phases before are the same in each run. More are worth it after a change of the
# document.
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "3")
# Seconds for the fuzzer, on a busy machine.
BOUND = 150 + 25 * int(EXAMPLES)
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)


def test_no_request_gets_a_5xx_and_replies_match_the_document(tmp_path):
    with Server() as server:
        message = {"role": "user", "content": VACATION}
        run = post(f"{server.url}/api/chat", {"messages": [message], "session_id": "kept"})
        plan = post(f"{server.url}/api/plans", {"message": VACATION, "session_id": "waits"})
        # Existing ids, so that more than refusals is tested.
        named = {
            "path.run_id": run["run_id"],
            "path.session_id": "kept",
            "path.task_id": plan["task_id"],
            "path.approval_id": plan["approvals"][0],
            "path.name": "Weather",
            "path.model": "proscenium",
        }
        lines = ["[parameters]", *(f'"{name}" = "{value}"' for name, value in named.items())]
        config = tmp_path / "schemathesis.toml"
        config.write_text("\n".join(lines) + "\n")
        fuzzer = Path(sys.executable).parent / "schemathesis"
        command = [
            fuzzer, "--config-file", config, "run", f"{server.url}/api/openapi.json",
            "--checks", ",".join(CHECKS),
            "--phases", "examples,coverage,fuzzing",
            "--max-examples", EXAMPLES,
            "--seed", "1",
            "--request-timeout", "20",
            "--continue-on-failure",
            "--generation-database", "none",
        ]  # fmt: skip
        environment = {**os.environ, "NO_COLOR": "1"}
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=BOUND, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr + server.stderr()
        # The server is still healthy, and its data is there.
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=20) as reply:
            assert reply.status == 200
