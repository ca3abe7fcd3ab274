"""
Sessions in environments of their own.

`nox -s everything` runs all tests, where `.ci/run` takes a share of those that cover all pairs.
`nox -s lowest` runs the plain tests at the lowest versions that are allowed; `nox -s constraints` writes the constraints of CI.
`nox -s cupy` writes what the stand-in for CuPy takes.
`nox -s gpu` runs the suite, tests and benchmarks of a GPU; without a GPU it says what it would run.
`nox -s release` builds what would be published, installs it from a local index, and runs the tests of the sdist.
`nox -s scoreboard` checks released libraries and writes docs/scoreboard.md; `nox -s docs` builds the site.
"""

import shlex
import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["scoreboard"]

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
CONSTRAINTS = ".github/constraints"
TORCH = "torch==2.13.0"  # first, from where pip finds a build for this machine, so that no library picks another
TRITON = "triton==3.9.0"
CUPY = "cupy-cuda12x==14.2.0"
ON_A_GPU = (
    ("posref", "check", "posref", "--backend", "torch", "--device", "cuda"),
    ("posref", "check", "posref", "--backend", "cupy"),
    ("pytest", "tests/gpu"),
    ("python", "-m", "benchmarks", "gpu", "-o", "benchmarks/gpu.json"),  # the site shows this file
)
RELEASED = {  # adapter: what is installed, in order; a list is installed without its dependencies
    "diffusers": [TORCH, "diffusers==0.42.1"],
    "equinox": ["equinox==0.13.8"],
    "fla_core": [TORCH, "einops", TRITON, ["fla-core==0.6.0"]],
    "flash_attn": [TORCH, "einops", ["--no-build-isolation", "flash-attn==2.8.3.post2"]],
    "flash_attn_triton": [TORCH, "einops", TRITON, ["--no-build-isolation", "flash-attn==2.8.3.post2"]],
    "ggml": ["llama-cpp-python==0.3.36"],
    "keras_hub": [["keras-hub==0.32.0"], "keras==3.15.1", "jax==0.10.2", "kagglehub", "regex", "sentencepiece", "tokenizers"],
    "liger_kernel": [TORCH, "transformers==5.23.0", TRITON, ["liger-kernel==0.8.5"]],
    "litgpt": [TORCH, "litgpt==0.5.13"],
    "megatron_core": [TORCH, ["megatron-core==0.16.1"]],
    "mlx": ["mlx[cpu]==0.32.4"],
    "mlx_lm": ["mlx-lm[cpu]==0.32.2"],
    "onnx": ["onnx==1.23.2"],
    "onnxruntime": ["onnxruntime==1.32.0", "onnx==1.23.2"],
    "rotary_embedding_torch": [TORCH, "rotary-embedding-torch==0.9.1"],
    "sglang": [TORCH, "transformers==5.23.0", ["sglang==0.5.23"]],
    "sglang_triton": [TORCH, "transformers==5.23.0", TRITON, ["sglang==0.5.23"]],
    "timm": [TORCH, ["timm==1.0.31"]],
    "torchtune": [TORCH, "torchtune==0.6.1", ["torchao==0.9.0"]],
    "transformers": [TORCH, "transformers==5.24.0"],
    "vllm": [TORCH, "transformers==5.23.0", ["vllm==0.33.0"]],
    "vllm_triton": [TORCH, TRITON, ["vllm==0.33.0"]],
    "x_transformers": [TORCH, "x-transformers==2.31.10"],
}


