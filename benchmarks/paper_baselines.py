"""What the HyNT paper prints for the twelve baselines, to stand beside reproductions.

From the corrected version of the paper (doi:10.1145/3580305.3599490). HN-WK is not HN-WK-resplit: its figures are there
for orientation only.
"""

from __future__ import annotations

ORDER = (
    "transea",
    "mt-kgnn",
    "kbln",
    "literale",
    "nalp",
    "tnalp",
    "ram",
    "hinge",
    "neuinfer",
    "stare",
    "hy-transformer",
    "gran",
)

LINK: dict[str, dict[str, tuple[float, ...]]] = {  # triplet: MRR, Hits@10, Hits@3, Hits@1
    "HN-YG": {
        "transea": (0.1397, 0.2707, 0.1738, 0.0660),
        "mt-kgnn": (0.1377, 0.2181, 0.1474, 0.0998),
        "kbln": (0.1540, 0.2231, 0.1690, 0.1161),
        "literale": (0.1577, 0.2459, 0.1733, 0.1133),
        "nalp": (0.0838, 0.1529, 0.0864, 0.0489),
        "tnalp": (0.1074, 0.1790, 0.1163, 0.0690),
        "ram": (0.1682, 0.2641, 0.1862, 0.1185),
        "hinge": (0.1493, 0.2463, 0.1640, 0.1003),
        "neuinfer": (0.1213, 0.2042, 0.1327, 0.0774),
        "stare": (0.1826, 0.2907, 0.2042, 0.1262),
        "hy-transformer": (0.1884, 0.2968, 0.2070, 0.1335),
        "gran": (0.1951, 0.3137, 0.2223, 0.1319),
    },
    "HN-WK": {
        "transea": (0.1413, 0.2921, 0.1728, 0.0613),
        "mt-kgnn": (0.1448, 0.2244, 0.1566, 0.1035),
        "kbln": (0.1500, 0.2275, 0.1620, 0.1112),
        "literale": (0.1635, 0.2563, 0.1792, 0.1182),
        "nalp": (0.1326, 0.2303, 0.1359, 0.0771),
        "tnalp": (0.1419, 0.2446, 0.1460, 0.0859),
        "ram": (0.1696, 0.2986, 0.1746, 0.1032),
        "hinge": (0.1706, 0.2880, 0.1770, 0.1051),
        "neuinfer": (0.1621, 0.2651, 0.1707, 0.1052),
        "stare": (0.2177, 0.3523, 0.2268, 0.1438),
        "hy-transformer": (0.2438, 0.3463, 0.2567, 0.1812),
        "gran": (0.2627, 0.3761, 0.2738, 0.2029),
    },
}

BENCHMARK_LINK: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {  # by scope: MRR, Hits@10, Hits@1
    "WikiPeople-": {
        "triplet": {
            "nalp": (0.3563, 0.4994, 0.2713),
            "tnalp": (0.3577, 0.4857, 0.2876),
            "ram": (0.4593, 0.5837, 0.3843),
            "hinge": (0.3929, 0.5467, 0.3092),
            "neuinfer": (0.3568, 0.5326, 0.2469),
            "stare": (0.4579, 0.6108, 0.3640),
            "hy-transformer": (0.4597, 0.5942, 0.3818),
            "gran": (0.4616, 0.6097, 0.3664),
        },
        "all": {
            "nalp": (0.3601, 0.5034, 0.2751),
            "tnalp": (0.3607, 0.4896, 0.2900),
            "ram": (0.4606, 0.5850, 0.3856),
            "hinge": (0.3947, 0.5488, 0.3108),
            "neuinfer": (0.3569, 0.5324, 0.2475),
            "gran": (0.4654, 0.6133, 0.3706),
        },
    },
    "WD50K": {
        "triplet": {
            "nalp": (0.2303, 0.3471, 0.1697),
            "tnalp": (0.2205, 0.3308, 0.1630),
            "ram": (0.2756, 0.3988, 0.2104),
            "hinge": (0.2636, 0.4099, 0.1870),
            "neuinfer": (0.2202, 0.3466, 0.1543),
            "stare": (0.3087, 0.4515, 0.2340),
            "hy-transformer": (0.3041, 0.4427, 0.2309),
            "gran": (0.3299, 0.4722, 0.2551),
        },
        "all": {
            "nalp": (0.2508, 0.3747, 0.1866),
            "tnalp": (0.2425, 0.3597, 0.1815),
            "ram": (0.2955, 0.4156, 0.2316),
            "hinge": (0.2771, 0.4244, 0.1996),
            "neuinfer": (0.2254, 0.3549, 0.1581),
            "gran": (0.3605, 0.5013, 0.2863),
        },
    },
}

RELATION: dict[str, dict[str, tuple[float, float]]] = {  # MRR: triplet, all
    "HN-YG": {
        "nalp": (0.3419, 0.4224),
        "tnalp": (0.4273, 0.4946),
        "hinge": (0.8174, 0.8397),
        "neuinfer": (0.6437, 0.6803),
        "gran": (0.8347, 0.8548),
    },
    "HN-WK": {
        "nalp": (0.5682, 0.7410),
        "tnalp": (0.5967, 0.7625),
        "hinge": (0.8806, 0.9278),
        "neuinfer": (0.7485, 0.8320),
        "gran": (0.9285, 0.9599),
    },
}

NUMBER: dict[str, dict[str, tuple[float | None, float | None]]] = {  # RMSE: triplet, all
    "HN-YG": {
        "transea": (0.0778, None),
        "mt-kgnn": (0.1203, None),
        "kbln": (0.1342, None),
        "literale": (0.1783, None),
        "nalp": (0.1399, 0.1375),
        "tnalp": (0.1185, 0.1176),
        "ram": (0.0969, 0.1132),
        "hinge": (0.1141, 0.1123),
        "neuinfer": (0.1176, 0.1396),
        "stare": (0.0990, None),
        "hy-transformer": (0.0972, None),
        "gran": (0.1180, 0.1247),
    },
    "HN-WK": {
        "transea": (0.0772, None),
        "mt-kgnn": (0.1390, None),
        "kbln": (0.1550, None),
        "literale": (0.2104, None),
        "nalp": (0.2329, 0.1681),
        "tnalp": (0.2312, 0.1673),
        "ram": (0.1102, 0.0820),
        "hinge": (0.2435, 0.1752),
        "neuinfer": (0.2425, 0.1744),
        "stare": (0.0832, None),
        "hy-transformer": (0.0761, None),
        "gran": (0.2293, 0.1667),
    },
}

ATTRIBUTES = {"P1352": "ranking", "P1081": "HDI", "P4841": "fertility rate", "P585": "point in time"}
PER_ATTRIBUTE: dict[str, tuple[float | None, ...]] = {  # HN-WK, RMSE in original units, in the order of ATTRIBUTES
    "transea": (19.3, 0.049, 0.279, None),
    "mt-kgnn": (40.4, 0.079, 0.569, None),
    "kbln": (35.2, 0.130, 0.782, None),
    "literale": (47.7, 0.168, 0.900, None),
    "nalp": (68.2, 0.074, 0.760, 94.4),
    "tnalp": (67.1, 0.065, 1.149, 81.8),
    "ram": (22.7, 0.066, 1.472, 24.9),
    "hinge": (70.5, 0.077, 1.363, 91.8),
    "neuinfer": (71.6, 0.067, 0.967, 93.9),
    "stare": (18.0, 0.046, 0.380, None),
    "hy-transformer": (16.0, 0.032, 0.508, None),
    "gran": (67.7, 0.057, 0.758, 88.5),
}
