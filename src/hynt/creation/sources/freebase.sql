-- Freebase: a mediator (a node that only holds other values together) becomes facts with qualifiers. Both engines run this text
-- unchanged, before the recipe.
--
--     Obama --award_nominations--> mediator      mediator --award--> Grammy     mediator --year--> 2006
--     becomes (Obama, award_nominations,award, Grammy) {(year, 2006)}
--
-- Given: primaries (link, property), from a file: which property of the mediator holds the primary value, for each link to one.

-- step: links
-- Statements whose value is a mediator, with each value of that mediator that the graph can hold, except the head itself.
SELECT
    l.statement, l.head, l.relation AS link, m.place, m.relation, m.kind, m.value, m.number, m.unit,
    CASE
        WHEN m.kind = 'entity' AND e.entity IS NULL THEN 'not-in-set'
        WHEN m.kind = 'entity' AND m.value = l.head THEN 'head'
        ELSE 'usable'
    END AS verdict
FROM parsed l
JOIN parsed m ON l.value = m.node
LEFT JOIN entity_set e ON m.kind = 'entity' AND m.value = e.entity
WHERE l.statement IS NOT NULL AND l.kind = 'entity' AND m.statement IS NULL

-- step: chosen
-- The primary property of a link: as told, or else the one that most of its mediators have; never a date where there is something
-- else, and among equals one with entities.
SELECT r.link, COALESCE(p.property, r.relation) AS relation
FROM (
    SELECT link, relation, ROW_NUMBER() OVER (PARTITION BY link ORDER BY is_date, mediators DESC, is_number, relation) AS standing
    FROM (
        SELECT
            link, relation,
            MIN(CASE WHEN unit = 'date' THEN 1 ELSE 0 END) AS is_date,
            MIN(CASE WHEN kind = 'number' THEN 1 ELSE 0 END) AS is_number,
            COUNT(DISTINCT statement) AS mediators
        FROM links
        WHERE verdict = 'usable'
        GROUP BY link, relation
    ) counted
) r
LEFT JOIN primaries p ON r.link = p.link
WHERE r.standing = 1

-- step: mediated
-- A fact for each primary value. Their numbers are below zero, so that none is also a statement of the dump.
SELECT
    0 - ROW_NUMBER() OVER (ORDER BY l.statement, l.place) AS statement,
    l.statement AS link_statement, l.place AS value_place, l.head, CONCAT(l.link, ',', l.relation) AS relation,
    l.relation AS primary_relation, l.kind, l.value, l.number, l.unit
FROM links l
JOIN chosen c ON l.link = c.link AND l.relation = c.relation
WHERE l.verdict = 'usable'

-- step: candidates
SELECT p.statement, p.place, p.head, p.relation, p.kind, p.value, p.number, p.unit
FROM parsed p
LEFT JOIN (SELECT DISTINCT statement FROM links) l ON p.statement = l.statement
WHERE p.statement IS NOT NULL AND l.statement IS NULL
UNION ALL
SELECT statement, CAST(0 AS BIGINT) AS place, head, relation, kind, value, number, unit
FROM mediated
UNION ALL
SELECT f.statement, l.place, CAST(NULL AS STRING) AS head, l.relation, l.kind, l.value, l.number, l.unit
FROM mediated f
JOIN links l ON f.link_statement = l.statement
WHERE l.relation <> f.primary_relation AND l.verdict <> 'head'

-- step: node_account
-- Links to mediators: those that became facts, and those whose mediator has no primary value that the graph can hold.
SELECT CASE WHEN f.link_statement IS NULL THEN 'without-primary-value' ELSE 'kept' END AS verdict, COUNT(*) AS number
FROM (SELECT DISTINCT statement FROM links) l
LEFT JOIN (SELECT DISTINCT link_statement FROM mediated) f ON l.statement = f.link_statement
GROUP BY CASE WHEN f.link_statement IS NULL THEN 'without-primary-value' ELSE 'kept' END
ORDER BY verdict
