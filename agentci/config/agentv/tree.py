"""Parts of a YAML tree, made anew: what stands for a case need not stand in one place."""

from collections.abc import Callable, Iterable, Mapping

from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import Field, Fields, Items, Node, Scalar, plain_data
from agentci.model.json import Json
from agentci.model.place import Place
from agentci.model.problem import Problem


def node_of(value: Json, place: Place) -> Node:
    """A value all of whose parts stand in one place."""
    if value is None or isinstance(value, str | int | float):
        return Scalar(place=place, value=value, text=str(value), plain=False)
    if isinstance(value, Mapping):
        return mapping({key: node_of(each, place) for key, each in value.items()}, place)
    return listed((node_of(each, place) for each in value), place)


def listed(nodes: Iterable[Node], place: Place) -> Items:
    """A list of ``nodes``."""
    items = tuple(nodes)
    return Items(
        place=place,
        items=items,
        size=1 + sum(each.size for each in items),
        height=1 + max((each.height for each in items), default=0),
    )


def with_items(node: Items, change: Callable[[Node], Node]) -> Items:
    """``node`` with each of its items changed."""
    items = tuple(map(change, node.items))
    if all(one is other for one, other in zip(items, node.items, strict=True)):
        return node
    return listed(items, node.place)


def mapping(values: Mapping[str, Node], place: Place) -> Fields:
    """A mapping of ``values``, whose keys stand where their values do."""
    return of_fields({k: Field(place=v.place, value=v) for k, v in values.items()}, place)


def of_fields(fields: Mapping[str, Field], place: Place) -> Fields:
    """A mapping of ``fields``."""
    values = [each.value for each in fields.values()]
    return Fields(
        place=place,
        fields=fields,
        size=1 + sum(each.size for each in values),
        height=1 + max((each.height for each in values), default=0),
    )


def with_values(node: Fields, values: Mapping[str, Node]) -> Fields:
    """``node`` with other values for some of its keys, or with further keys."""
    fields = dict(node.fields)
    others = {k: v for k, v in values.items() if k not in fields or fields[k].value is not v}
    if not others:
        return node
    for key, value in others.items():
        place = fields[key].place if key in fields else value.place
        fields[key] = Field(place=place, value=value)
    return of_fields(fields, node.place)


def with_texts(node: Node, change: Callable[[Scalar, str], Node]) -> Node:
    """``node`` with other texts: ``change`` is given each with what it says."""
    match node:
        case Scalar(value=str(text)):
            return change(node, text)
        case Fields():
            return with_values(
                node, {key: with_texts(each.value, change) for key, each in node.fields.items()}
            )
        case Items():
            return with_items(node, lambda each: with_texts(each, change))
        case _:
            return node


def value_of(node: Node | None, key: str) -> Node | None:
    """The value of ``key``, None where ``node`` is no mapping or has no such key."""
    found = node.fields.get(key) if isinstance(node, Fields) else None
    return None if found is None else found.value


def document_of(root: Fields, *, file: str, problems: Iterable[Problem]) -> YamlDocument:
    """A document whose tree is ``root``."""
    data = {key: plain_data(field.value) for key, field in root.fields.items()}
    return YamlDocument(file=file, data=data, root=root, problems=tuple(problems))
