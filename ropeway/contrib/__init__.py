"""Ropeway in web frameworks: a module for each, which imports that framework."""
