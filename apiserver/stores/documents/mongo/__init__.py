"""Documents in MongoDB, for any number of server processes."""

from apiserver.stores.documents.mongo.store import MongoDocumentStore

__all__ = ["MongoDocumentStore"]
