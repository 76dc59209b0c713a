"""Reports as self-contained HTML files: pages and charts from stored records, presentation only.

The caller reads the stored run into a `RunReport` (`source.py`) or passes the document of a study or arena, and receives
text. A venue arranges these parts and its own panels (`venues/<name>/panels`) into the page of its runs. Nothing here reads a
store, a clock or any file but its own style sheets and script, so the same input gives the same bytes everywhere.
"""
