"""
posref's speed and memory beside what a user would call instead: ``python -m benchmarks``.

One file is one theme. Each of its lines has a call of posref and a peer, which run in turn in one process.
"""
