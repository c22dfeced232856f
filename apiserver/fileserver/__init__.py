"""The file server: uploads and downloads over HTTP, on its own port and below `/files` of the API."""
