"""A loaded model against its file: buffers by name, what each layer rotates, and attention as it is called."""
