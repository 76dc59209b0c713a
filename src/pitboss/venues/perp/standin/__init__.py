"""How `standin/analyst` trades perpetuals. NOT a language model: a fixed program for demos and tests."""
