"""Record an agent: a proxy of the model API, and the traces of what passed through it.

Into the programs of the agent it injects what exports the spans of the instrumentation that is
installed with them (``injected/``), and into a pytest run a plugin that names the tests.
"""
