"""What can go wrong at an endpoint; every one of these is exit 4, and none repeats a token.

OutsideFailure
+-- EndpointFailure
    +-- EndpointDown        no connection, time-out, or a stream that broke off
    +-- EndpointRefused     401 or 403
    +-- EndpointError       any other status that is not 2xx
    +-- WrongApi            an answer, but not one of the API that was asked for
"""

from planner.errors import OutsideFailure


class EndpointFailure(OutsideFailure):
    """An engine's endpoint did not do what its API says."""


class EndpointDown(EndpointFailure):
    """Nobody answers, or not in time, or the answer broke off."""


class EndpointRefused(EndpointFailure):
    """The endpoint wants another token, or one at all."""


class EndpointError(EndpointFailure):
    """The endpoint answered with an error status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class WrongApi(EndpointFailure):
    """What answers is not the API that was asked for."""
