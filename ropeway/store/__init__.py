"""The contract between Ropeway and the places where jobs live."""