@nox.session
def everything(session: nox.Session) -> None:
    """Run every test, plain and thorough, with what judges all that is sampled together; it takes some hours on two cores."""
    session.install(TORCH)
    session.install(".[test]")
    session.run("pytest", *session.posargs)
    session.run("pytest", "-m", "thorough", "--everything", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """Run the plain tests with the lowest versions that posref allows."""
    session.install("uv")
    versions = f"{session.create_tmp()}/lowest.txt"
    session.run(
        "uv", "pip", "compile", "--quiet", "--resolution", "lowest-direct", "--extra", "test", "pyproject.toml", "-o", versions
    )
    session.install("-r", versions)
    session.install("--no-deps", ".")
    session.run("pytest", *session.posargs)


@nox.session
def constraints(session: nox.Session) -> None:
    """Write what CI installs, with hashes: a file for each version of Python, and one of the tools of a release."""
    session.install("uv")
    for version in PYTHONS:
        _write_constraints(session, f"py{version}", version, "--extra", "test", "pyproject.toml")
    _write_constraints(session, "release", PYTHONS[0], "-c", f"{CONSTRAINTS}/py{PYTHONS[0]}.txt", f"{CONSTRAINTS}/release.in")


def _write_constraints(session: nox.Session, name: str, version: str, *source: str) -> None:
    """Write packages with their hashes."""
    chosen = ("--universal", "--python-version", version, "--generate-hashes", "--no-header", "--upgrade")
    session.run("uv", "pip", "compile", "--quiet", *chosen, *source, "-o", f"{CONSTRAINTS}/{name}.txt")


@nox.session
def cupy(session: nox.Session) -> None:
    """Write what CuPy's functions take, for the tests' stand-in: its wheel needs no GPU. With --check, only compare."""
    session.install(CUPY)
    session.run("python", "tests/gpu/signatures.py", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """Run the suite on PyTorch and CuPy, the tests and the benchmarks of a GPU; without a GPU, say what would run."""
    packages = (TORCH, CUPY, ".[test]")
    if not shutil.which("nvidia-smi"):
        session.log("There is no GPU here (no nvidia-smi). On a machine with one, this session would run:")
        for command in (("pip", "install", *packages), *ON_A_GPU):
            session.log(shlex.join(command))
        return
    session.install(*packages)
    for command in ON_A_GPU:
        session.run(*command)


@nox.session
def release(session: nox.Session) -> None:
    """Build a wheel and an sdist, install from a local index of them, and run the tests that the sdist has."""
    session.install("build", "twine")
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(folder / "index" / "posref"))
    files = sorted((folder / "index" / "posref").iterdir())
    session.run("twine", "check", "--strict", *map(str, files))
    links = "".join(f'<a href="{file.name}">{file.name}</a>' for file in files)
    (folder / "index" / "posref" / "index.html").write_text(links, encoding="utf-8")
    session.install(TORCH)
    session.install("--no-deps", "--index-url", (folder / "index").as_uri(), "posref")
    session.install("posref[test]")
    sdist = next(file for file in files if file.suffix == ".gz")
    shutil.unpack_archive(sdist, folder, filter="data")
    session.chdir(folder / sdist.name.removesuffix(".tar.gz"))
    session.run("pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in site/html; it needs no network once the packages are there."""
    session.install(".[docs]")
    session.run("python", "docs/site/pages.py", "site")
    session.run("sphinx-build", "-W", "--keep-going", "-d", "site/trees", "site/source", "site/html")


@nox.session
@nox.parametrize("library", list(RELEASED), ids=list(RELEASED))
def scoreboard(session: nox.Session, library: str) -> None:
    """Check one library at its released version, repeat what was found in it, and write the page anew."""
    session.env.update(FLASH_ATTENTION_SKIP_CUDA_BUILD="TRUE", FLASH_ATTENTION_FORCE_BUILD="TRUE")
    torch = [package for package in RELEASED[library] if package == TORCH]
    session.install(*torch, ".")
    for package in RELEASED[library]:
        session.install(*(["--no-deps", *package] if isinstance(package, list) else [package, *torch]))
    report = f"{session.create_tmp()}/{library}.json"
    options = ("--timeout", "300", "--seed", "1", "--json", report)  # a seed, so that another run gives the same row
    session.run("posref", "check", library, *options, success_codes=[0, 1], silent=True)
    session.run("python", "docs/scoreboard.py", "prove", library)
    session.run("python", "docs/findings.py", "patched", library)
    session.run("python", "docs/scoreboard.py", "add", report)
