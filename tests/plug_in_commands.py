"""What a package behind the entry-point group would offer."""

import typer


def greet(name: str = "nobody") -> None:
    typer.echo(f"hello {name}")


def build(plan: str) -> None:
    typer.echo(f"building for {plan}")
