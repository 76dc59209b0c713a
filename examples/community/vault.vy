# pragma version ~=0.4.0
"""
@title A vault with a faucet, for trials of the community venue
@license Apache-2.0
@notice It holds a mistake that an examination should find. Do not use it.
"""

event Deposited:
    account: indexed(address)
    amount: uint256

event Withdrawn:
    account: indexed(address)
    amount: uint256

FAUCET_AMOUNT: constant(uint256) = 1000

owner: public(address)
balances: public(HashMap[address, uint256])
deposited: public(uint256)


@deploy
def __init__():
    self.owner = msg.sender


@external
@payable
def deposit():
    self.balances[msg.sender] += msg.value
    self.deposited += msg.value
    log Deposited(account=msg.sender, amount=msg.value)


@external
def faucet():
    assert self.balance >= FAUCET_AMOUNT, "the faucet is empty"
    send(msg.sender, FAUCET_AMOUNT)


@external
def withdraw(amount: uint256):
    assert amount <= self.balances[msg.sender], "more than was deposited"
    # The mistake: the balance is not reduced, so the same amount can be withdrawn again and again.
    send(msg.sender, amount)
    log Withdrawn(account=msg.sender, amount=amount)


@external
@view
def held() -> uint256:
    return self.balance


@external
def transferOwnership(new_owner: address):
    assert msg.sender == self.owner, "only the owner"
    self.owner = new_owner
