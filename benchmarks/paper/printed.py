"""What the paper prints, table by table (corrected version, doi:10.1145/3580305.3599490): its graphs, rows and figures.

A column is task, scope and metric, as evaluations have them, or what a table of its own kind says. A dash: no figure.
Table 3 has examples and no figures: `benchmarks.paper_figures` makes its like.
"""

from __future__ import annotations

from benchmarks.paper.appendix import APPENDIX
from benchmarks.paper.grids import (
    ABLATIONS,
    ATTRIBUTES,
    GRAPHS,
    LINKS_OF_ALL,
    LINKS_OF_TRIPLETS,
    NUMBERS,
    NUMERIC_HANDLING,
    RELATIONS_OF_ALL,
    RELATIONS_OF_TRIPLETS,
    Section,
    Table,
)

BASELINES = (
    *("transea", "mt-kgnn", "kbln", "literale", "nalp", "tnalp", "ram", "hinge", "neuinfer", "stare"),
    *("hy-transformer", "gran"),
)
"""In the paper's order."""


PAPER: dict[int, Table] = {
    1: Table(
        "graphs",
        "The graphs",
        (
            Section(
                "all graphs",
                GRAPHS,
                """
discrete entities 13655 12439 14284 5510
numeric entities 79600 24508 62056 21824
discrete relations 200 31 278 161
numeric relations 157 26 83 47
facts 296783 76383 284288 108140
facts with qualifiers 126524 9916 71598 30121
distinct triplets, discrete 155394 45001 185269 73686
distinct triplets, numeric 112787 31382 74017 25701
distinct qualifiers, discrete 3894 4 9416 3775
distinct qualifiers, numeric 9218 8008 2639 500
""",
            ),
        ),
    ),
    2: Table(
        "links",
        "Link prediction, triplets",
        (
            Section(
                "HN-WK",
                LINKS_OF_TRIPLETS,
                """
transea .1413 .2921 .1728 .0613
mt-kgnn .1448 .2244 .1566 .1035
kbln .1500 .2275 .1620 .1112
literale .1635 .2563 .1792 .1182
nalp .1326 .2303 .1359 .0771
tnalp .1419 .2446 .1460 .0859
ram .1696 .2986 .1746 .1032
hinge .1706 .2880 .1770 .1051
neuinfer .1621 .2651 .1707 .1052
stare .2177 .3523 .2268 .1438
hy-transformer .2438 .3463 .2567 .1812
gran .2627 .3761 .2738 .2029
hynt .3037 .5082 .3228 .2084
""",
            ),
            Section(
                "HN-YG",
                LINKS_OF_TRIPLETS,
                """
transea .1397 .2707 .1738 .0660
mt-kgnn .1377 .2181 .1474 .0998
kbln .1540 .2231 .1690 .1161
literale .1577 .2459 .1733 .1133
nalp .0838 .1529 .0864 .0489
tnalp .1074 .1790 .1163 .0690
ram .1682 .2641 .1862 .1185
hinge .1493 .2463 .1640 .1003
neuinfer .1213 .2042 .1327 .0774
stare .1826 .2907 .2042 .1262
hy-transformer .1884 .2968 .2070 .1335
gran .1951 .3137 .2223 .1319
hynt .2035 .3147 .2237 .1474
""",
            ),
            Section(
                "HN-FB-S",
                LINKS_OF_TRIPLETS,
                """
transea .2565 .4647 .2912 .1554
mt-kgnn .2509 .4383 .2758 .1612
kbln .2406 .4303 .2586 .1528
literale .2632 .4612 .2885 .1701
nalp .3721 .5602 .4283 .2726
tnalp .3410 .5165 .3899 .2499
ram .5077 .6269 .5402 .4432
hinge .4147 .6262 .4729 .3060
neuinfer .2872 .4725 .3297 .1943
stare .4707 .6521 .5254 .3734
hy-transformer .4911 .6577 .5410 .4012
gran .5028 .6570 .5488 .4203
hynt .5079 .7037 .5610 .4063
""",
            ),
        ),
    ),
    4: Table(
        "links-all",
        "Link prediction, all entities",
        (
            Section(
                "HN-WK",
                LINKS_OF_ALL,
                """
nalp .1541 .2560 .1602 .0965
tnalp .1616 .2693 .1685 .1030
ram .1766 .3079 .1830 .1092
hinge .1876 .3074 .1961 .1209
neuinfer .1740 .2808 .1849 .1153
gran .2901 .4020 .3019 .2310
hynt .3254 .5261 .3459 .2314
""",
            ),
            Section(
                "HN-FB-S",
                LINKS_OF_ALL,
                """
nalp .4578 .6414 .5160 .3606
tnalp .4357 .6069 .4865 .3460
ram .5788 .6874 .6085 .5205
hinge .4809 .6893 .5412 .3736
neuinfer .3414 .5334 .3836 .2466
gran .5873 .7223 .6286 .5149
hynt .5796 .7586 .6323 .4857
""",
            ),
        ),
    ),
    5: Table(
        "relations",
        "Relation prediction",
        (
            Section(
                "HN-WK",
                RELATIONS_OF_TRIPLETS,
                """
nalp .5682 .6886 .6014 .5002
tnalp .5967 .7542 .6316 .5164
hinge .8806 .9700 .9183 .8295
neuinfer .7485 .8929 .7929 .6734
gran .9285 .9899 .9615 .8898
hynt .9474 .9905 .9789 .9145
""",
            ),
            Section(
                "HN-WK",
                RELATIONS_OF_ALL,
                """
nalp .7410 .8245 .7684 .6927
tnalp .7625 .8631 .7912 .7081
hinge .9278 .9828 .9527 .8953
neuinfer .8320 .9367 .8800 .7671
gran .9599 .9941 .9784 .9382
hynt .9706 .9947 .9881 .9522
""",
            ),
            Section(
                "HN-YG",
                RELATIONS_OF_TRIPLETS,
                """
nalp .3419 .5696 .3926 .2113
tnalp .4273 .6840 .4817 .2957
hinge .8174 .9538 .8786 .7400
neuinfer .6437 .8965 .7175 .5162
gran .8347 .9383 .8858 .7697
hynt .8797 .9851 .9379 .8135
""",
            ),
            Section(
                "HN-YG",
                RELATIONS_OF_ALL,
                """
nalp .4224 .6222 .4669 .3078
tnalp .4946 .7220 .5441 .3775
hinge .8397 .9594 .8935 .7718
neuinfer .6803 .9054 .7479 .5655
gran .8548 .9459 .8998 .7977
hynt .8944 .9869 .9455 .8363
""",
            ),
            Section(
                "HN-FB-S",
                RELATIONS_OF_TRIPLETS,
                """
nalp .5539 .6776 .5889 .4760
tnalp .5330 .6873 .5645 .4528
hinge .9684 .9964 .9871 .9483
neuinfer .7643 .9427 .8630 .6523
gran .9845 .9947 .9934 .9755
hynt .9815 .9994 .9966 .9669
""",
            ),
            Section(
                "HN-FB-S",
                RELATIONS_OF_ALL,
                """
nalp .7010 .8306 .7748 .6084
tnalp .6545 .8345 .7471 .5348
hinge .9675 .9981 .9924 .9431
neuinfer .7980 .9692 .9098 .6838
gran .9918 .9972 .9965 .9870
hynt .9902 .9997 .9982 .9825
""",
            ),
        ),
    ),
    6: Table(
        "numbers",
        "Numeric value prediction, RMSE",
        (
            Section(
                "HN-WK",
                NUMBERS,
                """
transea .0772 -
mt-kgnn .1390 -
kbln .1550 -
literale .2104 -
nalp .2329 .1681
tnalp .2312 .1673
ram .1102 .0820
hinge .2435 .1752
neuinfer .2425 .1744
stare .0832 -
hy-transformer .0761 -
gran .2293 .1667
hynt .0548 .0405
""",
            ),
            Section(
                "HN-YG",
                NUMBERS,
                """
transea .0778 -
mt-kgnn .1203 -
kbln .1342 -
literale .1783 -
nalp .1399 .1375
tnalp .1185 .1176
ram .0969 .1132
hinge .1141 .1123
neuinfer .1176 .1396
stare .0990 -
hy-transformer .0972 -
gran .1180 .1247
hynt .0706 .0694
""",
            ),
            Section(
                "HN-FB-S",
                NUMBERS,
                """
transea .1332 -
mt-kgnn .0908 -
kbln .0890 -
literale .0801 -
nalp .1055 .0894
tnalp .0929 .0923
ram .0706 .0627
hinge .1077 .0939
neuinfer .1093 .1004
stare .0670 -
hy-transformer .0656 -
gran .0835 .0773
hynt .0532 .0499
""",
            ),
        ),
    ),
    7: Table(
        "attributes",
        "Numeric value prediction by attribute, RMSE in its unit",
        (
            Section(
                "HN-WK",
                ATTRIBUTES,
                """
transea 19.3 .049 .279 -
mt-kgnn 40.4 .079 .569 -
kbln 35.2 .130 .782 -
literale 47.7 .168 .900 -
nalp 68.2 .074 .760 94.4
tnalp 67.1 .065 1.149 81.8
ram 22.7 .066 1.472 24.9
hinge 70.5 .077 1.363 91.8
neuinfer 71.6 .067 .967 93.9
stare 18.0 .046 .380 -
hy-transformer 16.0 .032 .508 -
gran 67.7 .057 .758 88.5
hynt 12.4 .023 .222 21.0
""",
            ),
        ),
    ),
    8: Table(
        "discrete-numbers",
        "Numbers as discrete entities",
        (
            Section(
                "HN-WK",
                NUMERIC_HANDLING,
                """
numbers as discrete entities .2478 .3713 .2621 .1827 .2267
HyNT .3254 .5259 .3459 .2314 .0405
""",
            ),
        ),
    ),
    9: Table(
        "ablations",
        "Ablations of HyNT",
        (
            Section(
                "HN-WK",
                ABLATIONS,
                """
without masking numbers, relations, qualifiers .277 .264 .014 .018 .507 .733
without masking relations, qualifiers .291 .278 .074 .043 .064 .112
without masking numbers .291 .312 .939 .966 .429 .786
without masking relations .259 .272 .015 .010 .059 .042
without masking qualifiers .256 .244 .936 .514 .064 .329
without prediction transformer .275 .296 .930 .961 .060 .043
with Hadamard encoding .258 .255 .939 .964 .064 .048
HyNT .304 .325 .947 .971 .055 .040
""",
            ),
        ),
    ),
} | APPENDIX
