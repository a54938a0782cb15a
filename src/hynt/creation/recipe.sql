-- From parsed rows to the facts of a graph. DuckDB and Spark run this text unchanged: plain SELECTs in the subset that both speak.
-- Each step is named by a line "-- step: NAME" and becomes a table that later steps read.
--
-- Given: candidates (statement, place, head, relation, kind, value, number, unit): candidate facts at place 0, qualifiers above;
--                                                  a number is converted already, and unit is what the dump gave it in
--        entity_set (entity)                       the entities that the graph is about
--        redirects  (source, target)               old ids, each once
--        names      (what, name, label, type, description)   names for people, and what relations mean
--        units      (unit, si_unit)                every known unit, and the one that its numbers were converted to
--        settings   (unknown_units, other_units, max_qualifiers, long_facts)   one row

-- step: judged
-- Every value in the graph's own terms: the id that a redirect leads to, the number and its SI unit; and whether it may stay.
SELECT
    r.statement,
    r.place,
    r.head,
    r.relation,
    r.kind,
    COALESCE(o.target, r.value) AS value,
    r.number,
    COALESCE(u.si_unit, r.unit) AS unit,
    r.unit AS given_unit,
    CASE
        WHEN r.kind = 'entity' AND e.entity IS NULL THEN 'not-in-set'
        WHEN r.kind = 'number' AND u.unit IS NULL AND s.unknown_units = 'drop' THEN 'unknown-unit'
        WHEN r.kind = 'number' AND ABS(r.number) > 1.7976931348623157E308 THEN 'too-large'
        ELSE 'kept'
    END AS verdict
FROM candidates r
CROSS JOIN settings s
LEFT JOIN redirects o ON r.kind = 'entity' AND r.value = o.source
LEFT JOIN entity_set e ON r.kind = 'entity' AND COALESCE(o.target, r.value) = e.entity
LEFT JOIN units u ON r.kind = 'number' AND r.unit = u.unit

-- step: relation_units
-- The unit of a relation is the one that most of its numbers end in; among equals, the first by name.
SELECT relation, unit
FROM (
    SELECT relation, unit, ROW_NUMBER() OVER (PARTITION BY relation ORDER BY uses DESC, unit) AS standing
    FROM (
        SELECT relation, unit, COUNT(*) AS uses
        FROM judged
        WHERE kind = 'number' AND verdict = 'kept'
        GROUP BY relation, unit
    ) counted
) ranked
WHERE standing = 1

-- step: settled
-- Numbers in another unit than their relation's are dropped, kept, or filed under a relation of their own.
SELECT
    j.statement,
    j.place,
    j.head,
    CASE
        WHEN s.other_units = 'split' AND j.kind = 'number' AND j.unit <> m.unit
            THEN CONCAT(j.relation, ' (', CASE WHEN j.unit = '' THEN 'no unit' ELSE j.unit END, ')')
        ELSE j.relation
    END AS relation,
    j.kind,
    j.value,
    j.number,
    j.unit,
    j.given_unit,
    CASE
        WHEN j.verdict = 'kept' AND s.other_units = 'drop' AND j.kind = 'number' AND j.unit <> m.unit THEN 'other-unit'
        ELSE j.verdict
    END AS verdict
FROM judged j
CROSS JOIN settings s
LEFT JOIN relation_units m ON j.kind = 'number' AND j.relation = m.relation

-- step: qualifiers
-- A qualifier stays if its fact does, once, and within the limit; a fact is not dropped for a qualifier that is.
SELECT
    q.statement,
    q.place,
    q.relation,
    q.kind,
    q.value,
    q.number,
    q.unit,
    CASE
        WHEN q.verdict <> 'kept' THEN q.verdict
        WHEN q.time_met > 1 THEN 'repeated'
        WHEN s.max_qualifiers IS NOT NULL AND q.standing > s.max_qualifiers THEN 'beyond-limit'
        ELSE 'kept'
    END AS verdict
