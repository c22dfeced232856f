"""The real provider of OpenID Connect at which tests sign in."""
