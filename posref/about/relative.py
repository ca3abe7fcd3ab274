"""Relative encodings that meet the content of queries, keys or values."""

from .options import ORDER
from .record import About, used_by

ABOUT = {
    "shaw_scores": About(
        "Relative position keys (Shaw et al.)",
        "For every distance, such as 3 tokens back, there is a learned vector. It is added to the key before the product with "
        "the query. So a query can look for content and distance at once. All distances beyond a limit share one vector.",
        {"order": used_by(ORDER, key_minus_query=("Shaw et al.",), query_minus_key=("SpeechT5",))},
    ),
    "shaw_values": About(
        "Relative position values (Shaw et al.)",
        "Attention adds up values by their weights. Here each value first gets a learned vector for its distance from the "
        "query, so that the result also tells where it was found. Many implementations leave this out.",
        {"order": used_by(ORDER, key_minus_query=("Shaw et al.",))},
    ),
}
