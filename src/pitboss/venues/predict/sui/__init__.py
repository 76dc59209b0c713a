"""The writer of the predict protocol on Sui: orders as signed transactions, each at most once. Off unless it is asked for.

    broker        the Broker port: an order in, a desk and receipts out
    carry         how one order gets to the chain at most once: the state machine
    transaction   bytes of a transaction, and the digest that names it (needs the extra `sui`)
    signer        who signs them
    chain         what is needed of a node, as a port; `graphql` is the one over the network
    wish, book    an order and a trade in plain numbers; the desk after a trade
    ports         the outbox and the signer, as ports

It reads no settings and no keys: `bootstrap.sui` puts it together.
"""
