"""Code that a recorded agent imports; this folder is on its ``PYTHONPATH``."""
