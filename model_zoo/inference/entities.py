"""Labels that mark entities: in IOB1, IOB2, IOBES or BILOU, with types, as B-PER, or without."""

__all__ = ['OUTSIDE', 'entity_parts', 'groups_of_entities', 'has_entities']

#: the tag of words outside of all entities
OUTSIDE = 'O'
MARKS = 'BIESLU'  # B(egin), I(nside); and for a last and a single word E, S or L, U
UNTYPED = '_'  # the type of an entity that is only marked, as seqeval calls it
# mark of a word -> marks of its first part, of those between, and of its last
_OF_PARTS = {'B': 'BII', 'I': 'III', 'E': 'IIE', 'S': 'BIE', 'L': 'IIL', 'U': 'BIL'}


def entity_parts(label, marks=MARKS):
    """Return the mark of a label, '' if it has none, and its type."""
    if label[1:2] == '-' and label[0] in marks and label[2:]:
        return label[0], label[2:]
    if label in {*MARKS} and marks == MARKS:
        return label, UNTYPED
    return '', label


def has_entities(labels):
    """Return whether labels mark entities (as ``B-PER`` does), rather than single words."""
    marked = set(labels) - {OUTSIDE}
    begins = {'B', 'I'} & marked or any('-' in label for label in marked)
    return bool(begins) and all(entity_parts(label)[0] for label in marked)


def marks_of(labels):
    """Return the marks of entities: only B- and I-, unless all labels are of one scheme."""
    return MARKS if has_entities(labels) else 'BI'


def labels_of_parts(label, count, marks=MARKS):
    """Return the labels of a word's parts: they continue the entity that the first one begins."""
    mark, _ = entity_parts(label, marks)
    if count < 2 or not mark:
        return [label] * count
    first, middle, last = (each + label[1:] for each in _OF_PARTS[mark])
    return [first, *[middle] * (count - 2), last]


def groups_of_entities(entities, labels):
    """Return (type, words) of each entity; a word's 'entity' is its label."""
    marks = marks_of(labels)
    groups, before = [], ('', None)
    for entity in entities:
        mark, entity_type = entity_parts(entity['entity'], marks)
        continues = mark not in {'B', 'S', 'U'} and before[0] not in {'E', 'S', 'L', 'U'}
        if groups and continues and entity_type == before[1]:
            groups[-1][1].append(entity)
        else:
            groups.append((entity_type, [entity]))
        before = mark, entity_type
    return groups
