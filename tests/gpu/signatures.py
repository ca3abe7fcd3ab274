"""
Write what CuPy's functions take into cupy.json, from the installed wheel; it imports without a GPU. Nothing is run on one.

    python tests/gpu/signatures.py [--check]

The tests' stand-in for CuPy (standin.py) is made from that file: it refuses the calls that CuPy would refuse.
"""

import ast
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("cupy.json")
MODULES = ("", "linalg")
COMPILED = re.compile(r"^[\w.]*\.(\w+)(\(.*\))(?: -> [\w.]+)?$")


def described(thing: Any) -> dict[str, Any] | None:
    """Return what a member of a module takes; None if the stand-in does without it."""
    kind = type(thing).__name__
    if kind == "ufunc":
        return {"kind": "ufunc", "nin": thing.nin, "types": list(thing.types)}
    if kind == "_GUFunc":
        return {"kind": "function", "signature": plain(inspect.signature(thing))}
    if inspect.isfunction(thing):
        return {"kind": "function", "signature": plain(inspect.signature(thing))}
    if inspect.isbuiltin(thing) or kind == "cython_function_or_method":
        return {"kind": "function", "signature": of_docstring(thing)}
    if isinstance(thing, float) or thing is None:
        return {"kind": "constant"}
    if inspect.isclass(thing) and thing.__module__ in ("numpy", "cupy", "cupy._core.core"):
        return {"kind": "class"}
    return None


def plain(signature: inspect.Signature) -> str:
    """Return a signature without types, whose defaults can be read anywhere: those that are objects become None."""
    simple = (bool, int, float, str, type(None))
    parameters = [
        p.replace(annotation=p.empty, default=p.default if p.default is p.empty or isinstance(p.default, simple) else None)
        for p in signature.parameters.values()
    ]
    return str(inspect.Signature(parameters))


def of_docstring(thing: Any) -> str | None:
    """Return the signature of a compiled function, as Cython writes it into the docstring; None if it writes none."""
    first = (thing.__doc__ or "").strip().split("\n", maxsplit=1)[0]
    match = COMPILED.match(first)
    if match is None:
        return None
    text = re.sub(r"([(, ])(?:int|bint|str|tuple|list|dict|bool|Py_ssize_t) (\w)", r"\1\2", match[2])  # the types of C
    text = re.sub(r"^\(self(?:, )?", "(", text)
    try:
        ast.parse(f"def f{text}: pass")
    except SyntaxError:
        return None
    return text


def of_arrays(cls: type) -> dict[str, Any]:
    """Return the attributes of the array class, and its methods with what they take."""
    attributes, methods = [], {}
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if member is None or (name.startswith("_") and not name.startswith("__")) or name in vars(object):
            continue  # __array_namespace__ = None says that there is none
        if callable(getattr(cls, name)):
            methods[name] = of_docstring(getattr(cls, name))
        else:
            attributes.append(name)
    compared = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]
    return {"attributes": attributes, "methods": methods | dict.fromkeys(compared)}


def found() -> dict[str, Any]:
    import cupy

    modules = {}
    for module in MODULES:
        here = getattr(cupy, module) if module else cupy
        members = {name: described(getattr(here, name)) for name in sorted(dir(here)) if not name.startswith("_")}
        modules[module] = {name: told for name, told in members.items() if told is not None}
    where = cupy._sorting.search._where_ufunc
    modules[""]["where"] |= {"types": list(where.types), "nin": where.nin}  # behind a function of three arguments
    return {"version": cupy.__version__, "modules": modules, "ndarray": of_arrays(cupy.ndarray)}


def main(*options: str) -> int:
    data = found()
    rows = [f'"version": {json.dumps(data["version"])}', f'"ndarray": {json.dumps(data["ndarray"])}']
    for module, members in data["modules"].items():
        told = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in members.items())
        rows.append(f'"{module or "cupy"}": {{\n{told}\n}}')
    text = "{\n" + ",\n".join(rows) + "\n}\n"
    if "--check" in options:
        same = FILE.read_text(encoding="utf-8") == text
        print(f"CuPy {data['version']}: {'as stored' if same else f'other than {FILE.name}: run without --check'}")
        return 0 if same else 1
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
