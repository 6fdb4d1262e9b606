"""The nouns of the domain: frozen values, standard library only."""
