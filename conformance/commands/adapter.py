"""The command that begins an adapter: a file that runs, in which a library's own functions are put."""

from __future__ import annotations

from pathlib import Path

import click

from .console import FILE, console, errors

LIKE = Path(__file__).parents[1] / "adapters" / "like"
SUFFIX = ".py.txt"
KINDS = tuple(sorted(file.name.removesuffix(SUFFIX) for file in LIKE.glob(f"*{SUFFIX}")))


@click.group()
def adapter() -> None:
    """Write a file that wraps a library's functions, to be checked."""


@adapter.command("new")
@click.argument("name")
@click.option("--like", "kind", type=click.Choice(KINDS), required=True, help="What the library's functions are like.")
@click.option("-o", "--output", type=FILE, help="The file; NAME.py if it is not given. It must not exist.")
def new(name: str, kind: str, output: Path | None) -> None:
    """
    Write a target that runs, for the library NAME.

    vllm: flat tokens, in place. flash-attn: an offset for every row. transformers: a module made from a configuration. jax:
    functions of JAX arrays. table: a cache from position 0 on.
    """
    from ..errors import TargetError

    with errors():
        path = output or Path(f"{name.replace('-', '_')}.py")
        if path.exists():
            msg = f"adapter new: {path} must not exist yet; give another file with -o."
            raise TargetError(msg)
        text = (LIKE / f"{kind}{SUFFIX}").read_text(encoding="utf-8").format(name=name, file=path)
        path.write_text(text, encoding="utf-8")
    console().print(f"wrote {path}. It runs as it is: posref check {path}", highlight=False, markup=False)
