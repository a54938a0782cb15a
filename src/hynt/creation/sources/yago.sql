-- YAGO: what is said about a fact id becomes a qualifier of that fact. Both engines run this text unchanged, before the recipe.

-- step: candidates
SELECT statement, place, head, relation, kind, value, number, unit
FROM parsed
WHERE statement IS NOT NULL
UNION ALL
SELECT f.statement, n.place, CAST(NULL AS STRING) AS head, n.relation, n.kind, n.value, n.number, n.unit
FROM parsed n
JOIN parsed f ON n.node = f.node
WHERE n.statement IS NULL AND f.place = 0

-- step: node_account
-- Meta facts whose fact was not selected, or is not there, have nothing to qualify.
SELECT CASE WHEN f.node IS NULL THEN 'without-fact' ELSE 'kept' END AS verdict, COUNT(*) AS number
FROM parsed n
LEFT JOIN (SELECT DISTINCT node FROM parsed WHERE place = 0) f ON n.node = f.node
WHERE n.statement IS NULL
GROUP BY CASE WHEN f.node IS NULL THEN 'without-fact' ELSE 'kept' END
ORDER BY verdict
