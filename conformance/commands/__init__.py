"""The command line below `posref`: click commands."""
