"""Words that decide what becomes of a list's entry: what is no group, what is a hedge, which spellings are one name."""

from __future__ import annotations

import re


def any_of(words: str, also: str = "") -> re.Pattern[str]:
    """A pattern for any of the comma-separated words as a whole word, or for the pattern `also`."""
    alternatives = "|".join(re.escape(word.strip()) for word in words.replace("\n", " ").split(",") if word.strip())
    return re.compile(rf"\b(?:{alternatives})\b{also}", re.IGNORECASE)


NO_GROUP = any_of(
    """other, others, none, unspecified, unknown, unaffiliated, no religion, not stated, nonbeliever, nonbelievers,
    non-believer, non-believers, no answer, no response, refused, undeclared, undetermined, not applicable,
    mixed, foreign, foreigner, foreigners, believer, believers, no religious, not specified, nonreligious,
    no affiliation, undefined, and, or, with, of which, more than one, two or more""",
    also=r"|\bnon-\w+|/not|other/|^no |^not |^un\w+ed$",
)
"""Entries that count a remainder, several groups at once, or people without the trait."""

NARROWED = re.compile(r"exclud|except|only|not includ|non-", re.IGNORECASE)
"""A parenthesis that changes whom the name means: 'EU (excluding Dutch)'."""

HEDGED = any_of(
    """negligible, none, few, possible, possibly, likely, unexploited, undeveloped, untapped, small, smaller,
    limited, minor, other, others, some, trace, traces, modest, significant, large, largely, known, reserve,
    reserves, deposit, deposits, extensive, substantial, unconfirmed, believed, discontinued, exploited,
    exhausted, estimated, and, or, of, which, vast, numerous, abundant, fertile, potentially, natural
    resources, in, with, as"""
)
"""A resource that the text does not simply state."""

GOODS = {
    "aluminium": "aluminum",
    "sulphur": "sulfur",
    "phosphate": "phosphates",
    "clays": "clay",
    "packaged medicines": "packaged medicine",
}
GROUPS = {
    "Islam": "Muslim",
    "Buddhism": "Buddhist",
    "Hinduism": "Hindu",
    "Christianity": "Christian",
    "animist": "Animist",
    "Jehovah Witness": "Jehovah's Witness",
    "Traditional": "traditionalist",
}
ROLES = {"partners": "partner", "nonregional members": "nonregional member", "associate": "associate member"}
NO_ROLES = frozenset({"Chinese Taipei", "NGOs"})
"""In parentheses after an organisation, but no role: the name a member goes by, or who represents it."""
