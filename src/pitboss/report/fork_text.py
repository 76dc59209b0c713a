"""A fork in words: the run that it was forked from, and which model decided which part. Read from a run's document."""

from pitboss.report.source import Plain, mapping

UNKNOWN = "an unknown model (not stored)"


def fork_sentence(document: Plain) -> str:
    """The source, the tick and the deciders of a fork; empty for any other run."""
    source = mapping(document.get("forked_from"))
    if not source:
        return ""
    return (
        f"Fork of run {source.get('run_id') or 'unknown'} at {source.get('tick_at')}. Decided by {deciders(document)}."
    )


def deciders(document: Plain) -> str:
    """Each model with the part that it decided; only the name if one model decided everything."""
    parts = [mapping(part) for part in document.get("decided_by") or ()]
    if len(parts) == 1:
        return f"{_model(parts[0])} throughout"
    return ", then ".join(f"{_model(part)} from {part.get('from')} to {part.get('to')}" for part in parts)


def program_names(document: Plain) -> str:
    """The programs that decided a run: `policy/hold, a fixed program`."""
    parts = [mapping(part) for part in document.get("decided_by") or ()]
    names = list(dict.fromkeys(map(_model, parts))) or [str(document.get("model"))]
    return f"{' and '.join(names)}, {'fixed programs' if len(names) > 1 else 'a fixed program'}"


def model_column(document: Plain) -> str:
    """The model of a run in a list; for a fork also its source and the models before."""
    source, parts = mapping(document.get("forked_from")), [mapping(part) for part in document.get("decided_by") or ()]
    if not source:
        return str(document.get("model"))
    run_id, earlier = str(source.get("run_id") or "unknown"), [_model(part) for part in parts[:-1]]
    text = f"{document.get('model')}, fork of {run_id[:8]} at {source.get('tick_at')}"
    return text + (f", before: {', '.join(earlier)}" if earlier else "")


def _model(part: Plain) -> str:
    return str(part.get("model") or UNKNOWN)
