"""What the scheme `sui_transaction` is made of: its keys, the strict reading of a transaction's bytes, its policy and its journal."""
