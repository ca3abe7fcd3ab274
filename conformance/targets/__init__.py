"""What is checked: Python objects, isolated processes, programs in any language, and files."""
