"""A name that no address has room for leads nowhere, rather than to a refusal."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("length", "is_link"), [(100, True), (8_000, True), (10_000, False), (1_000_000, False)])
def test_a_link_is_there_only_where_the_service_would_take_it(length, is_link):
    from hynt.service.pages.rendering import environment

    page = environment().from_string("<a{{ address('/entity', [('id', name)])|leads }}>{{ name|shown }}</a>")
    text = page.render(name="x" * length)
    assert (' href="/entity?id=xxx' in text) is is_link


def test_what_a_link_holds_is_escaped():
    from hynt.service.pages.rendering import leads_to

    assert leads_to('/a?b="><script>') == ' href="/a?b=&#34;&gt;&lt;script&gt;"'


def test_every_link_of_the_templates_is_made_so():
    import re
    from importlib.resources import files

    for template in (files("hynt.service.pages") / "templates").iterdir():
        assert not re.search(r'<a\b[^>]*href="\{\{', template.read_text(encoding="utf-8")), template.name
