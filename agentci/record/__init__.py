"""Record an agent: a proxy of the model API, and the traces of what passed through it.

Code that is injected into the agent's programs (``injected/``) exports the spans of the
instrumentation installed with them; a plugin that is injected into pytest names the tests.
"""
