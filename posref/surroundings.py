"""
Makes calls independent of their surroundings: modes of a library in which it raises errors, and arrays that are not plain.

NumPy can be set to raise an error where a number underflows, and JAX where dtypes or ranks differ, a NaN occurs on the way, or
a constant is moved to the device. PyTorch joins no bfloat16 tensors under autocast to float16. A definition that meets such an
error is computed again without that setting, so its values are the same in every mode. Settings that change values without an
error are those of products (`posref.core.products`).

Sparse tensors, and others that are not plain, are refused in a sentence, and so are options with another library's name. All
this happens after an error alone: a call that meets none pays nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from inspect import signature
from types import ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
FOREIGN = (TypeError, ValueError, KeyError, AttributeError, AssertionError, RuntimeError, NotImplementedError)
LONGEST = 500  # characters of another library's sentence
NAMES: set[str] = set()  # of definitions and records of options, with which posref's own sentences begin
UNMIXED = ("torch.DTensor", "torch.FakeTensor")  # they are computed with others of their kind alone
NEUTRAL: dict[str, tuple[Any, ...]] = {  # settings of JAX, the context manager of each, and the values that raise no error
    "jax_numpy_dtype_promotion": ("numpy_dtype_promotion", "standard"),
    "jax_numpy_rank_promotion": ("numpy_rank_promotion", "allow"),
    "jax_debug_nans": ("debug_nans", False),
    "jax_debug_infs": ("debug_infs", False),
    "jax_transfer_guard_host_to_device": ("transfer_guard_host_to_device", "allow", "log", None),
}

COMPUTED = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
ALSO_CALLED = {  # other libraries' names of options
    "base": ("theta", "rope_theta", "freq_base"),
    "dim": ("d_model", "embed_dim", "head_dim", "hidden_size"),
    "heads": ("num_heads", "num_attention_heads", "n_heads", "n_head"),
    "layout": ("interleaved", "is_neox_style", "rotary_interleaved", "traditional"),
    "length": ("max_position_embeddings", "max_seq_len", "seq_len"),
    "original_length": ("original_max_position_embeddings", "max_position_embeddings"),
    "rotary_dim": ("dim", "rot_dim", "partial_rotary_factor"),
    "scaling": ("rope_scaling", "rope_parameters", "rope_type", "scaling_factor", "factor", "original_max_position_embeddings"),
    "window": ("window_size", "window_length"),
}


def undisturbed(function: F, names: tuple[str, ...]) -> F:
    """
    Return a definition that gives the same values under all library settings, and refuses odd arrays in a sentence.

    `names` are those of its array arguments.
    """

    NAMES.add(function.__name__)

    def arguments(arrays: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return the array arguments of a call by name."""
        described = signature(function).parameters
        call = {**dict(zip(described, arrays, strict=False)), **options}
        left_out = [name for name in call if call[name] is None and described[name].default is None]
        return {name: call[name] for name in names if name in call and name not in left_out}

    @wraps(function)
    def computed(*arrays: Any, **options: Any) -> Any:
        try:
            return function(*arrays, **options)
        except Exception as error:
            check_names(function, options, error)
            check_given(function, len(arrays), options, error)
            named = arguments(arrays, options)
            settings = neutral((*named.values(), options.get("xp")), error)
            if not settings:
                explain(function.__name__, named, error)
                raise
        with ExitStack() as stack:
            for setting in settings:
                stack.enter_context(setting)
            try:
                return function(*arrays, **options)
            except Exception as error:
                explain(function.__name__, named, error)
                raise

    return computed  # type: ignore[return-value]  # it has the signature of what it wraps


def check_names(function: Callable[..., Any], options: Iterable[str], error: Exception) -> None:
    """Raise, from Python's error, if `function` lacks an option of this name; suggest the nearest name."""
    from difflib import get_close_matches

    named = list(signature(function).parameters)
    for name in options:
        if isinstance(error, TypeError) and name not in named:
            meant = [parameter for parameter in named if name.lower() in ALSO_CALLED.get(parameter, ())] or get_close_matches(
                name, named
            )
            remedy = f"Did you mean {' or '.join(meant)}?" if meant else f"It takes {', '.join(named)}."
            msg = f"{function.__name__}: {name} is not an argument of {function.__name__}. {remedy}"
            raise TypeError(msg) from error


