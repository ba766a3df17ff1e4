"""The live view of `ropeway top`: reading the store, deriving figures, and drawing them."""
