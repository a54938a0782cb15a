"""Answers to show in the OpenAPI description: what a run of `world` said, shortened. Tests hold them to the models."""

from __future__ import annotations

from typing import Any

from hynt import __version__

Example = dict[str, Any]

ANSWERS: Example = {
    "question": "Brazil · ? · Brazilian Real", "hole": "relation", "kind": "relation", "stored": [{"text":
    "currency", "splits": ["test"], "id": "currency", "value": None, "qualifiers": "start time 1994-07-01", "rank":
    6, "probability": 0.012624690608193087, "predicted": None, "judged_without": False}], "stored_total": 1,
    "new_from": 0.5, "candidates": 144, "calibrated": True, "notes": [], "missing": [],
    "answers": [{"rank": 1, "id": "capital",
    "name": "capital", "probability": 0.6240649782806393, "score": 4.737368106842041, "known": [], "new": True}],
}

NUMBER: Example = {
    "question": "Japan · life expectancy · ? (point in time 2024; sex female)", "hole": "tail", "kind": "number",
    "stored": [{"text": "88.2 years", "splits": ["train"], "id": None, "value": 88.2, "qualifiers": "", "rank": None,
    "probability": None, "predicted": 82.83912711441516, "judged_without": False}], "stored_total": 1, "new_from":
    0.5, "candidates": 0, "calibrated": True, "notes": [], "missing": [],
    "answers": [{"value": 82.83912711441516, "text":
    "82.8 years", "unit": "year", "display_unit": "", "low": 76.75432248175144, "high": 88.92393174707891, "low_text":
    "76.8 years", "high_text": "88.9 years", "level": 0.9, "interval_from": "this relation", "training_low":
    27.79, "training_high": 88.2, "known": [{"value": 88.2, "splits": ["train"]}]}],
}

EXPLANATION: Example = {
    "question": "Austria · language spoken · ? (role official)", "hole": "tail", "kind": "entity", "stored":
    [{"text": "German", "splits": ["test"], "id": "language/German", "value": None, "qualifiers": "share 97 %",
    "rank": 3, "probability": 0.05028506075110744, "predicted": None, "judged_without": False}], "stored_total": 1,
    "new_from": 0.5, "candidates": 1838, "calibrated": True, "notes": [], "missing": [], "answers": [{"rank": 1, "id":
    "language/Spanish", "name": "Spanish", "probability": 0.10614642949981705, "score": 5.759212017059326, "known":
    [], "new": False}], "about": {"id": "language/Spanish", "name": "Spanish", "probability": 0.1061464294998163,
    "rank": 1}, "influences": [{"part": "head", "says": "Austria", "change": "hidden", "answer_id":
    "language/Spanish", "answer": "Spanish", "probability": 0.2286605710945, "probability_change":
    0.1225141415946837, "rank": 1, "value": None, "value_change": None, "change_in_widths": None,
    "context_attention": None, "prediction_attention": 0.40307876467704773}], "attention": None,
}

TREND: Example = {
    "relation": "total fertility rate", "relation_name": "total fertility rate", "unit": "1", "display_unit": "",
    "over": "point in time", "over_name": "point in time", "over_unit": "date", "over_display_unit": "",
    "condition": "", "level": 0.9, "interval_from": "this relation",
    "training_low": 0.68, "training_high": 8.23, "training_from": 1955.0, "training_to": 2025.0, "notes": [],
    "heads": [{"id": "country/Brazil", "name": "Brazil", "trained_on": 9, "held_out": 3, "held_out_inside": 3,
               "mean_error_trained_on": 0.4650273284647201, "mean_error_held_out": 0.3677628539005919, "notes": []}],
    "rows": [
        {"head_id": "country/Brazil", "head": "Brazil", "kind": "curve", "at": 2025.0, "at_text": "2025", "value": None,
         "split": None, "trained_on": None, "predicted": 1.8416360455751422, "low": 1.0796341907978055,
         "high": 2.6036379003524783},
        {"head_id": "country/Brazil", "head": "Brazil", "kind": "known", "at": 2025.0, "at_text": "2025", "value": 1.73,
         "split": "valid", "trained_on": False, "predicted": 1.8416360455751422, "low": 1.0796341907978055,
         "high": 2.6036379003524783},
    ],
}

UPDATE: Example = {
    "version": 1, "changed": True, "added": 1, "removed": 0, "new_entities": 1, "gone_entities": 0, "facts": 33148,
}

SIMILAR: Example = {
    "entity": {"id": "country/Japan", "name": "Japan", "type": "country"},
    "similar": [{"rank": 1, "id": "country/South_Korea", "name": "South Korea", "type": "country",
                 "similarity": 0.8334413170814514}],
}

PROPOSALS: Example = {
    "entity": {"id": "country/France", "name": "France", "type": "country"},
    "proposals": [{"rank": 1, "relation": "region", "relation_label": "region", "tail_label": "Europe",
                   "sentence": "France · region · Europe", "probability": 0.7127714899862543,
                   "answer_probability": 0.8367714899862543, "share": 0.9876543209876543, "peers": 161}],
    "below_threshold": 0, "oversight_rate": 0.41,
}

ENTITIES: Example = {
    "query": "jap", "more": True,
    "entities": [{"id": "country/Japan", "name": "Japan", "type": "country", "facts": 264, "match": "prefix"}],
}

ENTITY_FACTS: Example = {
    "entity": {"id": "country/Japan", "name": "Japan", "type": "country", "facts": 264},
    "counts": {"head": 194, "tail": 68, "value": 2}, "total": 264, "offset": 0,
    "series": ["GDP growth rate", "GDP per capita PPP", "exchange rate"],
    "facts": [{
        "split": "valid", "position": "head", "added": "",
        "text": "Japan · GDP growth rate · 1.5 % (point in time 2023)",
        "head": {"id": "country/Japan", "name": "Japan"},
        "relation": {"id": "GDP growth rate", "name": "GDP growth rate"},
        "tail": {"number": 1.5, "literal": "1.5", "unit": "percent", "text": "1.5 %"},
        "qualifiers": [{"relation": {"id": "point in time", "name": "point in time"},
                        "value": {"number": 2023.0, "literal": "2023", "unit": "date", "text": "2023"}}],
    }],
}

RELATION: Example = {
    "id": "population", "name": "population", "kind": "number", "unit": "1", "display_unit": "", "is_date": False,
    "facts": 2096, "qualifiers": 0,
}

RELATION_NUMBERS: Example = RELATION | {
    "numbers": {"count": 2096, "minimum": 13071.0, "maximum": 1419316933.0, "mean": 30320990.80582061,
                "quantiles": {"0.05": 200681.5, "0.5": 5303355.0, "0.95": 107342282.25},
                "edges": [13071.0, 17466.38701478776, 23339.811441385224], "counts": [2, 1]},
}

PROBLEM: Example = {
    "type": "urn:hynt:problem:invalid-question", "title": "Unprocessable Entity", "status": 422,
    "detail": "the graph has no entity called 'Jpan'.",
    "errors": [{"detail": "the graph has no entity called 'Jpan'.", "pointer": "#/head",
                "advice": "Give an entity's id or name. The nearest are 'Japan'."}],
}

INDEX: Example = {
    "hynt": __version__, "graph": "world", "description": "/openapi.json",
    "endpoints": [{"method": "GET", "path": "/v1/entities", "summary": "Find entities by name"}],
}