def check_given(function: Callable[..., Any], placed: int, options: Iterable[str], error: Exception) -> None:
    """Raise, from Python's error, if a call lacks arguments that `function` needs, or gives it too many by position."""
    described = signature(function).parameters.values()
    places = [argument.name for argument in described if argument.kind is not argument.KEYWORD_ONLY]
    nameless = [argument.name for argument in described if argument.kind is argument.POSITIONAL_ONLY]
    needed = [argument.name for argument in described if argument.default is argument.empty]
    lacking = [name for name in needed if name not in places[:placed] and (name in nameless or name not in options)]
    is_said = not isinstance(error, TypeError) or str(error).startswith(f"{function.__name__}: ")
    if is_said or not (lacking or placed > len(places)):
        return
    ways = {"position": [name for name in lacking if name in nameless], "name": [n for n in lacking if n not in nameless]}
    need = ", ".join(f"{' and '.join(names)} by {way}" for way, names in ways.items() if names)
    most = f"takes {' and '.join(places)} by position, all others by name; got {placed} by position"
    msg = f"{function.__name__}: a call {f'must have {need}' if lacking else most}."
    raise TypeError(msg) from error


class Record(type):
    """The class of a class of records, whose fields are checked by `check_names`."""

    def __init__(cls, name: str, *of: Any, **options: Any) -> None:
        super().__init__(name, *of, **options)
        NAMES.add(name)

    def __call__(cls, *values: Any, **named: Any) -> Any:
        """Return a record; the error for a wrong name says the right one, and for a missing one which."""
        try:
            return super().__call__(*values, **named)
        except TypeError as error:
            check_names(cls, named, error)
            check_given(cls, len(values), named, error)
            raise

    @property
    def __signature__(cls) -> Any:
        whole = signature(cls.__init__)  # type: ignore[misc]  # of the class, not of an instance
        return whole.replace(parameters=list(whole.parameters.values())[1:])


def neutral(given: Sequence[Any], error: Exception) -> list[AbstractContextManager[Any]]:
    """Return contexts without the settings that may have raised an error, of the library of arrays or of a namespace."""
    modules = (item.__name__ if isinstance(item, ModuleType) else type(item).__module__ for item in given)
    roots = {module.partition(".")[0] for module in modules}
    if "numpy" in roots and isinstance(error, FloatingPointError | RuntimeWarning):
        import numpy as np

        return [np.errstate(all="ignore")]
    if "torch" in roots:
        import torch

        kinds = {item.device.type for item in given if issubclass(type(item), torch.Tensor)}
        known = filter(torch.amp.is_autocast_available, kinds)  # there is none of meta tensors
        return [torch.autocast(kind, enabled=False) for kind in known if torch.is_autocast_enabled(kind)]
    if roots.isdisjoint(("jax", "jaxlib")):
        return []
    import jax

    changed = [of for name, of in NEUTRAL.items() if getattr(jax.config, name) not in of[1:]]
    return [getattr(jax, manager)(value) for manager, value, *_ in changed]


def explain(function: str, arrays: dict[str, Any], error: BaseException) -> None:
    """Raise, from an error that does not say so, which array is of a kind that is not taken, or that libraries differ."""
    if error.__cause__ and not str(error).startswith(f"{function}: "):  # it was explained with the arguments of another
        error = error.__cause__
    said = str(error)
    of_libraries = "library" in said  # it may blame a dtype that is of the other library
    if of_libraries or not said.startswith(f"{function}: "):
        for argument, array in arrays.items():
            check_plain(function, argument, array, error)
    if said.partition(":")[0] in NAMES and not of_libraries:
        return
    places = {argument: place(array) for argument, array in arrays.items()}
    if len(set(places.values())) > 1:
        got = ", ".join(f"{argument} of {where}" for argument, where in places.items())
        *others, last = places
        need = "arrays of one library and on one device (convert them with its asarray, or move them)"
        msg = f"{function}: {', '.join(others)} and {last} must be {need}; got {got}."
        raise TypeError(msg) from error
    integers = [argument for argument, array in arrays.items() if "int" in getattr(array.dtype, "name", str(array.dtype))]
    if type(error) is IndexError and integers:
        msg = f"{function}: {' and '.join(integers)} must be rows that the table has: {said[:LONGEST]}"
        raise IndexError(msg) from error
    if said.partition(":")[0] not in NAMES and type(error) in FOREIGN:
        got = ", ".join(f"{argument} of {array.dtype}, {tuple(array.shape)}" for argument, array in arrays.items())
        reason = said[:LONGEST] or type(error).__name__
        msg = f"{function}: the library of the arrays cannot compute with {got or 'these options'}: {reason}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(msg) from error


