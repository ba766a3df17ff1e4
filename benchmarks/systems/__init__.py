"""One file per system; each is a program that the runner starts once per step."""
