"""What a config file says, on which line, and whether that is right."""
