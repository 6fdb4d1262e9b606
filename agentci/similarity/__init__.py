"""How alike two texts are: measures of strings, 0 to 1."""
