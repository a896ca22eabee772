"""The official OpenAI client with its defaults works with this server."""

import openai
import pytest
from harness import VACATION, Provider, Proxy, Server

WEATHER = "Che tempo fa a Milano?"


@pytest.fixture(scope="module")
def server():
    """A server with the offline model."""
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def scripted():
    """A server with a scripted model."""
    with Provider() as provider, Server(**provider.settings()) as server:
        server.provider = provider
        yield server


def client(url, **options):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="sk-anything", **options)


def ask(url, words, **options):
    messages = [{"role": "user", "content": words}]
    with client(url) as api:
        return api.chat.completions.create(model="proscenium", messages=messages, **options)


def test_answer_has_text_and_usage(scripted):
    answer = ask(scripted.url, "Hello there")
    assert answer.choices[0].message.content == "Good day."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "proscenium"
    usage = answer.usage
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens == 0


def test_stream_equals_the_answer(server):
    whole = ask(server.url, WEATHER).choices[0].message.content
    messages = [{"role": "user", "content": WEATHER}]
    with client(server.url) as api:
        stream = api.chat.completions.create(
            model="proscenium", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None and not chunks[-1].choices
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_server_is_listed_as_a_model(server):
    with client(server.url) as api:
        assert [model.id for model in api.models.list()] == ["proscenium"]
        assert api.models.retrieve("proscenium").id == "proscenium"
        with pytest.raises(openai.NotFoundError):
            api.models.retrieve("gpt-4o")


@pytest.mark.parametrize(
    ("options", "error", "code", "param"),
    [
        ({"model": "gpt-4o"}, openai.NotFoundError, "model_not_found", "model"),
        ({"n": 2}, openai.BadRequestError, "request.unsupported", "n"),
        ({"stop": "."}, openai.BadRequestError, "request.unsupported", "stop"),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "request.unsupported", "response_format"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]},
            openai.BadRequestError,
            "request.unsupported",
            "tools",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
            openai.BadRequestError,
            "request.unsupported",
            "messages[0].content",
        ),
        ({"messages": []}, openai.UnprocessableEntityError, "request.messages", "messages"),
    ],
)
def test_errors_map_to_the_clients_exceptions(server, options, error, code, param):
    options = {"model": "proscenium", "messages": [{"role": "user", "content": WEATHER}], **options}
    with client(server.url) as api, pytest.raises(error) as raised:
        api.chat.completions.create(**options)
    assert (raised.value.code, raised.value.param) == (code, param)
    assert raised.value.type == "invalid_request_error"


def test_failed_run_is_an_error_and_not_retried(scripted):
    with pytest.raises(openai.InternalServerError) as raised:
        ask(scripted.url, "Please fail")
    assert raised.value.response.headers["x-should-retry"] == "false"
    assert raised.value.response.request.headers["x-stainless-retry-count"] == "0"
    assert raised.value.type == "server_error"
    messages = [{"role": "user", "content": "Please fail"}]
    with client(scripted.url) as api, pytest.raises(openai.APIError):
        list(api.chat.completions.create(model="proscenium", messages=messages, stream=True))


def test_unknown_key_is_refused(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="psk_0123456789abcdef_" + "0" * 64) as api:
        with pytest.raises(openai.AuthenticationError) as raised:
            api.models.list()
    assert raised.value.code == "auth.key"


def test_named_conversation_is_kept(server):
    named = {"X-Session-Id": "python-1"}
    ask(server.url, WEATHER, extra_headers=named)
    answer = ask(server.url, "E a Roma?", extra_headers=named)
    assert "Rom" in answer.choices[0].message.content


# The client sends no idempotency key, only a retry count.


