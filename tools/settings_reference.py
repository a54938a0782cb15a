"""Writes `docs/reference/settings.md` from the settings' own declarations, with the reason for each default.

python -m tools.settings_reference       # after a setting, its default or its words have changed
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from hynt.config.declarations import is_group, settings_of, shape_of, words_for
from hynt.models.registry import MODELS
from hynt.runs.settings import TrainingSettings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"

START = """# Settings

Look up any setting of a run, its default and why it is so. Made from the code by `tools/settings_reference.py`; a test
keeps it up to date.

Change one with `hynt train GRAPH --set schedule.epochs=9`, in Python with `hynt.train(graph, schedule={"epochs": 9})`.
Without a preset hynt first [fits settings to your graph](../how-to/training.md#settings-for-your-own-graph); the
defaults below stand for what neither you, a preset nor that rule says. A run's `config.toml` has every value it used.

`–` means that the setting may be left out.
"""

WHY = {
    "seed": "any number serves; the same seed gives the same run",
    "batch_size": "the authors' usual value; small graphs get 128 to 512",
    "precision": "the fastest that each device has; name one to compare machines",
    "train_on": "the validation split is needed to choose the weights",
    "scale_on": "the other choice looks at test numbers; it exists to compare with the paper",
    "tables": "sharding pays only where a table does not fit",
    "literals": "shuffled ones are for a check of what numbers are worth",
    "log_relations": "import and training find the relations that need it",
    "with_statistics": "counts and means must be asked for, so that a model's figures are its own",
    "optimiser.learning_rate": "the authors' usual value",
    "optimiser.clip": "only some models need it; the presets of HyNT say 0.1",
    "optimiser.beta1": "Adam's own default",
    "optimiser.beta2": "Adam's own default",
    "optimiser.epsilon": "Adam's own default",
    "optimiser.weight_decay": "the papers use none",
    "optimiser.method": "the papers' choice",
    "optimiser.matrix_rate": "chosen on validation for hynt-inductive",
    "optimiser.average": "the papers keep none",
    "optimiser.table_rate": "tables of many rows learn at a rate of their own",
    "schedule.epochs": "the authors' usual value",
    "schedule.period": "the authors' usual value",
    "schedule.growth": "with 350 epochs and a period of 50: cycles that end after 50, 150 and 350",
    "schedule.lowest_rate": "the authors' schedule falls to 0",
    "schedule.shape": "the authors' schedule",
    "schedule.warm_up": "a common share",
    "schedule.decay": "the released scripts of the models that use it",
    "schedule.seconds": "`--minutes` sets it",
    "schedule.whole": "`--minutes` sets it",
    "schedule.epoch_steps": "every fact is asked about once an epoch",
    "validation.metric": "links are what most graphs are asked for",
    "validation.every": "the ends of cycles are where weights are best",
    "validation.patience": "`hynt train` without a preset stops by a rule of its own",
    "validation.keep_best": "the last weights are rarely the best",
    "validation.seconds": "`--minutes` sets it",
    "validation.facts": "asking about all facts gives the figure of the protocol",
    "validation.first": "no epoch is too early by default",
    "validation.each_task": "one set of weights is smaller and simpler; the presets of hynt-inductive keep three",
    "validation.chosen.link": "the last weights: links improve longest",
    "validation.chosen.relation": "the last weights, unless a run on train alone found a better epoch",
    "validation.chosen.number": "the last weights, unless a run on train alone found a better epoch",
    "saving.minutes": "a crash costs at most ten minutes",
    "masking.numbers": "asked in evaluation, so trained",
    "masking.relations": "asked in evaluation, so trained",
    "masking.qualifiers": "asked in evaluation, so trained",
    "losses.smoothing": "mild; the authors' presets say 0.3 to 0.7 by graph",
    "losses.relation_smoothing": "the paper has one value for both",
    "losses.relation_weight": "the paper's λ₁",
    "losses.number_weight": "the paper's λ₂",
    "losses.softmax": "sampling pays only where entities are very many",
    "losses.negatives": "trained as well as all entities in the trials: [large graphs](../how-to/scaling.md)",
    "losses.negative_samples": "more samples cost memory and hardly helped",
    "losses.negative_source": "neither source alone was best on validation",
}

MEANING = {
    "seed": "decides all that is drawn: first weights, order, what is masked, negatives, dropout",
    "batch_size": "facts in one step, over all processes together; of models that learn from other items, those",
    "train_on": "the facts that are learned from",
    "scale_on": "the facts whose least and greatest numbers are 0 and 1",
    "literals": '"shuffled" deals training numbers anew within each relation: do they help?',
    "optimiser.learning_rate": "the highest rate of the schedule",
    "optimiser.clip": "the greatest norm of a step's gradient; left out: gradients are not clipped",
    "optimiser.beta1": "decay of the mean of gradients",
    "optimiser.beta2": "decay of the mean of squared gradients",
    "optimiser.epsilon": "keeps steps finite where gradients vanish",
    "optimiser.weight_decay": 'the share of every weight, times the rate, that a step takes away; "muon": of matrices',
    "optimiser.matrix_rate": 'the highest rate of what "muon" moves',
    "optimiser.table_rate": "the highest rate of sharded tables, which row-wise Adagrad moves",
    "schedule.epochs": "how often all facts are learned from",
    "schedule.growth": "how many times as long each cycle is as the one before",
    "schedule.lowest_rate": "the rate at which a cycle ends",
    "schedule.shape": "how the rate moves, as said above",
    "schedule.warm_up": 'the share of all steps in which "linear" and "warm-cosine" rise',
    "schedule.decay": 'what "steps" multiplies the rate with after each period; 1 keeps it as it is',
    "schedule.seconds": "the longest that training takes; left out: all epochs",
    "schedule.whole": "whether the seconds are those of the whole command, validation and weighing included",
    "schedule.epoch_steps": "steps of an epoch where each step is drawn anew; left out: all facts are asked about once",
    "masking.numbers": "whether numbers are masked, too",
    "masking.relations": "whether relations of triplets are masked, too",
    "masking.qualifiers": "whether relations and values of qualifiers are masked, too",
    "losses.smoothing": "ε, the share of the target that is spread over all candidates",
    "losses.relation_smoothing": "the same share for relations; left out: as for entities",
    "losses.relation_weight": "λ1, how much the loss of relations counts",
    "losses.number_weight": "λ2, how much the loss of numbers counts",
    "losses.softmax": 'whether all entities compete or a sample of them; "auto" samples where there are very many',
    "losses.negatives": "with how many sampled entities a question is compared, where it is with a sample",
    "losses.negative_source": "how sampled entities are drawn: alike, by frequency, or some of each",
    "validation.every": "epochs from one validation to the next; left out: at the ends of cycles and of training",
    "validation.seconds": "seconds of training after which a validation is due as well",
    "validation.chosen.link": "the epoch whose weights answer for links",
    "validation.chosen.relation": "the epoch whose weights answer for relations",
    "validation.chosen.number": "the epoch whose weights answer for numbers",
    "saving.minutes": "minutes from one checkpoint to the next",
    "model.dimension": "length of the vectors of entities and relations",
    "model.layers": "layers of the transformer",
    "model.heads": "attention heads in each layer",
    "model.feedforward": "width of the net after each attention",
    "model.dropout": "share of hidden units that a step leaves out",
    "model.numbers": "how a ranking of literals becomes a number",
    "model.gate": "how an entity's vector takes in its literals",
    "model.composition": "how a relation moves what is sent along an edge, and a qualifier its relation",
    "model.head_rate": "learning rate of the head for numbers",
    "model.head_epochs": "epochs of the head for numbers, which is fitted once links are learned",
    "model.pool": "where negatives' values come from: seen in such a place, all, or all possible answers",
    "model.negatives": "false facts that are drawn beside each true one",
    "model.loss": "each fact is told true from false, or chosen among its negatives",
    "model.relation_share": "share of negatives that exchange a relation; left out: the share of relations in all ids",
}
"""What is meant, where the settings themselves say nothing or say it for readers of the code."""

MEANING_OF_MODELS = {
    "hynt": {
        **{
            f"{which}_{part}": words.format(which)
            for which in ("context", "prediction")
            for part, words in (
                ("layers", "layers of the {} transformer"),
                ("heads", "attention heads in each layer of the {} transformer"),
                ("feedforward", "width of the nets in the {} transformer"),
            )
        },
        "numbers": '"discrete" is the ablation that takes each literal for an entity; a number is then the best-ranked '
        "literal's",
        "number_bias": "whether a number's vector has a bias, b_r in v·w_r + b_r; the released code has none",
        "encoding_bias": "biases in W_tri and W_qual, which join a fact's parts; the released code has them",
        "position_scale": "how large position vectors start, as a share of Xavier's bound; small ones leave room for "
        "what they are added to ([how weights start](../background/models.md#how-weights-start))",
        "context_position": "a position vector for z, a fact's summary, in the prediction transformer; the released "
        "code adds none",
    },
    "hynt-inductive": {
        "dropout": "share left out of what attention and feed-forward net add to a node",
        "message_dropout": "share left out of messages, and of the hidden units of their net",
        "bins": "bins of a number's distribution over its relation's range",
        "observed_share": "share of the facts that a step reads; it is asked about the others",
    },
    "transea": {"distance": "how the way from head plus relation to the tail is measured: the shorter, the likelier"},
    "kbln": {
        "numeric_init": 'how the weights of numeric differences start; with "normal" thousands of candidates without '
        "literals begin with the same large score"
    },
    "literale": {
        "base": "the model that scores; the paper's searched settings name ConvE's dropouts, so its row is likely "
        '"conve"',
        "feature_map_dropout": "share left out after ConvE's convolution",
        "projection_dropout": "share left out after ConvE's projection",
    },
    "stare": {
        "graph_layers": "layers of the graph encoder; 0 is the paper's ablation without it",
        "dropout": "share left out in the transformer",
        "message_dropout": "share left out of what each direction of the graph brings an entity",
        "graph_dropout": "share left out after each graph layer",
        "positions": "whether the transformer has position vectors",
    },
    "hy-transformer": {
        "dropout": "share left out in the transformer",
        "table_dropout": "share left out of the whole table of entities: the same entries are missing in what is read "
        "and in the candidates",
    },
    "gran": {"dropout": "share left out of hidden states and of attention weights"},
    "nalp": {
        "dimension": "d, length of the vectors of roles and values",
        "filters": "n_f, filters of the convolution over role and value",
    },
    "ram": {
        "dimension": "d, length of each part of an entity's vector",
        "parts": "m, parts of an entity's vector",
        "basis": "K, vectors of the basis that all roles share",
        "role_dropout": "share left out of roles' vectors",
        "entity_dropout": "share left out of entities' vectors",
    },
    "neuinfer": {
        "validity_layers": "n₁, layers of the net that judges the triplet",
        "compatibility_layers": "n₂, layers of the net that judges how well qualifiers agree with it",
        "validity_weight": "w, how much the triplet's validity counts; the rest is for the qualifiers",
    },
    "neighbour-mean": {"shrinkage": "as how many neighbours with the relation's mean it counts"},
}
MEANING_OF_MODELS["tnalp"] = MEANING_OF_MODELS["nalp"] | {
    "type_dimension": "d_t, length of the vectors of latent types"
}
"""What is meant by a setting of one model, where others of that name mean something else."""

_WIDTH = "the width that the HyNT paper gave all models but RAM"
_SCRIPT = "the released script's value"
_FREQUENT = "the most frequent value of the authors' table; presets say others"
_FORM = "the paper's form"
_RELEASED = "the released code's form"
_BY_LITERAL = "the HyNT paper's reading: the best-ranked literal is the answer"
_ONE_EACH = "the authors draw one"

WHY_OF_MODELS = {
    "hynt": {
        "dimension": "the paper's width on every graph",
        **dict.fromkeys(("context_layers", "prediction_layers", "context_heads", "prediction_heads"), _FREQUENT),
        **dict.fromkeys(("context_feedforward", "prediction_feedforward", "dropout"), _FREQUENT),
        "tied_output": "the authors tied them on one graph only",
        **dict.fromkeys(("encoding", "prediction", "numbers", "number_bias", "encoding_bias"), _FORM),
        "context_position": _FORM,
        "number_of_hidden_relation": "the paper's form, for its presets; `hynt train` says `hidden` elsewhere",
        "equal_start": "nothing in the paper asks for it; presets for links say `true`, where validation was better",
        "position_scale": _RELEASED,
        "context_scale": "the released code's; presets say less where validation was better",
    },
    "hynt-inductive": {
        "dimension": "256 made no difference on validation of HN-YG",
        "layers": "2 and 4 were worse for links on validation of HN-YG, 12 no better",
        "heads": "the first design's; no other was tried",
        "feedforward": "twice the dimension, as in the first design; no other was tried",
        "dropout": "0.3 was worse on validation of HN-YG; presets say others by graph",
        "message_dropout": "half of the other; presets say others by graph",
        "bins": "a bin is 1 % of a relation's range",
        "bin_margin": "scaled training numbers lie within the range",
        "observed_share": "0.5 and 0.85 were worse for links on validation of HN-YG",
        "nearby_values": "numbers were better with it on validation",
        "head_reads_relation": "older runs do; presets for a GPU say `false`: numbers were better, with values nearby",
        "plain_numbers": "older runs read none; presets for a GPU say all: links and relations were better",
    },
    "transea": {
        "dimension": _WIDTH,
        **dict.fromkeys(("margin", "attribute_weight"), "the middle of the grid that the HyNT paper searched"),
        "distance": "the paper's margins from 2.5 to 10 fit no other",
    },
    "mt-kgnn": {
        "dimension": _WIDTH,
        **dict.fromkeys(("hidden", "dropout", "attribute_steps"), _SCRIPT),
        "average_networks": _RELEASED,
    },
    "kbln": {
        "dimension": _WIDTH,
        "dropout": _SCRIPT,
        **dict.fromkeys(("directions", "mask_missing", "per_relation_stats", "numeric_init", "cell_reduce"), _RELEASED),
        **dict.fromkeys(("head_rate", "head_epochs"), "within the HyNT paper's grid: 0.0005 and 0.01, 100 and 500"),
    },
    "literale": {
        "dimension": _WIDTH,
        "base": "the smallest; `literale-paper` says `conve`",
        "gate": "the authors' main form",
        **dict.fromkeys(("dropout", "feature_map_dropout", "projection_dropout"), _SCRIPT),
        **dict.fromkeys(("directions", "missing", "cell_reduce"), _RELEASED),
        "head_input": "the paper does not say, and `gated` could copy the answer",
        **dict.fromkeys(("head_rate", "head_epochs"), "within the HyNT paper's grid: 0.0005 and 0.01, 100 and 500"),
    },
    "stare": {
        "dimension": _WIDTH,
        **dict.fromkeys(("graph_layers", "layers", "graph_dropout", "dropout"), _SCRIPT),
        **dict.fromkeys(("heads", "feedforward", "message_dropout", "composition", "qualifier_weight"), _SCRIPT),
        **dict.fromkeys(("degrees", "decoder_qualifiers", "positions"), _RELEASED),
        "numbers": _BY_LITERAL,
    },
    "hy-transformer": {
        "dimension": _WIDTH,
        **dict.fromkeys(("layers", "heads", "feedforward", "dropout", "table_dropout"), _SCRIPT),
        "normalise": _FORM,
        "qualifier_values": "the authors' default; the HyNT paper searched 0, 0.5 and 1",
        "numbers": _BY_LITERAL,
    },
    "gran": {
        "dimension": "the authors' own, and the HyNT paper's",
        **dict.fromkeys(("layers", "heads", "feedforward"), "the authors' own"),
        "dropout": "the authors' own on WikiPeople, and the first point of the HyNT paper's grid",
        "edges": "the form that the authors recommend",
        "instances": "bounds the memory that one long fact takes; short ones are asked about whole",
        "numbers": _BY_LITERAL,
        "unseen": "what saved runs have; `gran-paper` says `mean`, which tells relations better",
    },
    "neighbour-mean": {"shrinkage": "a number among the neighbours counts as much as the relation's mean"},
    "ram": {
        **dict.fromkeys(("dimension", "parts"), "the HyNT paper's on HN-YG; it says 32 twice on larger graphs"),
        "basis": "the authors' own; the HyNT paper does not say",
        **dict.fromkeys(("role_dropout", "entity_dropout"), "the authors' own on WikiPeople"),
        "instances": "bounds the memory that one long fact takes; short ones are asked about whole",
        "numbers": _BY_LITERAL,
    },
}
_WITH_NEGATIVES = {
    "dimension": _WIDTH,
    "relation_share": "the authors draw relations and values from one pot",
    "pool": "the authors' way; `-paper` and `-small` presets say `answers`, which ranks far better",
    "negatives": _ONE_EACH,
    "loss": "the authors' way; `-small` presets say `softmax`, which ranks far better",
    "numbers": _BY_LITERAL,
    "unseen": "the authors' way; `mean` tells relations better, most of all for NeuInfer",
}
_NALP = {**_WITH_NEGATIVES, **dict.fromkeys(("filters", "hidden"), "the authors' own on JF17K")}
WHY_OF_MODELS |= {
    "nalp": _NALP,
    "tnalp": {**_NALP, **dict.fromkeys(("type_dimension", "type_hidden"), _SCRIPT)},
    "hinge": {**_WITH_NEGATIVES, "filters": "the authors' own", "relation_share": "the authors toss a fair coin"},
    "neuinfer": {
        **_WITH_NEGATIVES,
        **dict.fromkeys(("hidden", "validity_layers"), "the authors' own on WikiPeople"),
        **dict.fromkeys(("compatibility_layers", "validity_weight"), "the authors' own on WikiPeople"),
    },
}


def page() -> str:
    """The whole page."""
    rows = dict(_rows(TrainingSettings, ""))
    wrong = sorted(set(rows) ^ set(WHY))
    if wrong:
        raise SystemExit(f"say in WHY why the default is so, or remove what is gone: {', '.join(wrong)}")
    groups: dict[str, list[str]] = {}
    for path, row in rows.items():
        groups.setdefault(path.rpartition(".")[0], []).append(f"{row} {WHY[path]} |")
    parts = [START]
    for group, lines in groups.items():
        about = _sentence(_group_class(group)) if group else "Settings of every model."
        parts += [
            f"## {group or 'The run'}\n\n{about}\n",
            _table(lines, "| setting | values | default | meaning | why |"),
        ]
    parts.append("## model\n\nWhat each model takes for itself, under `model.`: `--set model.dropout=0.3`.\n")
    for name, entry in MODELS.items():
        own_words = {f"model.{setting}": words for setting, words in MEANING_OF_MODELS.get(name, {}).items()}
        of_model = _rows(entry.settings, "model.", own_words)
        own = {path.removeprefix("model."): row for path, row in of_model}
        why = WHY_OF_MODELS.get(name, {})
        wrong = sorted(set(own) ^ set(why))
        if wrong:
            raise SystemExit(f"say why of {name} in WHY_OF_MODELS, or remove what is gone: {', '.join(wrong)}")
        if own:
            lines = [f"{row} {why[setting]} |" for setting, row in own.items()]
            parts += [
                f"### {name}\n\n{_sentence(entry.settings)}\n",
                _table(lines, "| setting | values | default | meaning | why |"),
            ]
    return "\n".join(parts)


def _table(lines: list[str], head: str) -> str:
    rule = "|---" * (head.count("|") - 1) + "|"
    return "\n".join([head, rule, *lines]) + "\n"


def _group_class(group: str) -> type:
    found: Any = TrainingSettings
    for part in group.split("."):
        found = shape_of(settings_of(found)[part].annotation).bare
    return cast(type, found)


def _rows(cls: type, prefix: str, own: Mapping[str, str] = {}) -> Iterator[tuple[str, str]]:
    """Path and row of each setting, groups after what stands alone; `own` has words for this class alone."""
    said, found = _meanings(cls), settings_of(cls)
    ordered = sorted(fields(cls), key=lambda one: is_group(shape_of(found[one.name].annotation).bare))
    for one in ordered:
        annotation = found[one.name].annotation
        if is_group(shape_of(annotation).bare):
            yield from _rows(shape_of(annotation).bare, f"{prefix}{one.name}.")
        else:
            path = f"{prefix}{one.name}"
            meaning = own.get(path) or MEANING.get(path) or said.get(one.name)
            if meaning is None:
                raise SystemExit(f"say in MEANING what {path} of {cls.__name__} means")
            meaning = re.sub(
                r"^[A-Z](?=[a-z]+ )", lambda first: first[0].lower(), meaning.replace("None: ", "left out: ")
            )
            yield path, f"| `{path}` | {_values(annotation)} | {_default(one)} | {meaning} |"


def _values(annotation: Any) -> str:
    shape = shape_of(annotation)
    if get_origin(shape.bare) is Literal:
        return ", ".join(f"`{one}`" for one in get_args(shape.bare))
    rules = " and ".join(str(one) for one in shape.constraints)
    words = words_for(annotation).removeprefix("a ")
    return f"{words}, {rules}" if rules else words


def _default(one: Field[Any]) -> str:
    value = one.default if one.default is not MISSING else "…"
    if value is None or value == ():
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _sentence(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or "").split())


def _meanings(cls: type) -> dict[str, str]:
    """What is said of each setting: the string below it, or the comment at the end of its line."""
    source = textwrap.dedent(inspect.getsource(cls))
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    lines, said = source.splitlines(), {}
    for one, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            words = str(after.value.value)
        else:
            last = lines[one.end_lineno - 1] if one.end_lineno else ""
            comments = re.findall(r"#\s(.*)$", "\n".join([*lines[one.lineno - 1 : one.end_lineno], last]), re.MULTILINE)
            words = comments[0] if comments else ""
        said[one.target.id] = " ".join(words.split()).replace("|", "\\|").rstrip(".")
    return said


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: {len(page().splitlines())} lines")
