"""
Products of matrices in the precision that their dtype promises, whatever the library's settings.

Libraries can be set to compute float32 products with fewer digits: PyTorch by ``torch.autocast`` and by
``torch.set_float32_matmul_precision``, of which TF32 is a part, JAX by ``jax_default_matmul_precision``. A definition calls
`matmul` of this module instead, and its values do not depend on that.
"""

from posref.core.arrays import Array, is_of, namespace


def matmul(a: Array, b: Array, /) -> Array:
    """Return the matrix product of arrays of one dtype, in that dtype: float32 is not narrowed, nor are its gradients."""
    xp = namespace(a, b)
    if is_of(xp, "jax"):
        return xp.matmul(a, b, precision="highest")
    if is_of(xp, "torch") and a.dtype == xp.float32:  # PyTorch narrows no other that definitions use
        from posref.core import torch_products

        return torch_products.matmul(a, b)
    return xp.matmul(a, b)
