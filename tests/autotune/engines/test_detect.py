"""Who answers, and who does not."""

import httpx
import pytest
from autotune_recorded import answering

from autotune.engines.detect import detect
from autotune.load.errors import EndpointDown, EndpointRefused, WrongApi


def served(owner: str, metrics: str = "") -> dict[str, httpx.Response]:
    models = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]}
    pages = {"/v1/models": httpx.Response(200, json=models)}
    if metrics:
        pages["/metrics"] = httpx.Response(200, text=metrics)
    return pages


def answers(pages: dict[str, httpx.Response]) -> httpx.Response:
    return lambda request: pages.get(request.url.path, httpx.Response(404))


@pytest.mark.parametrize(
    ("metrics", "engine"),
    [
        ("# HELP x\nvllm:num_requests_running 0\n", "vllm"),
        ("sglang:num_running_reqs 0\n", "sglang"),
        ("llamacpp:requests_processing 0\n", "llama.cpp"),
        ("trtllm_num_requests_running 0\n", "trtllm"),
    ],
)
def test_a_proxy_is_seen_through_by_the_metrics(metrics: str, engine: str) -> None:
    assert detect(answering(answers(served("my-proxy", metrics)))).name == engine


def test_another_server_of_the_same_api_is_told() -> None:
    with pytest.raises(WrongApi, match="neither that nor its metrics"):
        detect(answering(answers(served("ollama", "ollama_requests 3\n"))))


@pytest.mark.parametrize(
    "models",
    [
        httpx.Response(404),
        httpx.Response(200, text="<html>hello</html>"),
        httpx.Response(200, json={"data": []}),
        httpx.Response(200, json=[1, 2]),
        httpx.Response(200, json={"data": [{"name": "x"}]}),
    ],
)
def test_what_is_no_such_api_is_told(models: httpx.Response) -> None:
    with pytest.raises(WrongApi, match=r"OpenAI-compatible|lists no model"):
        detect(answering(answers({"/v1/models": models})))


def test_nobody_there() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused", request=request)

    with pytest.raises(EndpointDown, match="Connection refused"):
        detect(answering(refuse))


def test_a_token_is_asked_for() -> None:
    with pytest.raises(EndpointRefused, match="PLANNER_API_KEY"):
        detect(answering(lambda _: httpx.Response(401)))
