"""From settings to concrete adapters: the only place that names them, and the only one that touches the machine."""
