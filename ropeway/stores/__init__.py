"""The implementations of the store contract. Siblings never import each other."""
