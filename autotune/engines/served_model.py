"""The model that an endpoint serves, and who says so."""

from dataclasses import dataclass

from autotune.load.endpoint import Endpoint
from autotune.load.errors import WrongApi

MODELS = "/v1/models"
_MAX_NAME, _MAX_VERSION = 4096, 200


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The first model that the endpoint lists."""

    name: str
    """As requests must give it."""
    owner: str
    """`owned_by`: engines put their own name there."""


def served_model(endpoint: Endpoint) -> ServedModel:
    """What `/v1/models` lists first.

    Raises:
        EndpointFailure: nobody answers, or it is not the OpenAI API.
    """
    where = endpoint.address + MODELS
    try:
        page = endpoint.get_json(MODELS)
    except WrongApi as error:
        raise WrongApi(
            f"{endpoint.address} is no OpenAI-compatible endpoint: {error}; give the address of "
            "vLLM, SGLang, TensorRT-LLM or llama-server itself"
        ) from None
    rows = page.get("data") if isinstance(page, dict) else None
    first = rows[0] if isinstance(rows, list) and rows else None
    if not isinstance(first, dict) or not isinstance(first.get("id"), str):
        raise WrongApi(f"{where} lists no model; is it still loading?")
    if len(first["id"]) > _MAX_NAME:
        raise WrongApi(f"{where} lists a model whose name has {len(first['id'])} characters")
    owner = first.get("owned_by")
    return ServedModel(first["id"], owner if isinstance(owner, str) else "")


class ModelName:
    """The name that requests must give, asked for when it is first needed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._name: str | None = None

    def __call__(self) -> str:
        """The name.

        Raises:
            EndpointFailure: as `served_model`.
        """
        if self._name is None:
            self._name = served_model(self._endpoint).name
        return self._name


def stated_version(endpoint: Endpoint) -> str | None:
    """What `/version` states; None where it does not."""
    try:
        page = endpoint.get_json("/version")
    except WrongApi:
        return None
    version = page.get("version") if isinstance(page, dict) else None
    return version[:_MAX_VERSION] if isinstance(version, str) else None