FROM (
    SELECT
        c.statement, c.place, c.relation, c.kind, c.value, c.number, c.unit, c.verdict, c.time_met,
        ROW_NUMBER() OVER (
            PARTITION BY c.statement, CASE WHEN c.verdict = 'kept' AND c.time_met = 1 THEN 1 ELSE 0 END ORDER BY c.place
        ) AS standing
    FROM (
        SELECT
            v.statement, v.place, v.relation, v.kind, v.value, v.number, v.unit,
            CASE WHEN f.statement IS NULL THEN 'fact-dropped' ELSE v.verdict END AS verdict,
            ROW_NUMBER() OVER (
                PARTITION BY v.statement, v.relation, v.kind, v.verdict, v.number,
                    CASE WHEN v.kind = 'number' THEN v.unit ELSE v.value END
                ORDER BY v.place
            ) AS time_met
        FROM settled v
        LEFT JOIN (SELECT statement FROM settled WHERE place = 0 AND verdict = 'kept') f ON v.statement = f.statement
        WHERE v.place > 0
    ) c
) q
CROSS JOIN settings s

-- step: too_long
-- Facts with more qualifiers than the limit, where those are left out whole and not shortened.
SELECT DISTINCT q.statement
FROM qualifiers q
CROSS JOIN settings s
WHERE q.verdict = 'beyond-limit' AND s.long_facts = 'drop'

-- step: facts
SELECT t.statement, t.head, t.relation, t.kind, t.value, t.number, t.unit
FROM settled t
LEFT JOIN too_long l ON t.statement = l.statement
WHERE t.place = 0 AND t.verdict = 'kept' AND l.statement IS NULL
ORDER BY t.statement

-- step: fact_qualifiers
SELECT q.statement, q.place, q.relation, q.kind, q.value, q.number, q.unit
FROM qualifiers q
LEFT JOIN too_long l ON q.statement = l.statement
WHERE q.verdict = 'kept' AND l.statement IS NULL
ORDER BY q.statement, q.place

-- step: account
-- What became of every row: read = kept + each reason, for facts and for qualifiers.
SELECT scope, verdict, COUNT(*) AS number
FROM (
    SELECT
        'facts' AS scope,
        CASE WHEN t.verdict = 'kept' AND l.statement IS NOT NULL THEN 'too-many-qualifiers' ELSE t.verdict END AS verdict
    FROM settled t
    LEFT JOIN too_long l ON t.statement = l.statement
    WHERE t.place = 0
    UNION ALL
    SELECT
        'qualifiers' AS scope,
        CASE WHEN q.verdict = 'kept' AND l.statement IS NOT NULL THEN 'fact-dropped' ELSE q.verdict END AS verdict
    FROM qualifiers q
    LEFT JOIN too_long l ON q.statement = l.statement
) outcomes
GROUP BY scope, verdict
ORDER BY scope, verdict

-- step: display_units
-- The unit that most of a relation's numbers were given in, for people to read; among equals, the first by name.
SELECT relation, given_unit
FROM (
    SELECT relation, given_unit, ROW_NUMBER() OVER (PARTITION BY relation ORDER BY uses DESC, given_unit) AS standing
    FROM (
        SELECT relation, given_unit, COUNT(*) AS uses
        FROM settled
        WHERE kind = 'number' AND verdict = 'kept'
        GROUP BY relation, given_unit
    ) counted
) ranked
WHERE standing = 1
ORDER BY relation

-- step: unit_losses
-- Which units could not be brought to their relation's, where, and how often.
SELECT v.relation, v.given_unit, COALESCE(m.unit, '') AS relation_unit, v.verdict, COUNT(*) AS number
FROM settled v
LEFT JOIN relation_units m ON v.relation = m.relation
WHERE v.verdict = 'unknown-unit' OR v.verdict = 'other-unit'
GROUP BY v.relation, v.given_unit, COALESCE(m.unit, ''), v.verdict
ORDER BY number DESC, v.relation, v.given_unit, v.verdict

-- step: labels
SELECT what, name, MAX(label) AS label, MAX(type) AS type, MAX(description) AS description
FROM names
GROUP BY what, name
ORDER BY what, name