def check_plain(function: str, argument: str, array: Any, error: BaseException) -> None:
    """Raise if an array is of a kind that no definition takes, cannot be read, or is none."""
    from array_api_compat import is_array_api_obj

    kind = type(array)
    try:
        odd, none = oddity(array), isinstance(array, type | ModuleType) or not is_array_api_obj(array)
        scalar = not none and not array.ndim
    except Exception as unread:
        msg = f"{function}: {argument} must be an array that can be read; got {kind.__module__}.{kind.__qualname__}: {unread}"
        raise TypeError(msg) from error
    if odd:
        raise TypeError(not_plain(function, argument, array)) from error
    if none:
        need = "an array (convert numbers and lists with the library's asarray)"
        msg = f"{function}: {argument} must be {need}; got {kind.__module__}.{kind.__qualname__}."
        raise TypeError(msg) from error
    if scalar and (isinstance(error, IndexError) or "dimension" in str(error) or "1D" in str(error)):
        msg = f"{function}: {argument} must have the axes that help(posref.{function}) says; got shape ()."
        raise ValueError(msg) from error


def place(array: Any) -> str:
    """Return the library of an array, of PyTorch's also the kind that does not mix with plain tensors, and the device."""
    bases = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(array).__mro__}
    if "torch.Tensor" in bases:
        return f"{next((name for name in UNMIXED if name in bases), 'torch.Tensor')} on {array.device}"
    return "numpy" if "numpy.ndarray" in bases else type(array).__module__.partition(".")[0].replace("jaxlib", "jax")


def not_plain(function: str, argument: str, array: Any) -> str:
    """Return the sentence that refuses an array with special memory."""
    return f"{function}: {argument} must be a plain array of numbers; got {oddity(array) or array.dtype}."


def oddity(array: Any) -> str:
    """Return the kind of a special array, and the remedy, or nothing."""
    kind, dtype = type(array), getattr(array, "dtype", None)
    if isinstance(array, list | tuple):
        return f"a {kind.__name__}. Convert it with the library's asarray"
    if kind.__name__ == "MaskedTensor":
        return "a masked tensor. get_data() gives its numbers alone"
    if subclass_of_numpy(kind):
        return f"{kind.__module__}.{kind.__qualname__}, which computes otherwise. numpy.asarray gives its numbers alone"
    if kind.__module__ == "numpy" and getattr(dtype, "type", kind).__module__ == "ml_dtypes":
        return f"{dtype}, with which NumPy does not compute. Convert it with astype(numpy.float32)"
    if kind.__module__ == "numpy" and getattr(dtype, "kind", "f") not in "biufc":
        return f"{dtype}, which are no numbers. Convert it with astype(numpy.float32)"
    library = place(array).partition(" ")[0]
    if library.startswith("torch") and (odd := _oddity_of_tensor(array)):
        return odd
    if library.startswith(("torch", "jax")) and dtype is not None and str(dtype).removeprefix("torch.") not in COMPUTED:
        return f"{dtype}, with which {library.partition('.')[0]} does not compute. Convert it to float32"
    if library != "numpy" and getattr(getattr(array, "__array_namespace__", int)(), "__name__", "") == "numpy":
        return f"{kind.__module__}.{kind.__qualname__}, which is of NumPy by name alone. numpy.asarray gives its numbers"
    return ""


def _oddity_of_tensor(tensor: Any) -> str:
    """Return the kind of a special tensor of PyTorch, and the remedy, or nothing."""
    if tensor.is_nested:
        return "a nested tensor. Convert it with torch.nested.to_padded_tensor"
    if tensor.is_quantized:
        return "a quantized tensor. Convert it with dequantize()"
    if str(tensor.layout) != "torch.strided":
        return f"a tensor of layout {tensor.layout}. Convert it with to_dense()"
    if tensor.is_neg() or tensor.is_conj():
        return "a view with a sign that is not applied yet. Apply it with resolve_neg() or resolve_conj()"
    return ""


def subclass_of_numpy(kind: type) -> bool:
    """Return whether arrays of a type are NumPy's with other arithmetic, such as masked ones. Those in a file are not."""
    if (kind.__module__, kind.__name__) == ("numpy", "ndarray"):  # Dynamo has no bases of it
        return False
    bases = [(base.__module__, base.__name__) for base in kind.__mro__]
    return ("numpy", "ndarray") in bases[1:] and ("numpy", "memmap") not in bases
