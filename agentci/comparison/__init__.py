"""Two runs beside each other: what got worse, and whether that can be chance."""
