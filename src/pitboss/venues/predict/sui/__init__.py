"""The writer of the predict protocol on Sui: sends orders as signed transactions, each at most once.

    broker        the Broker port: an order in, a desk and receipts out
    order_sender  the state machine that brings one order to the chain at most once
    transaction   bytes and digest of a transaction (needs the extra `sui`)
    signer        has them signed by the signing process
    chain         the port to a node; `graphql` implements it over the network
    order         an order and a trade in plain numbers
    desk_changes  the desk after a trade or a refusal
    ports         the outbox and the signer, as ports

Disabled by default. It reads no settings and no keys: `venues.predict.sui_setup` builds it.
"""
