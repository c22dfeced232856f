"""The file server: uploads and downloads over HTTP, the same on its own port and under `/files` of the API."""
