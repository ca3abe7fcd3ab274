"""Programs in other languages: the protocol, their processes, and the exchange of files."""
