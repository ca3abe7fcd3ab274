"""The words in which calls are described: axes of arrays as the registry writes them, and traits of cases."""
