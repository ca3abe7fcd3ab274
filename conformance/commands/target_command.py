"""The commands `posref adapter` and `protocol`: write an adapter that runs, check a program's messages, let a target answer."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from ..suite.safe_files import is_standard_output, whole_file
from ..targets import limits
from .console import FILE, MEMORY, FiniteRange, console, errors

LIKE = Path(__file__).parents[1] / "adapters" / "like"
SUFFIX = ".py.txt"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # of a package
KINDS = tuple(sorted(file.name.removesuffix(SUFFIX) for file in LIKE.glob(f"*{SUFFIX}")))


@click.group()
def adapter() -> None:
    """Write an adapter: a file that wraps a library's functions, so that posref can check them."""


@adapter.command("new")
@click.argument("name")
@click.option(
    "--like", "kind", type=click.Choice(KINDS), required=True, help="The signatures that the library's functions resemble."
)
@click.option("-o", "--output", type=FILE, help="The file to write; it must not exist  [default: posref_NAME.py].")
def new(name: str, kind: str, output: Path | None) -> None:
    """
    Write an adapter for the library NAME. It runs as written.

    \b
    vllm          rotate(positions, query, key, head_size, cos_sin_cache, is_neox): flat tokens, in place
    flash-attn    rotate(x, cos, sin, interleaved, seqlen_offsets): an offset for every row
    transformers  cos, sin = Module(config)(x, position_ids), then apply(q, k, cos, sin)
    jax           rotate(x, positions, base) of JAX arrays
    module        cos, sin = Module(dim, base)(x, length) in the dtype of x, then rotate(x, cos, sin)
    table         make(rows, dim, base) from position 0 on, then apply(x, cos, sin)
    hf            apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim), a drop-in for transformers
    thd           rotate(x, cos, sin, cu_seqlens, seqlen_offsets): packed sequences
    cache         kernel(qkv, q_weight, k_weight, positions, cos_sin_cache, k_cache, v_cache, slot_mapping)
    per-head      write(key, value, k_cache, v_cache, k_scales, v_scales, slot_mapping): 8 bits, own scales (vLLM)
    flashinfer    apply_rope(q, k, indptr, offsets), with pos_ids, with cos_sin_cache, and rope_quantize_fp8
    axis-map      rotate(q, k, cos_sin_cache, positions, axis_map): an axis for each pair (SGLang)
    te            rotate(t, freqs, cu_seqlens, cp_size, cp_rank): packed sequences on several ranks (TransformerEngine)
    from-zero     Module(dim, base)(q, k): from position 0 on (torchembed)
    functional    rotary_embedding(x, cos, sin, position_ids, interleaved), as proposed for PyTorch

    Choose by the functions' signatures, not by the framework.
    """
    from ..errors import TargetError

    with errors():
        if not NAME.fullmatch(name):
            msg = f"adapter new: NAME must be a package's name, of letters, digits, '-', '_' and '.'; got {name!r}."
            raise TargetError(msg)
        path = output or Path(f"posref_{name.replace('-', '_')}.py")  # not the library's own name: the file imports that
        if path.exists() and not is_standard_output(path):
            msg = f"adapter new: {path} must not exist yet; give another file with -o."
            raise TargetError(msg)
        text = (LIKE / f"{kind}{SUFFIX}").read_text(encoding="utf-8").format(name=name, file=path)
        whole_file(path, text)
    console(err=is_standard_output(path)).print(
        f"wrote {path}. It runs as it is: posref check {path}", highlight=False, markup=False
    )


@click.group()
def protocol() -> None:
    """Lint or serve the protocol that lets posref check programs in other languages."""


@protocol.command("lint", context_settings={"ignore_unknown_options": True})
@click.argument("command", metavar="-- PROGRAM [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--timeout", metavar="S", type=FiniteRange(0, min_open=True), default=limits.TIMEOUT, show_default=True,
              help="Seconds for each reply; ten times as many to start.")  # fmt: skip
@click.option("--memory", metavar="GIB", type=MEMORY, default=limits.MEMORY, show_default=True,
              help="Memory limit of the program; 0 is no limit.")  # fmt: skip
def lint_command(command: tuple[str, ...], timeout: float, memory: float) -> None:
    """
    Check every message of PROGRAM, and print each wrong one with what was expected.

    Exit code 0: it speaks the protocol; 1: it does not; 2: it could not be run.
    """
    from ..targets.lint import lint

    with errors():
        problems = lint(command, timeout=timeout, memory=memory, say=click.echo)
    sys.exit(1 if problems else 0)


@protocol.command("serve")
@click.argument("target")
@click.option("--backend", metavar="B", help="The array library of TARGET, if it does not name one.")
@click.option("--dtype", metavar="D", help="Offer only float64, float32, bfloat16 or float16.")
@click.option("--device", metavar="DEVICE", help="The device for arrays, as the array library names it.")
def serve_command(target: str, backend: str | None, dtype: str | None, device: str | None) -> None:
    """Answer the protocol on standard input and output for the Python TARGET, as a program in another language does."""
    from ..targets.server import serve

    sys.path.insert(0, "")
    with errors():
        serve(target, backend=backend, dtype=dtype, device=device)
