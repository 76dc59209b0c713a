"""The writer's GraphQL queries against the node's published schema, of which this holds the types that they touch."""

import pytest

from pitboss.venues.predict.sui import graphql as queries

graphql = pytest.importorskip("graphql", reason="the extra `sui` is not installed")

SCHEMA = """
scalar Base64 scalar BigInt scalar JSON scalar SuiAddress scalar UInt53
enum ExecutionStatus { SUCCESS FAILURE }
input ObjectKey { address: SuiAddress! version: UInt53 rootVersion: UInt53 atCheckpoint: UInt53 }
input ObjectFilter { type: String owner: SuiAddress }
input VersionFilter { afterVersion: UInt53 beforeVersion: UInt53 }
type Query {
  address(address: SuiAddress!, rootVersion: UInt53): Address!
  chainIdentifier: String!
  epoch(epochId: UInt53): Epoch
  multiGetObjects(keys: [ObjectKey!]!): [Object]!
  objectVersions(first: Int, after: String, last: Int, before: String, address: SuiAddress!, filter: VersionFilter): ObjectConnection
  simulateTransaction(transaction: JSON!, checksEnabled: Boolean, doGasSelection: Boolean): SimulationResult!
  transactionEffects(digest: String!): TransactionEffects
}
type Mutation { executeTransaction(transactionDataBcs: Base64!, signatures: [Base64!]!): ExecutionResult! }
type Address { objects(first: Int, after: String, last: Int, before: String, filter: ObjectFilter): MoveObjectConnection }
type MoveObjectConnection { nodes: [MoveObject!]! }
type MoveObject { address: SuiAddress! version: UInt53 digest: String contents: MoveValue }
type MoveValue { bcs: Base64 json: JSON type: MoveType }
type MoveType { repr: String! }
type Epoch { epochId: UInt53! referenceGasPrice: BigInt }
type Object { address: SuiAddress! owner: Owner asMoveObject: MoveObject previousTransaction: Transaction version: UInt53 }
type ObjectConnection { nodes: [Object!]! }
union Owner = Shared | Immutable
type Shared { initialSharedVersion: UInt53 }
type Immutable { _: Boolean }
type Transaction { digest: String! effects: TransactionEffects }
type TransactionEffects {
  digest: String! status: ExecutionStatus executionError: ExecutionError
  events(first: Int, after: String, last: Int, before: String): EventConnection
  objectChanges(first: Int, after: String, last: Int, before: String): ObjectChangeConnection
}
type ExecutionError { abortCode: BigInt message: String! module: MoveModule }
type MoveModule { name: String! }
type EventConnection { nodes: [Event!]! }
type Event { contents: MoveValue }
type ObjectChangeConnection { nodes: [ObjectChange!]! }
type ObjectChange { address: SuiAddress! inputState: Object outputState: Object }
type SimulationResult { effects: TransactionEffects error: String outputs: [CommandResult!] }
type CommandResult { returnValues: [CommandOutput!] }
type CommandOutput { value: MoveValue }
type ExecutionResult { effects: TransactionEffects errors: [String!] }
"""
NAMES = ("GROUND", "CONTENTS", "COINS", "SIMULATE", "EXECUTE", "OUTCOME", "CONSUMER", "EPOCH")


@pytest.mark.parametrize("name", NAMES)
def test_a_query_is_valid_in_the_published_schema(name: str) -> None:
    schema = graphql.build_schema(SCHEMA)
    assert graphql.validate(schema, graphql.parse(getattr(queries, name))) == []


def test_a_field_that_the_schema_does_not_have_would_be_found() -> None:
    wrong = queries.EPOCH.replace("epochId", "epochNumber")
    assert graphql.validate(graphql.build_schema(SCHEMA), graphql.parse(wrong))