@pytest.mark.parametrize(
    "script", [["sent"], ["answered"], ["half"], ["sent", "answered"], ["half", "sent"], ["answered", "half"]]
)
def test_broken_connection_executes_nothing_twice(script):
    with Server() as server, Proxy(server.address, script) as proxy:
        answer = ask(proxy.url, VACATION)
        assert proxy.connections == len(script) + 1
        (run,) = server.runs()
        assert answer.id == f"chatcmpl-{run['run_id']}"
        assert answer.choices[0].message.content == server.finished(run["run_id"])["answer"]
        assert server.vacations() == 1


@pytest.mark.parametrize("how", ["sent", "answered", "half"])
def test_broken_stream_executes_nothing_twice(how):
    with Server() as server, Proxy(server.address, [how]) as proxy:
        messages = [{"role": "user", "content": VACATION}]
        with client(proxy.url) as api:
            try:
                stream = api.chat.completions.create(model="proscenium", messages=messages, stream=True)
                words = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            except Exception as error:  # of the client or of its HTTP library, depending on where it broke
                assert how == "half", error
                words = None
        (run,) = server.runs()
        answer = server.finished(run["run_id"])["answer"]
        assert words in (None, answer)
        assert server.vacations() == 1


def test_client_timeout_executes_nothing_twice():
    with Provider() as provider, Server(**provider.settings()) as server:
        provider.go.clear()

        def second(nth):
            if nth == 2:
                provider.go.set()

        with Proxy(server.address, [], second) as proxy, client(proxy.url, timeout=2) as api:
            messages = [{"role": "user", "content": "Hello there"}]
            answer = api.chat.completions.create(model="proscenium", messages=messages)
        assert answer.choices[0].message.content == "Good day."
        assert proxy.connections >= 2
        assert len(server.runs()) == 1


def kill_and_restart(server, proxy, nth):
    """Before the client retries, restarts the server on the same data directory."""
    if nth == 2:
        server.kill()
        server.start()
        proxy.target = server.address


@pytest.mark.parametrize("how", ["sent", "answered", "half"])
def test_killed_server_executes_nothing_twice(how):
    with Server() as server, Proxy(server.address, [how]) as proxy:
        proxy.on_connection = lambda nth: kill_and_restart(server, proxy, nth)
        answer = ask(proxy.url, VACATION)
        assert proxy.connections == 2
        (run,) = server.runs()
        assert answer.id == f"chatcmpl-{run['run_id']}"
        assert answer.choices[0].message.content == server.finished(run["run_id"])["answer"]
        # If it was killed during the write, the outcome of the write is unknown.
        assert server.vacations() == 1 or (how == "sent" and server.vacations() == 0)


def test_request_interrupted_by_a_kill_is_not_executed_again():
    with Provider() as provider, Server(**provider.settings()) as server:
        provider.go.clear()
        with Proxy(server.address, []) as proxy:

            def again(nth):
                kill_and_restart(server, proxy, nth)
                if nth == 2:
                    provider.go.set()

            proxy.on_connection = again
            # The client times out, and the server is killed before the retry.
            with client(proxy.url, timeout=2) as api:
                messages = [{"role": "user", "content": "Hello there"}]
                answer = api.chat.completions.create(model="proscenium", messages=messages)
            assert answer.choices[0].message.content == "Good day."
            assert proxy.connections >= 2
        assert len(server.runs()) == 1


def test_request_with_idempotency_key_executes_once():
    with Server() as server:
        named = {"Idempotency-Key": "python-1"}
        first = ask(server.url, VACATION, extra_headers=named)
        again = ask(server.url, VACATION, extra_headers=named)
        assert first.id == again.id
        assert len(server.runs()) == 1
        assert server.vacations() == 1
        with pytest.raises(openai.UnprocessableEntityError) as raised:
            ask(server.url, WEATHER, extra_headers=named)
        assert raised.value.code == "request.idempotency_conflict"


def test_equal_requests_of_two_users_are_separate():
    with Server() as server:
        first, second = ask(server.url, WEATHER), ask(server.url, WEATHER)
        assert first.id != second.id
        assert len({run["session_id"] for run in server.runs()}) == 2
