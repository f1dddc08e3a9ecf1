"""Address of an endpoint and the token it wants; neither may leak the other."""

import os
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from planner.errors import InputError

TOKEN_VARIABLE = "PLANNER_API_KEY"  # noqa: S105 - the variable's name, not a token
"""Environment variable that holds the endpoint's token; there is no option for it."""
_API_PATH = re.compile(r"/(v1|metrics|health)/?$")


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A bearer token that no text shows."""

    secret: str

    def __repr__(self) -> str:
        return "Token(***)"

    def scrubbed(self, text: str) -> str:
        """The text without the token: endpoints repeat what they refuse."""
        return text.replace(self.secret, "***")


def token_from_environment(variable: str = TOKEN_VARIABLE) -> Token | None:
    """The token in the environment; None where there is none.

    Raises:
        InputError: it holds characters that no HTTP header carries.
    """
    secret = os.environ.get(variable, "").strip()
    if not secret:
        return None
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise InputError(
            f"{variable} holds characters that an HTTP header cannot carry; "
            "set it to the token alone, without quotes or line breaks"
        )
    return Token(secret)


def base_address(text: str) -> str:
    """`http://host:port[/prefix]` of what the user typed.

    Raises:
        InputError: another scheme, no host, or a user, password or query in it.
    """
    text = text.strip()
    parts = _split(text if "://" in text else f"http://{text}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(
            f"an endpoint is http://HOST:PORT or https://HOST, got {_without_secrets(parts)!r}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            "an endpoint's address may hold no user, password or query; "
            f"put the token into the environment variable {TOKEN_VARIABLE}"
        )
    path = _API_PATH.sub("", parts.path.rstrip("/"))
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), "", ""))


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError as error:
        raise InputError(f"an endpoint is http://HOST:PORT: {error}") from None
    return parts


def _without_secrets(parts: SplitResult) -> str:
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
