"""What the pages say that the code knows better: tables that are written from it, and tested to be current.

`python -m docs.derived` writes them anew, between the marks that stand in the pages.
"""
