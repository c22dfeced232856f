"""What stops the building of the site."""


class SiteError(Exception):
    """The site cannot be built; the message says why."""
