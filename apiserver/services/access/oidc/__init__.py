"""Signing in at a provider of OpenID Connect, such as Keycloak: the code flow with PKCE.

The sign-in page asks `begin` where to send the browser. The provider sends it back to the page with a code, and the
page hands that to `finish`, which answers as a sign-in with a password does: with the cookie. In between, the server
keeps nothing: what it has to know is in a signed cookie of the browser.

`begun` has that cookie, `requests` asks the provider within bounds, `provider` knows its addresses and keys,
`id_tokens` verifies what it says, `people` finds the user, and `sign_in` puts these together.
"""
