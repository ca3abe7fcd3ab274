"""What the authors of an encoding report about texts longer than in training. Of all others they report nothing."""

LONGER = {
    "alibi": "Perplexity stays low at several times the training length.",
    "t5_bias": "All far distances share the last bucket, so a longer text needs no new weights; ALiBi's authors found it "
    "better than sinusoids and RoPE there, and slower.",
    "xpos": "Perplexity stays low beyond the training length, together with attention in blocks.",
    "pope": "Perplexity stays stable beyond the training length without tuning.",
    "fope": "Perplexity and passkey retrieval hold up better than with RoPE.",
    "streaming_llm": "Text of any length stays fluent; what has left the cache is forgotten.",
    "lambda_window": "Text of any length stays fluent; what is outside the window is not read.",
    "rerope": "A trained RoPE model reads longer texts without tuning.",
    "leaky_rerope": "A trained RoPE model reads longer texts without tuning.",
    "self_extend": "A trained RoPE model reads longer texts without tuning.",
    "dual_chunk": "A trained RoPE model reads more than 100k tokens without tuning.",
}
WEIGHTS = (  # arguments that a model's file has: learned, or fixed at random (random_fourier)
    "table", "first", "second", "x_table", "y_table", "h_table", "w_table", "key_table", "value_table", "weight", "v", "g",
    "matrix", "frequencies", "skew", "coefficients", "generators", "cos_mix", "sin_mix", "phases",
)  # fmt: skip
DOES = {  # what the encodings of a family do
    "absolute": "Adds a vector to each embedding",
    "rotary": "Rotates queries and keys",
    "bias": "Adds a number to each attention logit",
    "relative": "Adds a learned vector to keys or values",
    "extension": "Changes distances, the mask or the scale of a trained model",
}
# not encodings in themselves: what one chooses among leaves them out
TOOLS = ("permute_qk_weights", "resample", "rope_cos_sin", "rotation_matrix", "sinusoidal_shift", "weight_norm")
