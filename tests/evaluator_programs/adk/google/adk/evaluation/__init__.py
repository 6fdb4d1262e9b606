"""Says something on stdout when it is imported, as libraries like to."""

print("loading the evaluators")
