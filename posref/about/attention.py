"""Attention itself."""

from .record import About

ABOUT = {
    "attention_logits": About(
        "Attention logits",
        "The logit of a query and a key says how well they match: their dot product times a scale, usually one over the root "
        "of the head's size. Position encodings act here: by rotating queries and keys, or by a bias that is added.",
    ),
    "attention": About(
        "Scaled dot-product attention",
        "Every query is compared with all keys that it may see. The softmax makes weights of these logits, and the result is "
        "the mean of the values by these weights. Position encodings decide how much a key's place counts.",
    ),
}
