"""
Configurations as several versions of transformers write them: does from_config read them as the newest version does?

    python tests/config_versions.py PYTHON ... --newest PYTHON [--details]

Each PYTHON is an interpreter whose environment has one version of transformers; torch is not needed. Each version writes the
default configuration of every model type, once with altered sizes, each complete (``to_dict``) and sparse (``to_diff_dict``).
The newest version's files are also changed in one part at a time: the part is null, absent, empty, or without its type. The
newest version reads and rewrites every file, and posref reads both. A file is

- alike, if posref finds the same components in both; different, if components have other values;
- smaller, if a component of the rewritten file is missing without a word, the failure that this script looks for;
- refused, if posref says why (by both: in the rewritten file too); unread, if the newest version cannot read it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOUBLED = ("hidden_size", "embed_dim", "d_model", "n_embd", "rope_theta", "max_position_embeddings")


# ---- in the environment of one version ---------------------------------------------------------------------------------------
def altered(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with other sizes in every part, which keep what heads divide."""
    found = {}
    for key, value in config.items():
        if isinstance(value, dict) and key.endswith(("config", "encoder", "decoder", "generator")):
            found[key] = altered(value)
        elif key in DOUBLED and isinstance(value, int | float) and not isinstance(value, bool):
            found[key] = 2 * value
        else:
            found[key] = value
    return found


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    return json.loads(json.dumps(value, default=str))


def write(path: str) -> None:
    """Write the configurations of the installed version, one a line: type, kind and file."""
    from transformers import CONFIG_MAPPING, __version__

    with Path(path).open("w", encoding="utf-8") as out:
        for name in [*CONFIG_MAPPING.keys()]:  # its iteration needs torch
            kind = CONFIG_MAPPING[name]
            for alter in (False, True):
                try:
                    config = kind()
                    config = kind(**altered(plain(config.to_dict()))) if alter else config
                    files = {"complete": plain(config.to_dict()), "sparse": plain(config.to_diff_dict())}
                except Exception:  # (what a class cannot write is no file)
                    continue
                for form, file in files.items():
                    file.setdefault("model_type", name)
                    how = f"{__version__} {'altered' if alter else 'default'} {form}"
                    out.write(json.dumps([name, how, file]) + "\n")


def rewrite(source: str, path: str) -> None:
    """Read every file and write it again; null if the installed version cannot read it."""
    from transformers import CONFIG_MAPPING

    with Path(source).open(encoding="utf-8") as files, Path(path).open("w", encoding="utf-8") as out:
        for line in files:
            name, _, file = json.loads(line)
            try:
                kind = CONFIG_MAPPING[file.get("model_type", name)]
                found = plain(kind.from_dict(file).to_dict())
                found["model_type"] = file.get("model_type", name)
            except Exception:  # any refusal
                found = None
            out.write(json.dumps(found) + "\n")


# ---- here ------------------------------------------------------------------------------------------------------------------
def changed(files: list[list[Any]]) -> Iterator[list[Any]]:
    """Yield default files with one part changed."""
    from posref.models.model_types import model_type

    for name, how, file in files:
        if not how.endswith("default complete"):
            continue
        row = model_type(model_type(name).get("like", name))
        for key in row.get("parts", {}):
            rest = {other: value for other, value in file.items() if other != key}
            yield [name, f"{key} absent", rest]
            yield [name, f"{key} null", {**rest, key: None}]
            if isinstance(file.get(key), dict):
                yield [name, f"{key} empty", {**rest, key: {}}]
                inner = {other: value for other, value in file[key].items() if other != "model_type"}
                yield [name, f"{key} without type", {**rest, key: inner}]
                yield [name, f"{key} of the parent's type", {**rest, key: {**inner, "model_type": name}}]


def answer(file: Any) -> Any:
    """Return what from_config says, with an error as text."""
    import posref

    try:
        return posref.from_config(file)
    except ValueError as error:
        return str(error)


def outcome(direct: Any, rewritten: Any) -> str:
    """Return the word for a file: see the head of this module."""
    if rewritten is None:
        return "unread, refused" if isinstance(direct, str) else "unread"
    after = answer(rewritten)
    if isinstance(direct, str) or isinstance(after, str):
        both = isinstance(direct, str) and isinstance(after, str)
        return "refused by both" if both else "refused" if isinstance(direct, str) else "refused rewritten"
    after = {name: entries for name, entries in after.items() if name in direct or not is_usual_scale(name, after)}
    if direct.keys() < after.keys():
        return "smaller"
    if direct.keys() != after.keys():
        return "other components"
    return "alike" if direct == after else "different"


def is_usual_scale(name: str, found: Any) -> bool:
    """Return whether a component is a scale of 1/sqrt(head size), which attention has anyway: heads rotate whole."""
    heads = {entry.options.get("rotary_dim") for entry in found.get(name.removesuffix(" scale"), ()) if entry}
    scales = [entry.options for entry in found[name] if entry]
    return name.endswith(" scale") and len(heads) == 1 and all(one == {"scale": float(*heads) ** -0.5} for one in scales)


def main() -> None:
    """Write, rewrite, read and count."""
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2])
        return
    if sys.argv[1:2] == ["--rewrite"]:
        rewrite(*sys.argv[2:4])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*")
    parser.add_argument("--newest", required=True)
    parser.add_argument("--details", action="store_true", help="Print every file that is not alike.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "files.jsonl")
        files = list[list[Any]]()
        for python in [*given.pythons, given.newest]:
            subprocess.run([python, __file__, "--write", str(written)], check=True, stderr=subprocess.DEVNULL)
            read = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
            files += read
            if python == given.newest:
                files += changed(read)
        written.write_text("\n".join(map(json.dumps, files)) + "\n", encoding="utf-8")
        after = Path(folder, "after.jsonl")
        subprocess.run([given.newest, __file__, "--rewrite", str(written), str(after)], check=True, stderr=subprocess.DEVNULL)
        rewritten = [json.loads(line) for line in after.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, Counter[str]] = {}
    for (name, how, file), other in zip(files, rewritten, strict=True):
        direct = answer(file)
        word = outcome(direct, other)
        kind = how if how[0].isdigit() else f"one part {how.partition(' ')[2]}"
        counts.setdefault(kind, Counter())[word] += 1
        if given.details and word not in ("alike", "refused by both"):
            after_it = answer(other) if other is not None else None
            print(f"{word}: {name}, {how}\n  {direct}\n  {after_it}")
    for kind, found in counts.items():
        print(f"{kind}: {', '.join(f'{count} {word}' for word, count in found.most_common())}")


if __name__ == "__main__":
    main()
