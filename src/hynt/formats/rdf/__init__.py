"""RDF in and out: N-Triples, N-Quads, Turtle, TriG and RDF/XML."""
