"""What fills templates of strangers: a folder of its own, so that a jail can open it alone."""
