"""What calls graders: a folder of its own, so that a jail can open it alone."""
