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
@click.option("-o", "--output", type=FILE, help="The file; posref_NAME.py if it is not given. It must not exist.")
def new(name: str, kind: str, output: Path | None) -> None:
    """
    Write a target that runs, for the library NAME.

    \b
    vllm          rotate(positions, query, key, head_size, cos_sin_cache, is_neox): flat tokens, in place
    flash-attn    rotate(x, cos, sin, interleaved, seqlen_offsets): an offset for every row
    transformers  cos, sin = Module(config)(x, position_ids), then apply(q, k, cos, sin)
    jax           rotate(x, positions, base) of JAX arrays
    module        cos, sin = Module(dim, base)(x, length) in the dtype of x, then rotate(x, cos, sin)
    table         make(rows, dim, base) from position 0 on, then apply(x, cos, sin)

    Choose by the form of the functions, not by the framework.
    """
    from ..errors import TargetError

    with errors():
        path = output or Path(f"posref_{name.replace('-', '_')}.py")  # not the library's own name: the file imports that
        if path.exists():
            msg = f"adapter new: {path} must not exist yet; give another file with -o."
            raise TargetError(msg)
        text = (LIKE / f"{kind}{SUFFIX}").read_text(encoding="utf-8").format(name=name, file=path)
        path.write_text(text, encoding="utf-8")
    console().print(f"wrote {path}. It runs as it is: posref check {path}", highlight=False, markup=False)
