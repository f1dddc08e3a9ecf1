"""Options of the verbs that start an engine themselves."""

from typing import Annotated

import typer

Program = Annotated[
    str | None, typer.Option(metavar="WORDS", help="Engine in the place of the plan's word.")
]
EngineArgs = Annotated[
    str | None, typer.Option(metavar="WORDS", help="Further words for the engine.")
]
Port = Annotated[
    int | None, typer.Option(metavar="N", min=1, max=65535, help="Port for the engine.")
]
