"""Data that comes from elsewhere or goes there: imports, exports, copies between stores."""
