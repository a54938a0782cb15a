"""What runs the recipe: DuckDB on one machine, Spark on a cluster."""
