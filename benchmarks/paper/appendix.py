"""What the paper prints in its appendix: HN-FB, and graphs without numbers; `printed` has the other tables."""

from __future__ import annotations

from benchmarks.paper.grids import (
    BENCHMARK_ALL,
    BENCHMARK_TRIPLETS,
    LINKS_OF_ALL,
    LINKS_OF_TRIPLETS,
    RELATIONS_OF_ALL,
    RELATIONS_OF_TRIPLETS,
    Section,
    Table,
)

APPENDIX: dict[int, Table] = {
    10: Table(
        "hn-fb",
        "Links and numbers on HN-FB",
        (
            Section(
                "HN-FB",
                LINKS_OF_TRIPLETS + " number.triplet.rmse",
                """
transea .2327 .4793 .2894 .1084 .0637
mt-kgnn .2393 .4270 .2578 .1540 .2072
kbln .2343 .4204 .2523 .1494 .0735
literale .2602 .4559 .2872 .1695 .0678
hynt .4544 .6571 .5036 .3520 .0517
""",
            ),
            Section(
                "HN-FB",
                LINKS_OF_ALL + " number.all.rmse",
                """
hynt .5022 .7207 .5561 .3939 .0558
""",
            ),
        ),
    ),
    11: Table(
        "hn-fb-relations",
        "Relations on HN-FB",
        (
            Section(
                "HN-FB",
                RELATIONS_OF_TRIPLETS,
                """
hynt .9809 .9990 .9958 .9662
""",
            ),
            Section(
                "HN-FB",
                RELATIONS_OF_ALL,
                """
hynt .9860 .9987 .9954 .9766
""",
            ),
        ),
    ),
    12: Table(
        "benchmarks",
        "Link prediction on WikiPeople- and WD50K, train only",
        (
            Section(
                "WikiPeople-",
                BENCHMARK_TRIPLETS,
                """
nalp .3563 .4994 .2713
tnalp .3577 .4857 .2876
ram .4593 .5837 .3843
hinge .3929 .5467 .3092
neuinfer .3568 .5326 .2469
stare .4579 .6108 .3640
hy-transformer .4597 .5942 .3818
gran .4616 .6097 .3664
hynt .4820 .6020 .4153
""",
            ),
            Section(
                "WikiPeople-",
                BENCHMARK_ALL,
                """
nalp .3601 .5034 .2751
tnalp .3607 .4896 .2900
ram .4606 .5850 .3856
hinge .3947 .5488 .3108
neuinfer .3569 .5324 .2475
gran .4654 .6133 .3706
hynt .4811 .6025 .4139
""",
            ),
            Section(
                "WD50K",
                BENCHMARK_TRIPLETS,
                """
nalp .2303 .3471 .1697
tnalp .2205 .3308 .1630
ram .2756 .3988 .2104
hinge .2636 .4099 .1870
neuinfer .2202 .3466 .1543
stare .3087 .4515 .2340
hy-transformer .3041 .4427 .2309
gran .3299 .4722 .2551
hynt .3332 .4743 .2594
""",
            ),
            Section(
                "WD50K",
                BENCHMARK_ALL,
                """
nalp .2508 .3747 .1866
tnalp .2425 .3597 .1815
ram .2955 .4156 .2316
hinge .2771 .4244 .1996
neuinfer .2254 .3549 .1581
gran .3605 .5013 .2863
hynt .3599 .4999 .2867
""",
            ),
        ),
    ),
    13: Table(
        "wd50k-both",
        "Link prediction on WD50K, train and valid",
        (
            Section(
                "WD50K, train and valid",
                BENCHMARK_TRIPLETS,
                """
nalp .1770 .2640 .1310
hinge .2430 .3770 .1760
stare .3490 .4960 .2710
hy-transformer .3560 .4980 .2810
hynt .3568 .5010 .2811
""",
            ),
            Section(
                "WD50K, train and valid",
                BENCHMARK_ALL,
                """
hynt .3834 .5267 .3081
""",
            ),
        ),
    ),
}
