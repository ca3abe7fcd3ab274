"""
The second witness: every operation transcribed literally from its paper or its authors' code.

Scalar loops over nested Python lists of `mpmath.mpf` (or `int`, for positions and buckets), at the precision that the
caller has set. Nothing here is shared with the array definitions: a golden value is written only when both agree on
every bit. A float parameter means its exact binary64 value; a scaling is a dict of its record's fields and its "type".
"""
