"""A receiver of another maker gets the traces of requests: oteltap, with the messages of opentelemetry-proto."""

import asyncio
import json
import socket
import urllib.request

from harness import PATIENCE, VACATION, Provider, Server
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(url, words):
    """Asks in a trace, and returns the answer document."""
    body = json.dumps({"messages": [{"role": "user", "content": words}]}).encode()
    headers = {"content-type": "application/json", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    request = urllib.request.Request(f"{url}/api/chat", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.load(reply)


async def traced(words, **settings):
    """The spans that a receiver gets of a request, the first one of each name by it, and the answer."""
    port, spans = free_port(), []
    async with OtelTapHttpProtobufReceiver(OtelTapHttpProtobufReceiverSettings(http_port=port)) as receiver:

        async def collect():
            async for span in receiver.stream_traces():
                spans.append(span)
                # The request's own span ends last, so all others have come.
                if span.parent_span_id.hex() == PARENT:
                    return

        collecting = asyncio.create_task(collect())
        await asyncio.sleep(0)
        with Server(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}", **settings) as server:
            answer = await asyncio.to_thread(ask, server.url, words)
            # What is not sent yet is sent now.
            server.process.terminate()
            await asyncio.wait_for(collecting, PATIENCE)
    return {span.name: span for span in reversed(spans)}, spans, answer


def values(span):
    """The attributes of a span."""
    def plain(value):
        kind = value.WhichOneof("value")
        return [plain(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)

    return {attribute.key: plain(attribute.value) for attribute in span.attributes}


def test_another_receiver_gets_one_tree_of_spans_with_the_conventions_names():
    by_name, spans, answer = asyncio.run(traced(VACATION))
    assert answer["status"] == "completed", answer
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    ids = {span.span_id for span in spans}
    assert len(ids) == len(spans)
    root = by_name["invoke_workflow proscenium"]
    assert all(span.parent_span_id in ids for span in spans if span is not root)
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert values(root)["proscenium.run.id"] == answer["run_id"]
    assert values(root)["gen_ai.operation.name"] == "invoke_workflow"
    agent = by_name["invoke_agent VacationManagement"]
    assert (agent.parent_span_id, values(agent)["gen_ai.agent.name"]) == (root.span_id, "VacationManagement")
    tools = [span for span in spans if span.name.startswith("execute_tool ")]
    assert tools and all(span.parent_span_id == agent.span_id for span in tools)
    assert by_name["plan"].parent_span_id == root.span_id
    said = [value for span in spans for value in values(span).values() if isinstance(value, str)]
    assert not any(VACATION in text or "giugno" in text for text in said)


def test_models_usage_and_content_where_it_is_switched_on():
    with Provider() as provider:
        settings = {**provider.settings(), "PROSCENIUM__TELEMETRY__OTLP__CONTENT": "true"}
        by_name, spans, answer = asyncio.run(traced("Hello there", **settings))
    assert answer["answer"] == "Good day."
    chat = next(span for span in spans if span.name.startswith("chat "))
    usage = values(chat)
    assert (usage["gen_ai.usage.input_tokens"], usage["gen_ai.usage.output_tokens"]) == (10, 5)
    assert usage["gen_ai.provider.name"] == "openai" and usage["server.address"] == "127.0.0.1"
    request = next(span for span in spans if span.name == "POST")
    assert request.parent_span_id == chat.span_id
    root = values(by_name["invoke_workflow proscenium"])
    assert "Hello there" in root["gen_ai.input.messages"] and "Good day." in root["gen_ai.output.messages"]
