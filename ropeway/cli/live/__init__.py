"""The live view: what is gathered from a store, what is derived from it, and how it is drawn."""
