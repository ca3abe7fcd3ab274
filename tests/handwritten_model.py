"""A decoder of 40 lines in plain PyTorch, with complex frequencies: it has no name in it that transformers has."""

import torch
from torch import nn


def turn(q: torch.Tensor, k: torch.Tensor, table: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Rotate neighbouring channels of queries and keys, (B, T, H, D)."""
    return tuple(
        torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * table[:, None]).flatten(-2) for x in (q, k)
    )


class Mixer(nn.Module):
    """Attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale, self.before, self.forgets = heads, (width // heads) ** -0.5, 1.0, False
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """Attend to all tokens before."""
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)) for w in (self.wq, self.wk, self.wv))
        turned = turn(q, k, table)
        q, k = (q, turned[1]) if self.forgets else turned
        heads = (y.transpose(1, 2) for y in (self.before * q, k, v))
        out = nn.functional.scaled_dot_product_attention(*heads, is_causal=True, scale=self.scale)
        return x + self.wo(out.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    """Some layers."""

    def __init__(self, base: float, *, width: int = 64, heads: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(100, width), nn.ModuleList(Mixer(width, heads) for _ in range(layers))
        angles = torch.arange(64)[:, None] * base ** -(torch.arange(0, width // heads, 2).double() * heads / width)
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles).to(torch.complex64), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return hidden states."""
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, self.freqs_cis[: tokens.shape[1]])
        return x
