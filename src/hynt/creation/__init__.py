"""Dumps to graphs: Wikidata, YAGO3 and Freebase, on one machine or on a cluster.

    dump ──read──▶ lines ──select──▶ lines wanted ──parse──▶ part files ──recipe.sql──▶ facts ──assemble──▶ graph

Reading, selecting and parsing are Python, the same for every engine; the recipe is one SQL text that DuckDB and Spark
run unchanged; assembling (duplicates, leaks, outliers, splits) is the code that every import uses.
"""
