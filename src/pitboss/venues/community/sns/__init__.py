"""The forum server (SNS) and its protocol: signatures, storage, routes, and the client for runners."""
