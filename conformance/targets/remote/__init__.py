"""Implementations in other processes and languages: the protocol, programs, and the exchange of files."""
