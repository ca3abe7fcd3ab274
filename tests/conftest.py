"""
The array libraries on which every definition is tried. One that is missing fails the tests: a check that cannot run has
failed. And which tests are thorough: those marked so, and all in the folder of that name.
"""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings

from posref import backends

pytest.register_assert_rewrite("every_encoding")
gc.set_threshold(20_000, 20, 20)  # thousands of modules stay: the usual 700 goes through them far too often
os.environ["POSREF_PASS"] = "UNRULY,FORGED"  # what targets in tests read
os.environ.pop("PYTHONUNBUFFERED", None)  # processes that tests start buffer what they print, as they do elsewhere
THOROUGH, GPU = (Path(__file__).with_name(name) for name in ("thorough", "gpu"))
PLAIN = "not thorough"
SHARE = 0.0625  # of what is sampled, in a thorough run
TURNS = 5  # seeds in a row with which every dear test is run once
EXAMPLES = {"plain": 15, "thorough": 100}  # on which an invariant is tried
SHARING = ("test_reference", "test_reports", "test_bounds", "test_html")  # files whose tests read the same reports
SPLIT = 4  # parts of the test of every encoding that workers take
LONGEST = (
    "test_every_encoding", "test_proof", "test_bounds", "test_site_pages", "test_from_config_transformers", "test_gradients",
    "test_scope", "test_protocol", "test_diagnosis", "test_process",
    "test_reference_on_jax", "test_jax_jit", "test_reference_on_dask", "test_compilers", "test_pairs", "test_reuse",
    "test_config_parts_transformers", "test_adapter_helpers", "test_deviations", "test_defects", "test_benchmarks",
)  # fmt: skip
if sys.dont_write_bytecode:  # else each process that a test starts would compile posref anew
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
SWITCHES = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
 --disable-component-update --disable-sync --disable-dev-shm-usage"""
SAMPLED = pytest.StashKey[bool]()
KEPT = 1000  # arrays made for JAX until it forgets the programs that it compiled for their shapes
LIBRARIES = ("numpy", "torch", "jax", "jax_x64", "dask", "array_api_strict")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("posref's own tests")
    group.addoption("--seed", type=int, help="which of the sampled tests a thorough run has; by the date unless given")
    group.addoption("--everything", action="store_true", help="run all of them, and what judges all of them together")


def pytest_configure(config: pytest.Config) -> None:
    """Settle the share and the seed, in one process for all workers: of tests that are named, all are run."""
    option = config.option
    plain = option.markexpr == PLAIN
    examples = EXAMPLES["plain" if plain else "thorough"]
    settings.register_profile("invariants", max_examples=examples, deadline=None, derandomize=True)
    if hasattr(config, "workerinput"):
        option.seed = int(os.environ["POSREF_SEED"])
        return
    for name in ("backends", "conformance"):  # links of a checkout; an sdist holds none
        with suppress(OSError):  # it is there, or this is no checkout
            (Path(__file__).parents[1] / "posref" / name).symlink_to(Path("..", name))
    if option.seed is None:
        option.seed = int(datetime.now(tz=UTC).strftime("%Y%m%d"))
    by_name = option.keyword or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    config.stash[SAMPLED] = not (plain or by_name or option.everything)
    os.environ["POSREF_SHARE"] = str(SHARE if config.stash[SAMPLED] else 1)
    os.environ["POSREF_SEED"] = str(option.seed)
    os.environ["POSREF_BY_NAME"] = "1" if by_name else ""


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which share of the thorough tests is run, and how to run the same again."""
    if not config.stash.get(SAMPLED, False):
        return None
    seed = config.option.seed
    return f"thorough tests: {SHARE} of those sampled, one in {TURNS} dear ones, by --seed {seed}; --everything runs all"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """
    Leave the folder of thorough tests unread in a plain run: what they import takes longer to load than most tests take.

    The tests for a GPU are run where they are named: pytest tests/gpu.
    """
    if collection_path == GPU:
        return (
            not any(GPU in (path, *path.parents) for path in (Path(arg.split("::")[0]).resolve() for arg in config.args))
            or None
        )
    return True if collection_path == THOROUGH and config.option.markexpr == PLAIN else None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Mark what is in the folder of thorough tests, leave out the dear ones whose turn it is not, and begin with the files that
    take longest: a worker runs a whole file.
    """
    for item in items:
        if THOROUGH in item.path.parents:
            item.add_marker(pytest.mark.thorough)
    if float(os.environ["POSREF_SHARE"]) < 1:
        dear = [item for item in items if any(mark.kwargs.get("dear") for mark in item.iter_markers("thorough"))]
        others = [item for k, item in enumerate(dear) if (k + int(os.environ["POSREF_SEED"])) % TURNS]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give every worker whole files, whose tests share reports, or several of them; the test of every encoding in parts."""
    if config.option.dist != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if "every_encoding" in file:
                return f"{file} {crc32(nodeid.encode()) % SPLIT}"
            return "of shared reports" if Path(file).stem in SHARING else str(file)

    return Scheduling(config, log)


def interruptible() -> None:
    """Have a child process heed ctrl-c and a closed terminal, also where a script or nohup ignores them for the tests."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@dataclass(frozen=True)
class Library:
    """An array library as the tests use it: host arrays in, host arrays out."""

    name: str
    backend: ModuleType
    device: Any = None

    @property
    def xp(self) -> Any:
        return self.backend.namespace()

    @property
    def dtypes(self) -> tuple[str, ...]:
        return self.backend.dtypes

    def dtype(self, name: str) -> Any:
        return self.backend.dtype(name)

    def array(self, x: Any, dtype: str | None = None) -> Any:
        """Return host numbers in the library: reals rounded once to `dtype`, integers as they are."""
        return self.backend.from_numpy(np.asarray(x), dtype, self.device)

    def host(self, x: Any) -> np.ndarray:
        return self.backend.to_numpy(x)


@pytest.fixture(autouse=True)
def path_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what commands and targets add to sys.path: processes that later tests start would look there first."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture(autouse=True, scope="session")
def cache_is_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep caches in a folder of this run, which its processes share: the user's are neither read nor added to."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_CACHE_HOME", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"))
        yield


@pytest.fixture
def compiled_code_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what JAX compiled for a test, and in a long one now and then: a program for each shape takes gigabytes in all."""
    import jax

    library, made = backends.load("jax"), count(1)
    from_numpy = library.from_numpy

    def counted(*arguments: Any, **options: Any) -> Any:
        if next(made) % KEPT == 0:
            jax.clear_caches()
        return from_numpy(*arguments, **options)

    monkeypatch.setattr(library, "from_numpy", counted)
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium as Debian has it, which loads nothing from outside."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    assert all(programs.values()), "pages are tested in a browser: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    for switch in SWITCHES.split():
        options.add_argument(switch)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(programs["chromedriver"])))
    yield driver
    driver.quit()


@contextmanager
def opened(name: str, device: Any = None) -> Iterator[Library]:
    """Yield a library; JAX with 64 bits while it is used, where its name says so."""
    with ExitStack() as stack:
        if name == "jax_x64":
            import jax

            stack.enter_context(jax.enable_x64(True))
        yield Library(name, backends.load(name.removesuffix("_x64")), device)


@pytest.fixture(params=[pytest.param(n, marks=pytest.mark.thorough) if n.startswith("jax") else n for n in LIBRARIES])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    with opened(request.param) as found:
        yield found
