-- Who the graph is about. Both engines run this text unchanged, before the recipe.
--
-- Given: given_entities  (entity)           the ids that were asked for; empty where the dump decides
--        given_redirects (source, target)   from a file
--        met_redirects   (source, target)   from the dump
--        names, parsed                      the tables of the parts
--        settings        (selection, values_are_entities, tails, min_tail_uses)   'closed' or 'open'; 'yes' where a value needs
--                                           no line of its own; 'keep' where values outside the choice stay, from so many uses on

-- step: redirects
SELECT source, MAX(target) AS target
FROM (
    SELECT source, target FROM given_redirects
    UNION ALL
    SELECT source, target FROM met_redirects
) both_kinds
WHERE source <> target
GROUP BY source

-- step: entity_set
SELECT DISTINCT COALESCE(r.target, g.entity) AS entity
FROM (
    SELECT entity FROM given_entities
    UNION ALL
    SELECT n.name AS entity FROM names n CROSS JOIN settings s WHERE s.selection = 'open' AND n.what = 'entity'
    UNION ALL
    SELECT p.head AS entity FROM parsed p CROSS JOIN settings s WHERE s.selection = 'open' AND p.place = 0
    UNION ALL
    SELECT p.value AS entity
    FROM parsed p
    CROSS JOIN settings s
    LEFT JOIN (SELECT DISTINCT node FROM parsed WHERE statement IS NULL) m ON p.value = m.node
    WHERE s.selection = 'open' AND s.values_are_entities = 'yes' AND p.kind = 'entity' AND m.node IS NULL
    UNION ALL
    SELECT u.entity
    FROM (
        SELECT p.value AS entity, COUNT(*) AS uses
        FROM parsed p
        LEFT JOIN (SELECT DISTINCT node FROM parsed WHERE statement IS NULL) m ON p.value = m.node
        WHERE p.kind = 'entity' AND m.node IS NULL
        GROUP BY p.value
    ) u
    CROSS JOIN settings s
    WHERE s.tails = 'keep' AND u.uses >= s.min_tail_uses
) g
LEFT JOIN redirects r ON g.entity = r.source
