"""What the scheme `evm_transaction` is made of: its policy, its transactions and their place in the journal."""
