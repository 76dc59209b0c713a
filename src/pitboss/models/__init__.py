"""Models behind the `Model` port: providers, local files, recorded and scripted replies; `catalog` finds them by name.

A call passes through wrappers that share one interface, `call.ModelClient`: outermost first `Traced`, `Cached`, `Retried`,
`Budgeted`, `Priced`, `Limited`, and a client (`chat`, `native`, `local`). Nothing here judges a decision or acts on it.
"""
