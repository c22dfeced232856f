"""The ClearML wire protocol: schemas, versions, dispatch, envelope, errors, auth and bodies. It knows no service."""
