"""
Calls that depend on nothing around them: modes of a library in which it raises errors, and arrays that are not plain.

NumPy can be set to raise an error where a number underflows, and JAX where dtypes or ranks differ, a NaN occurs on the way, or
a constant is moved to the device. A definition that meets such an error is computed again without that setting, so its values
are the same in every mode. Settings that change values without an error are those of products (`posref.core.products`).

Sparse tensors, and others that are not plain, are refused in a sentence, and so are options with another library's name. All
this happens after an error alone: a call that meets none pays nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
NEUTRAL: dict[str, tuple[Any, ...]] = {  # settings of JAX, the context manager of each, and the values that raise no error
    "jax_numpy_dtype_promotion": ("numpy_dtype_promotion", "standard"),
    "jax_numpy_rank_promotion": ("numpy_rank_promotion", "allow"),
    "jax_debug_nans": ("debug_nans", False),
    "jax_debug_infs": ("debug_infs", False),
    "jax_transfer_guard_host_to_device": ("transfer_guard_host_to_device", "allow", "log", None),
}

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

    `names` are those of its array arguments, in their order.
    """

    @wraps(function)
    def computed(*arrays: Any, **options: Any) -> Any:
        try:
            return function(*arrays, **options)
        except Exception as error:
            named = {**dict(zip(names, arrays, strict=False)), **{name: options[name] for name in names if name in options}}
            if not str(error).startswith(f"{function.__name__}: "):
                check_names(function, options, error)
                check_plain(function.__name__, named, error)
            settings = neutral((*named.values(), options.get("xp")), error)
            if not settings:
                raise
        with ExitStack() as stack:
            for setting in settings:
                stack.enter_context(setting)
            return function(*arrays, **options)

    return computed  # type: ignore[return-value]  # it has the signature of what it wraps


def check_names(function: Callable[..., Any], options: Iterable[str], error: Exception) -> None:
    """Raise, from Python's error, if `function` lacks an option of this name; suggest the nearest name."""
    from difflib import get_close_matches
    from inspect import signature

    named = list(signature(function).parameters)
    for name in options:
        if isinstance(error, TypeError) and name not in named:
            meant = [own for own in named if name.lower() in ALSO_CALLED.get(own, ())] or get_close_matches(name, named)
            remedy = f"Did you mean {' or '.join(meant)}?" if meant else f"It takes {', '.join(named)}."
            msg = f"{function.__name__}: {name} is not an argument of {function.__name__}. {remedy}"
            raise TypeError(msg) from error


class Record(type):
    """The class of a class of records, whose fields are checked by `check_names`."""

    def __call__(cls, *values: Any, **named: Any) -> Any:
        """Return a record; the error for a wrong name says the right one."""
        try:
            return super().__call__(*values, **named)
        except TypeError as error:
            check_names(cls, named, error)
            raise

    @property
    def __signature__(cls) -> Any:
        from inspect import signature

        whole = signature(cls.__init__)  # type: ignore[misc]  # of the class, not of an instance
        return whole.replace(parameters=list(whole.parameters.values())[1:])


def neutral(given: Iterable[Any], error: Exception) -> list[AbstractContextManager[Any]]:
    """Return contexts without the settings that may have raised an error, of the library of arrays or of a namespace."""
    roots = {getattr(one, "__name__", type(one).__module__).partition(".")[0] for one in given}
    if "numpy" in roots and isinstance(error, FloatingPointError | RuntimeWarning):
        import numpy as np

        return [np.errstate(all="ignore")]
    if roots.isdisjoint(("jax", "jaxlib")):
        return []
    import jax

    changed = [of for name, of in NEUTRAL.items() if getattr(jax.config, name) not in of[1:]]
    return [getattr(jax, manager)(value) for manager, value, *_ in changed]


def check_plain(function: str, arrays: dict[str, Any], error: Exception) -> None:
    """Raise, from an error that a library or Python raised, if an array is of a kind that no definition takes, or is none."""
    from array_api_compat import is_array_api_obj

    for argument, array in arrays.items():
        if oddity(array):
            raise TypeError(not_plain(function, argument, array)) from error
        kind = type(array)
        if kind.__qualname__ in str(error) and not is_array_api_obj(array):
            need = "an array (convert numbers and lists with the library's asarray)"
            msg = f"{function}: {argument} must be {need}; got {kind.__module__}.{kind.__qualname__}."
            raise TypeError(msg) from error
        if (isinstance(error, IndexError) or "dimension" in str(error)) and not getattr(array, "ndim", 1):
            msg = f"{function}: {argument} must have the axes that help(posref.{function}) says; got shape ()."
            raise ValueError(msg) from error


def not_plain(function: str, argument: str, array: Any) -> str:
    """Return the sentence that refuses an array with special memory."""
    return f"{function}: {argument} must be a plain array of numbers; got {oddity(array)}."


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
    if kind.__module__.partition(".")[0] != "torch" or dtype is None:
        return ""
    if array.is_nested:
        return "a nested tensor. Convert it with torch.nested.to_padded_tensor"
    if array.is_quantized:
        return "a quantized tensor. Convert it with dequantize()"
    if str(array.layout) != "torch.strided":
        return f"a tensor of layout {array.layout}. Convert it with to_dense()"
    if array.is_neg() or array.is_conj():
        return "a view with a sign that is not applied yet. Apply it with resolve_neg() or resolve_conj()"
    if "float8" in str(dtype) or "float4" in str(dtype):
        return f"{dtype}, with which PyTorch does not compute. Convert it with to(torch.float32)"
    return ""


def subclass_of_numpy(kind: type) -> bool:
    """Return whether arrays of a type are NumPy's with other arithmetic, such as masked ones. Those in a file are not."""
    if (kind.__module__, kind.__name__) == ("numpy", "ndarray"):  # Dynamo has no bases of it
        return False
    bases = [(base.__module__, base.__name__) for base in kind.__mro__]
    return ("numpy", "ndarray") in bases[1:] and ("numpy", "memmap") not in bases
