"""What a package behind the entry-point group would offer."""

import typer


def greet(name: str = "nobody") -> None:
    typer.echo(f"hello {name}")
