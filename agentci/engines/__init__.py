"""How requests of evaluators are carried out."""
