"""One test an operation: its cases are loaded once, every array library is run once, and every part judges what was found."""
