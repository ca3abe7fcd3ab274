"""Generated cases that operations leave out together: their own cases ask for the same (LEFT_OUT)."""

VIEWS = ("again/expanded-once-more", "again/strided")
NEGATIVE = ("again/negative", "again/negative-once-more")
FRACTIONAL = ("again/fractional", "again/fractional-once-more")
NO_BATCH = ("again/no-batch", "again/no-batch-once-more")
ONE_PAIR = ("again/one-key", "again/one-query")
